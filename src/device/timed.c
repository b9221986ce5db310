/* Times calls to a device (timed.h): timed_NAME calls the backend's function and records the time; counted_NAME first
   computes the work of an operation (mt_work). Operations without a counted_ function have no work recorded. */
#include "device/timed.h"

#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "device/backend.h"
#include "kernels/convert.h"

struct mt_timed {
    mt_backend table;       /* must be first: the device's backend pointer is cast to mt_timed */
    const mt_backend *real; /* the backend's own table */
    mt_device *dev;
    mt_timings *timings;
    mt_batch batch; /* of the present step */
    mt_work next;   /* work of the call that follows */
    mt_host_work host;
};

static mt_timed *of(mt_device *dev)
{
    return (mt_timed *)(uintptr_t)((const mt_device_head *)dev)->backend;
}

/* Records a call that began at `begin`: waits for the device, and appends to the list. */
static void note(mt_timed *t, const char *name, uint64_t begin)
{
    mt_timings *list = t->timings;
    t->real->device_wait(t->dev);
    if (list->count < list->capacity)
        list->at[list->count++] = (mt_timing){name, begin, mt_clock_ns(), t->next, t->host};
    else
        list->dropped++;
    t->next = (mt_work){0};
    t->host = (mt_host_work){0};
}

#define TIMED(result, name, parameters, arguments) \
    static result timed_##name parameters          \
    {                                              \
        mt_timed *timed = of(dev);                 \
        const uint64_t begin = mt_clock_ns();      \
        timed->real->name arguments;               \
        note(timed, #name, begin);                 \
    }
MT_DEVICE_CALLS(TIMED)
MT_DEVICE_OPERATIONS(TIMED)
#undef TIMED

/* ---- the work of operations ---- */

double mt_work_mat_bytes(const mt_mat *mat)
{
    double rows = (double)mat->n;
    const size_t groups = mat->group ? (mat->k + mat->group - 1) / mat->group : 0;
    const double codes = rows * (double)mat->k * mat->bits / 8;
    if (mat->scale_rows > 1)
        rows = ceil(rows / mat->scale_rows);
    return codes + rows * (double)mt_scale_bytes(mat->scale_type, groups) * (mat->biases ? 2 : 1);
}

static double cols(const mt_device *dev, const mt_tensor *t)
{
    return (double)mt_tensor_cols(dev, t);
}

/* Sets the work of an operation that reads or writes rows of floats `count` times. */
static void rows(mt_device *dev, const mt_tensor *t, size_t m, double count, double ops)
{
    const double elements = (double)m * cols(dev, t);
    of(dev)->next =
        (mt_work){.bytes = 4 * count * elements, .ops = ops * elements, .arithmetic = MT_ARITHMETIC_FP32, .m = m};
}

static void counted_matmul(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count,
                           const mt_tensor *x, size_t m)
{
    mt_work work = {.arithmetic = mt_weight_arithmetic(dev, w[0]), .m = m, .k = mt_weight_mat(dev, w[0])->k};
    for (size_t i = 0; i < count; i++) {
        const mt_mat *mat = mt_weight_mat(dev, w[i]);
        work.n += mat->n;
        work.weights += mt_work_mat_bytes(mat);
    }
    work.bytes = work.weights + 4.0 * (double)m * (double)(work.k + work.n);
    work.ops = 2.0 * (double)m * (double)work.n * (double)work.k;
    of(dev)->next = work;
    timed_op_matmul(dev, y, w, count, x, m);
}

static void counted_matmul_heads(mt_device *dev, mt_tensor *y, size_t y_dim, const mt_weight *w, mt_head_rows how,
                                 const mt_tensor *x, size_t x_dim, size_t m)
{
    const mt_mat *mat = mt_weight_mat(dev, w);
    const size_t n = how.heads * how.rows;
    mt_work work = {.arithmetic = how.across ? MT_ARITHMETIC_FP32 : mt_weight_arithmetic(dev, w), .m = m, .n = n};
    work.k = mat->k;
    work.weights = mt_work_mat_bytes(mat) * (double)n / (double)mat->n;
    work.bytes = work.weights + 4.0 * (double)m * (double)(how.heads * (y_dim + x_dim));
    work.ops = 2.0 * (double)m * (double)n * (double)mat->k;
    of(dev)->next = work;
    timed_op_matmul_heads(dev, y, y_dim, w, how, x, x_dim, m);
}

/* Which experts the rows use is not known: estimates how many random choices would hit. */
static void counted_moe(mt_device *dev, mt_tensor *y, const mt_tensor *x, mt_tensor *router, size_t m,
                        const mt_experts *experts)
{
    const double all = (double)mt_experts_count(dev, experts), top = (double)mt_experts_top_k(dev, experts);
    const double hit = all * (1 - pow(1 - top / all, (double)m));
    mt_work work = {.arithmetic = mt_weight_arithmetic(dev, mt_experts_weight(dev, experts, 0, 0)), .m = m};
    for (size_t part = 0; part < 3; part++) {
        const mt_mat *mat = mt_weight_mat(dev, mt_experts_weight(dev, experts, 0, part));
        work.weights += hit * mt_work_mat_bytes(mat);
        work.bytes += 4 * (double)m * top * (double)(mat->n + mat->k);
        work.ops += 2 * (double)m * top * (double)mat->n * (double)mat->k;
    }
    work.bytes += work.weights;
    of(dev)->next = work;
    timed_op_moe(dev, y, x, router, m, experts);
}

/* Bytes of one position's keys and values in one layer. */
static double position_bytes(const mt_device *dev, const mt_kv_shape *s)
{
    return (double)mt_kv_page_bytes(dev, s) / (double)(s->page_tokens * s->layers);
}

/* The positions [*from, *to) that row i of the batch sees. */
static void seen(const mt_batch *b, const mt_span *s, size_t i, const mt_attention *how, double *from, double *to)
{
    const double own = (double)s->position + (double)(i - s->row) + 1;
    *to = b->seen && !how->causal ? b->seen[i] : own;
    *from = b->seen_from ? b->seen_from[i] : 0;
    if (how->window)
        *from = fmax(*from, own - how->window);
    if (how->chunk)
        *from = fmax(*from, floor((own - 1) / how->chunk) * how->chunk);
}

static void counted_attention(mt_device *dev, mt_tensor *y, const mt_tensor *q, mt_kv *kv, size_t layer,
                              mt_attention how)
{
    const mt_batch *b = &of(dev)->batch;
    const mt_kv_shape *s = mt_kv_shape_of(dev, kv);
    double pairs = 0, keys = 0;
    for (size_t j = 0; j < b->spans; j++) {
        double first = INFINITY, last = 0;
        for (size_t i = b->span[j].row; i < b->span[j].row + b->span[j].rows; i++) {
            double from, to;
            seen(b, &b->span[j], i, &how, &from, &to);
            pairs += how.chosen ? fmin(to - from, how.top) : to - from;
            first = fmin(first, from);
            last = fmax(last, to);
        }
        keys += last > first ? last - first : 0;
    }
    const double query = (double)(s->query_heads * s->head_dim);
    of(dev)->next =
        (mt_work){.bytes = keys * position_bytes(dev, s) + 8 * (double)b->rows * query,
                  .ops = 4 * pairs * query,
                  .arithmetic = mt_device_precision(dev) == MT_PRECISION_FAST ? MT_ARITHMETIC_BF16 : MT_ARITHMETIC_FP32,
                  .m = b->rows};
    timed_op_attention(dev, y, q, kv, layer, how);
}

/* Rows that see no more positions than are chosen compare none. */
static void counted_top_keys(mt_device *dev, mt_index *chosen, const mt_tensor *q, const mt_tensor *w, mt_kv *kv,
                             size_t layer)
{
    const mt_batch *b = &of(dev)->batch;
    const mt_kv_shape *s = mt_kv_shape_of(dev, kv);
    double pairs = 0, keys = 0;
    for (size_t j = 0; j < b->spans; j++) {
        const size_t end = b->span[j].position + b->span[j].rows;
        for (size_t i = 1; i <= b->span[j].rows; i++)
            pairs += b->span[j].position + i > s->top ? (double)(b->span[j].position + i) : 0;
        keys += end > s->top ? (double)end : 0;
    }
    of(dev)->next = (mt_work){.bytes = keys * position_bytes(dev, s) + 4 * (double)b->rows * cols(dev, q),
                              .ops = 2 * pairs * cols(dev, q),
                              .arithmetic = MT_ARITHMETIC_FP32,
                              .m = b->rows};
    timed_op_top_keys(dev, chosen, q, w, kv, layer);
}

static void counted_kv_write(mt_device *dev, mt_kv *kv, size_t layer, const mt_tensor *k, const mt_tensor *v)
{
    const size_t m = of(dev)->batch.rows;
    rows(dev, k, m, 2, 0);
    of(dev)->next.bytes += (double)m * position_bytes(dev, mt_kv_shape_of(dev, kv));
    timed_op_kv_write(dev, kv, layer, k, v);
}

static void counted_embed(mt_device *dev, mt_tensor *x, const mt_weight *w, float scale)
{
    const mt_mat *mat = mt_weight_mat(dev, w);
    const size_t m = of(dev)->batch.rows;
    rows(dev, x, m, 1, 0);
    of(dev)->next.bytes += (double)m * mt_work_mat_bytes(mat) / (double)mat->n;
    timed_op_embed(dev, x, w, scale);
}

static void counted_delta(mt_device *dev, mt_tensor *y, mt_states *states, size_t layer, const mt_tensor *x,
                          const mt_tensor *gates)
{
    const mt_batch *b = &of(dev)->batch;
    const mt_state_shape *s = mt_state_shape_of(dev, states);
    const double slot = (double)mt_state_slot_bytes(dev, s) / (double)s->layers;
    rows(dev, y, b->rows, 4, 0);
    of(dev)->next.bytes += 2 * (double)b->spans * slot;
    of(dev)->next.ops = 6.0 * (double)b->rows * (double)(s->value_heads * s->key_dim * s->value_dim);
    timed_op_delta(dev, y, states, layer, x, gates);
}

static void counted_conv(mt_device *dev, mt_tensor *y, mt_states *states, size_t layer, const mt_columns in[3],
                         const mt_tensor *w)
{
    rows(dev, y, of(dev)->batch.rows, 2, 2.0 * (double)mt_state_shape_of(dev, states)->taps);
    timed_op_conv(dev, y, states, layer, in, w);
}

static void counted_norm(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w, float eps,
                         float offset)
{
    rows(dev, x, m, 2, 4);
    timed_op_norm(dev, y, x, m, w, eps, offset);
}

static void counted_layer_norm(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w,
                               const mt_tensor *bias, float eps)
{
    rows(dev, x, m, 2, 6);
    timed_op_layer_norm(dev, y, x, m, w, bias, eps);
}

static void counted_add(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m)
{
    rows(dev, x, m, 3, 1);
    timed_op_add(dev, y, x, m);
}

static void counted_heads(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, size_t head_dim,
                          const mt_tensor *w, float eps, float offset, const mt_tensor *table, bool pairs)
{
    rows(dev, x, m, 2, (w ? 4 : 0) + (table ? 3 : 0));
    timed_op_heads(dev, y, x, m, head_dim, w, eps, offset, table, pairs);
}

static void counted_glu(mt_device *dev, mt_tensor *y, const mt_tensor *gate, const mt_tensor *up, size_t m, mt_glu glu)
{
    rows(dev, y, m, 3, 0);
    timed_op_glu(dev, y, gate, up, m, glu);
}

static void counted_scale(mt_device *dev, mt_tensor *x, size_t m, float factor)
{
    rows(dev, x, m, 2, 1);
    timed_op_scale(dev, x, m, factor);
}

static void counted_act(mt_device *dev, mt_tensor *x, size_t m, mt_activation act)
{
    rows(dev, x, m, 2, 0);
    timed_op_act(dev, x, m, act);
}

/* Keeps the batch, from which the work of operations is computed. */
static void noted_begin(mt_device *dev, const mt_batch *batch)
{
    of(dev)->batch = *batch;
    timed_step_begin(dev, batch);
}

/* ---- put in front of the backend, and removed ---- */

mt_timed *mt_timed_begin(mt_device *dev, mt_timings *timings)
{
    mt_device_head *head = (mt_device_head *)dev;
    mt_timed *t = mt_alloc(sizeof(*t));
    *t = (mt_timed){.table = *head->backend, .real = head->backend, .dev = dev, .timings = timings};
#define FIELD(result, name, parameters, arguments) t->table.name = timed_##name;
    MT_DEVICE_CALLS(FIELD)
    MT_DEVICE_OPERATIONS(FIELD)
#undef FIELD
    t->table.step_begin = noted_begin;
    t->table.op_spend = head->backend->op_spend; /* nothing to be timed */
    t->table.op_matmul = counted_matmul;
    t->table.op_matmul_heads = counted_matmul_heads;
    t->table.op_moe = counted_moe;
    t->table.op_attention = counted_attention;
    t->table.op_top_keys = counted_top_keys;
    t->table.op_kv_write = counted_kv_write;
    t->table.op_embed = counted_embed;
    t->table.op_delta = counted_delta;
    t->table.op_conv = counted_conv;
    t->table.op_norm = counted_norm;
    t->table.op_layer_norm = counted_layer_norm;
    t->table.op_add = counted_add;
    t->table.op_heads = counted_heads;
    t->table.op_glu = counted_glu;
    t->table.op_scale = counted_scale;
    t->table.op_act = counted_act;
    head->backend = &t->table;
    mt_host_measure(head->host, &t->host);
    return t;
}

void mt_timed_end(mt_timed *timed)
{
    if (!timed)
        return;
    mt_device_head *head = (mt_device_head *)timed->dev;
    mt_host_measure(head->host, NULL);
    head->backend = timed->real;
    mt_free(timed);
}
