/* Mixture of experts. Rows are routed, their (row, expert) pairs are sorted by expert into slots, and each expert's
   slots are multiplied as one small batch. A row's result is the sum over its experts, best first, so it does not
   depend on other rows (R1, R9). */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "device/limits.h"
#include "ranks/ranks.h"

typedef struct projection {
    const mt_weight *w; /* [experts] */
    float *y;           /* [slots][inner, padded] */
} projection;

typedef struct moe {
    mt_device *dev;
    const mt_experts *e;
    const mt_tensor *x;
    mt_tensor *router, *y;
    size_t m, top_k, active; /* active: experts that have rows */
    size_t first;            /* first column of inner that this rank has */
    size_t inner_stride, hidden_stride;
    size_t columns, tiles; /* columns of an item, and items of one expert's matrix */
    projection input[2];   /* gate and up, where both read the same packed rows; else one at a time */
    size_t inputs;
} moe;

/* The score by which expert j is chosen. */
static float choice(const mt_experts *e, const float *p, size_t j)
{
    return e->correction ? p[j] + e->correction[j] : p[j];
}

/* The score of a group of experts: the sum of its two best. */
static float group_score(const mt_experts *e, const float *p, size_t first, size_t size)
{
    float best = choice(e, p, first), second = -INFINITY;
    for (size_t j = first + 1; j < first + size; j++) {
        const float c = choice(e, p, j);
        second = c > best ? best : c > second ? c : second;
        best = c > best ? c : best;
    }
    return size > 1 ? best + second : best;
}

/* The groups whose experts may be chosen, a bit each: the best; of equals, the lower number. */
static uint64_t open_groups(const mt_experts *e, const float *p)
{
    const size_t groups = e->routing.groups, size = groups ? e->count / groups : 0;
    float score[MT_LIMIT_EXPERT_GROUPS];
    uint64_t open = 0;
    for (size_t g = 0; g < groups; g++)
        score[g] = group_score(e, p, g * size, size);
    for (size_t n = 0; n < e->routing.top_groups; n++) {
        size_t best = groups;
        for (size_t g = 0; g < groups; g++)
            if (!(open >> g & 1) && (best == groups || score[g] > score[best]))
                best = g;
        open |= UINT64_C(1) << best;
    }
    return open;
}

/* R9: the best expert first; of equals, the lower number. */
static void choose(const mt_experts *e, const float *p, uint32_t *expert, float *weight)
{
    const size_t size = e->routing.groups ? e->count / e->routing.groups : 0;
    const uint64_t open = size ? open_groups(e, p) : 0;
    size_t filled = 0;
    for (size_t j = 0; j < e->count; j++) {
        if (size && !(open >> j / size & 1))
            continue;
        const float c = choice(e, p, j);
        size_t at = filled < e->top_k ? filled++ : e->top_k;
        while (at > 0 && c > weight[at - 1]) {
            if (at < e->top_k) {
                weight[at] = weight[at - 1];
                expert[at] = expert[at - 1];
            }
            at--;
        }
        if (at < e->top_k) {
            weight[at] = c;
            expert[at] = (uint32_t)j;
        }
    }
}

/* Chooses the experts of row i and their weights (mt_routing). */
static void route_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const moe *op = ctx;
    const mt_kernels *k = &op->dev->k;
    const mt_experts *e = op->e;
    const mt_routing *how = &e->routing;
    float *p = mt_cpu_row(op->router, i), *weight = op->dev->moe.weight + i * op->top_k;
    uint32_t *expert = op->dev->moe.expert + i * op->top_k;
    if (how->kind == MT_ROUTE_SOFTMAX)
        k->softmax(p, e->count);
    else if (how->kind == MT_ROUTE_SIGMOID)
        k->sigmoid(p, p, e->count);
    choose(e, p, expert, weight);
    for (size_t r = 0; r < op->top_k; r++)
        weight[r] = p[expert[r]];
    if (how->kind == MT_ROUTE_CHOSEN)
        k->softmax(weight, op->top_k);
    if (how->renormalise)
        k->scale(weight, 1.0f / k->sum(weight, op->top_k), weight, op->top_k);
    if (how->scaling != 0)
        k->scale(weight, how->scaling, weight, op->top_k);
    for (size_t r = 0; e->scale && r < op->top_k; r++)
        weight[r] *= e->scale[expert[r]];
}

/* Counting sort of the pairs by expert; within an expert, rows ascend. */
static void assign_slots(moe *op)
{
    mt_moe_plan *plan = &op->dev->moe;
    const size_t pairs = op->m * op->top_k;
    memset(plan->first, 0, (op->e->count + 1) * sizeof(*plan->first));
    for (size_t i = 0; i < pairs; i++)
        plan->first[plan->expert[i] + 1]++;
    for (size_t j = 0; j < op->e->count; j++) {
        if (plan->first[j + 1])
            plan->active[op->active++] = (uint32_t)j;
        plan->first[j + 1] += plan->first[j];
    }
    for (size_t i = 0; i < pairs; i++) {
        const uint32_t slot = plan->first[plan->expert[i]]++;
        plan->slot[i] = slot;
        plan->row[slot] = (uint32_t)(i / op->top_k);
        if (op->e->routing.on_input) {
            plan->factor[slot] = plan->weight[i];
            plan->weight[i] = 1;
        }
    }
    /* each first[j] was advanced to the end of its slots, which is the beginning of the next expert's: moves them
       back */
    for (size_t j = op->e->count; j > 0; j--)
        plan->first[j] = plan->first[j - 1];
    plan->first[0] = 0;
}

/* The packed rows of active expert number `a`; its region begins at a multiple of MT_ROW_TILE rows. */
static mt_rows expert_rows(const moe *op, size_t a, const mt_weight *w)
{
    const mt_moe_plan *plan = &op->dev->moe;
    const uint32_t e = plan->active[a];
    const size_t tile = mt_cpu_up(mt_cpu_rows_bytes(op->dev, w->class, MT_ROW_TILE, w->mat.k, w->mat.group), 64);
    /* each active expert before this one may leave its last tile partly empty: one tile more for each */
    const size_t offset = (plan->first[e] / MT_ROW_TILE + a) * tile;
    const mt_rows rows = {.m = plan->first[e + 1] - plan->first[e],
                          .k = w->mat.k,
                          .group = w->class == MT_CLASS_Q ? w->mat.group : 0,
                          .wide = w->mat.bits == 8,
                          .data = plan->packed + offset};
    const size_t bytes = mt_cpu_rows_bytes(op->dev, w->class, rows.m, rows.k, w->mat.group);
    assert(bytes <= (rows.m + MT_ROW_TILE - 1) / MT_ROW_TILE * tile && offset + bytes <= plan->packed_bytes);
    (void)bytes;
    return rows;
}

static void pack_input_item(void *ctx, size_t a, size_t worker)
{
    (void)worker;
    const moe *op = ctx;
    const uint32_t e = op->dev->moe.active[a];
    const mt_weight *w = &op->input[0].w[e];
    mt_rows rows = expert_rows(op, a, w);
    mt_cpu_pack(op->dev, w, &rows, op->x->data, op->x->stride, op->dev->moe.row + op->dev->moe.first[e], 0, rows.m);
}

/* An item is (expert, gate or up, columns). */
static void input_item(void *ctx, size_t item, size_t worker)
{
    const moe *op = ctx;
    const mt_moe_plan *plan = &op->dev->moe;
    const size_t a = item / (op->inputs * op->tiles), n0 = item % op->tiles * op->columns, end = n0 + op->columns;
    const projection *input = &op->input[item / op->tiles % op->inputs];
    const uint32_t e = plan->active[a], first = plan->first[e];
    const mt_weight *w = &input->w[e];
    const mt_rows rows = expert_rows(op, a, w);
    float *y = input->y + first * op->inner_stride;
    mt_cpu_matmul(op->dev, w, y, op->inner_stride, n0, end < w->mat.n ? end : w->mat.n, &rows, op->x->data,
                  op->x->stride, plan->row + first, mt_cpu_scratch(op->dev, worker));
}

static void glu_item(void *ctx, size_t a, size_t worker)
{
    (void)worker;
    const moe *op = ctx;
    const mt_moe_plan *plan = &op->dev->moe;
    const uint32_t e = plan->active[a];
    for (size_t s = plan->first[e]; s < plan->first[e + 1]; s++) {
        const size_t at = s * op->inner_stride + op->first, n = op->e->gate[0].mat.n;
        if (op->e->routing.on_input) {
            op->dev->k.scale(plan->gate + at, plan->factor[s], plan->gate + at, n);
            op->dev->k.scale(plan->up + at, plan->factor[s], plan->up + at, n);
        }
        mt_cpu_glu(&op->dev->k, &op->e->glu, plan->gate + at, plan->gate + at, plan->up + at, n);
    }
}

static void pack_inner_item(void *ctx, size_t a, size_t worker)
{
    (void)worker;
    const moe *op = ctx;
    const mt_moe_plan *plan = &op->dev->moe;
    const uint32_t e = plan->active[a];
    mt_rows rows = expert_rows(op, a, &op->e->down[e]);
    mt_cpu_pack(op->dev, &op->e->down[e], &rows, plan->gate + plan->first[e] * op->inner_stride, op->inner_stride, NULL,
                0, rows.m);
}

static void activate_item(void *ctx, size_t a, size_t worker)
{
    glu_item(ctx, a, worker);
    pack_inner_item(ctx, a, worker);
}

/* Computes act(gate) * up of all slots and packs it for down. With ranks, each has some columns, and exchanges them. */
static void activate(moe *op)
{
    const mt_experts *e = op->e;
    const size_t pairs = op->m * op->top_k, work = 4 * pairs * e->inner;
    if (!e->slices) {
        mt_cpu_run(op->dev, activate_item, op, op->active, work);
        return;
    }
    mt_cpu_run(op->dev, glu_item, op, op->active, work);
    mt_ranks_share(op->dev->head.ranks, op->dev->moe.gate, op->inner_stride, e->inner, e->slices, pairs, true);
    mt_cpu_run(op->dev, pack_inner_item, op, op->active, work);
}

static void down_item(void *ctx, size_t item, size_t worker)
{
    const moe *op = ctx;
    const mt_moe_plan *plan = &op->dev->moe;
    const size_t a = item / op->tiles, n0 = item % op->tiles * op->columns, end = n0 + op->columns;
    const uint32_t e = plan->active[a], first = plan->first[e];
    const mt_weight *w = &op->e->down[e];
    const mt_rows rows = expert_rows(op, a, w);
    mt_cpu_matmul(op->dev, w, plan->down + first * op->hidden_stride, op->hidden_stride, n0,
                  end < w->mat.n ? end : w->mat.n, &rows, plan->gate + first * op->inner_stride, op->inner_stride, NULL,
                  mt_cpu_scratch(op->dev, worker));
}

static void combine_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const moe *op = ctx;
    const mt_moe_plan *plan = &op->dev->moe;
    float *y = op->y->data + i * op->y->stride;
    memset(y, 0, op->y->cols * sizeof(*y));
    for (size_t r = i * op->top_k; r < (i + 1) * op->top_k; r++)
        op->dev->k.axpy(y, plan->weight[r], plan->down + plan->slot[r] * op->hidden_stride, op->y->cols);
}

static void cut_columns(moe *op, const mt_weight *w)
{
    op->columns = mt_cpu_columns(op->dev, w, op->m * op->top_k / op->active);
    op->tiles = (w->mat.n + op->columns - 1) / op->columns;
}

static void run_inputs(moe *op, const projection *input, size_t count)
{
    const size_t pairs = op->m * op->top_k;
    memcpy(op->input, input, count * sizeof(*input));
    op->inputs = count;
    mt_cpu_run(op->dev, pack_input_item, op, op->active, pairs * op->e->hidden);
    cut_columns(op, &input[0].w[0]);
    mt_cpu_run(op->dev, input_item, op, op->active * count * op->tiles, pairs * op->e->hidden * op->e->inner);
}

void mt_cpu_op_moe(mt_device *dev, mt_tensor *y, const mt_tensor *x, mt_tensor *router, size_t m,
                   const mt_experts *experts)
{
    assert(m <= dev->rows && x->cols == experts->hidden && y->cols == experts->down[0].mat.n &&
           router->cols == experts->count);
    moe op = {.dev = dev,
              .e = experts,
              .x = x,
              .router = router,
              .y = y,
              .m = m,
              .top_k = experts->top_k,
              .inner_stride = mt_cpu_up(experts->inner, MT_ROW_PAD),
              .hidden_stride = mt_cpu_up(experts->hidden, MT_ROW_PAD)};
    const size_t pairs = m * op.top_k;
    mt_cpu_run(dev, route_row, &op, m, m * experts->count);
    assign_slots(&op);
    if (experts->slices)
        op.first = mt_ranks_first(experts->slices, mt_ranks_own(dev->head.ranks), mt_ranks_count(dev->head.ranks)) *
                   (experts->inner / experts->slices);
    const projection inputs[] = {{experts->gate, dev->moe.gate + op.first}, {experts->up, dev->moe.up + op.first}};
    if (mt_cpu_same_rows(&experts->gate[0], &experts->up[0])) {
        run_inputs(&op, inputs, 2);
    } else {
        run_inputs(&op, &inputs[0], 1);
        run_inputs(&op, &inputs[1], 1);
    }
    activate(&op);
    cut_columns(&op, &experts->down[0]);
    mt_cpu_run(dev, down_item, &op, op.active * op.tiles, pairs * experts->hidden * experts->inner);
    mt_cpu_run(dev, combine_row, &op, m, pairs * experts->hidden);
}

/* The most bytes that a tile of packed rows can need. */
static size_t tile_bytes(const mt_device *dev)
{
    static const size_t groups[] = {16, 32, 64, 128};
    const size_t k = dev->needs.hidden > dev->needs.inner ? dev->needs.hidden : dev->needs.inner;
    size_t bytes = dev->k.b_rows_bytes(MT_ROW_TILE, k);
    if (dev->head.numerics == MT_NUMERICS_NATIVE)
        bytes = mt_cpu_max(bytes, mt_cpu_rows_bytes(dev, MT_CLASS_N, MT_ROW_TILE, k, 0));
    for (size_t i = 0; i < MT_COUNT(groups); i++) {
        const size_t q = dev->k.q_rows_bytes(MT_ROW_TILE, mt_cpu_up(k, 128), groups[i]);
        bytes = q > bytes ? q : bytes;
    }
    return mt_cpu_up(bytes, 64);
}

void mt_cpu_plan_moe(mt_device *dev)
{
    if (!dev->needs.experts)
        return;
    mt_moe_plan *plan = &dev->moe;
    const size_t slots = dev->rows * dev->needs.top_k;
    const size_t active = slots < dev->needs.experts ? slots : dev->needs.experts;
    plan->expert = mt_cpu_alloc(dev->plan, slots * sizeof(*plan->expert));
    plan->weight = mt_cpu_alloc(dev->plan, slots * sizeof(*plan->weight));
    plan->slot = mt_cpu_alloc(dev->plan, slots * sizeof(*plan->slot));
    plan->row = mt_cpu_alloc(dev->plan, slots * sizeof(*plan->row));
    plan->factor = mt_cpu_alloc(dev->plan, slots * sizeof(*plan->factor));
    plan->first = mt_cpu_alloc(dev->plan, (dev->needs.experts + 1) * sizeof(*plan->first));
    plan->active = mt_cpu_alloc(dev->plan, dev->needs.experts * sizeof(*plan->active));
    plan->packed_bytes = (slots / MT_ROW_TILE + active + 1) * tile_bytes(dev);
    plan->packed = mt_cpu_alloc(dev->plan, plan->packed_bytes);
    plan->gate = mt_cpu_alloc(dev->plan, slots * mt_cpu_up(dev->needs.inner, MT_ROW_PAD) * sizeof(*plan->gate));
    plan->up = mt_cpu_alloc(dev->plan, slots * mt_cpu_up(dev->needs.inner, MT_ROW_PAD) * sizeof(*plan->up));
    plan->down = mt_cpu_alloc(dev->plan, slots * mt_cpu_up(dev->needs.hidden, MT_ROW_PAD) * sizeof(*plan->down));
}
