/* Experts: pairs of a row and one of its experts are sorted by expert, so that a product reads each expert's weights
   once for many rows. With few rows per expert, shares of 8 go to kernels for few rows, else shares of 128 to those for
   many. In the arithmetic `native` all go to kernels for few rows, in shares of 8 to 64. */
#include "device/cuda/cuda.h"

#define THREADS 128
#define SORTERS 1024
#define FEW 16           /* rows per expert, on average */
#define ROOM (64u << 10) /* most bytes of shared memory of a block that routes, with as many warps as fit */

size_t mt_cuda_places(size_t pairs, size_t experts)
{
    return mt_cuda_up(pairs + (MT_CUDA_ALIGN - 1) * (experts < pairs ? experts : pairs), MT_CUDA_ALIGN);
}

/* Rows of a share, and how many shares there are at most. */
typedef struct cut {
    uint32_t rows;
    size_t most;
} cut;

static cut cut_of(const mt_experts *e, size_t pairs)
{
    const size_t met = e->count < pairs ? e->count : pairs;
    bool many = pairs > FEW * e->count && pairs > MT_CUDA_FEW_ROWS, native = true;
    for (size_t i = 0; i < 3; i++) {
        many = many && e->part[i]->class != MT_CLASS_N && mt_cuda_many_can(e->part[i]);
        native = native && e->part[i]->class == MT_CLASS_N;
    }
    if (native) {
        const uint32_t rows = mt_cuda_native_share(pairs, e->count);
        return (cut){rows, (pairs + (rows - 1) * met) / rows};
    }
    return many ? (cut){MT_CUDA_MANY, pairs / MT_CUDA_MANY + met} : (cut){8, mt_cuda_places(pairs, e->count) / 8};
}

static mt_cuda_sort sort_of(const mt_device *dev, const mt_experts *e, size_t pairs, cut c)
{
    return (mt_cuda_sort){.expert = dev->expert,
                          .place = dev->place,
                          .row = dev->row,
                          .share = dev->share,
                          .count = dev->share_count,
                          .pairs = (uint32_t)pairs,
                          .top_k = (uint32_t)e->top_k,
                          .experts = (uint32_t)e->count,
                          .places = (uint32_t)mt_cuda_places(pairs, e->count),
                          .most = c.rows};
}

/* Rows to experts, pairs sorted by expert: by one block, where rows are few. */
static void route(mt_device *dev, const mt_experts *e, const mt_cuda_route *route, cut c)
{
    const size_t pairs = (size_t)route->m * e->top_k, each = MT_CUDA_ROUTE_ROOM(e->count) * sizeof(uint32_t);
    const size_t fit = each < ROOM ? ROOM / each : 1, rows = route->m;
    mt_cuda_routed p = {
        .route = *route, .sort = sort_of(dev, e, pairs, c), .warps = (uint32_t)(rows < fit ? rows : fit)};
    if (rows <= MT_CUDA_ROUTED) {
        const size_t threads = p.warps * 32 > THREADS ? p.warps * 32 : THREADS;
        mt_cuda_launch(dev, MT_K_route_and_sort, 1, 1, 1, threads, p.warps * each + pairs * sizeof(uint32_t), &p);
        return;
    }
    const size_t warps = fit < 4 ? fit : 4;
    mt_cuda_launch(dev, MT_K_route, (rows + warps - 1) / warps, 1, 1, warps * 32, warps * each, route);
    mt_cuda_launch(dev, MT_K_sort_pairs, 1, 1, 1, SORTERS, 0, &p.sort);
}

static mt_cuda_shares shares_of(const mt_device *dev, const mt_experts *e, size_t part)
{
    return (mt_cuda_shares){.experts = e->device[part], .share = dev->share, .count = dev->share_count};
}

/* Whether kernels for shares of few rows support an expert's part. */
static bool known(const mt_weight *w)
{
    return w->class == MT_CLASS_Q && (w->d.group == 32 || w->d.group == 64 || w->d.group == 128);
}

/* Products of few rows with one part of their experts, or with two alike. */
static void meet_few(mt_device *dev, const mt_experts *e, size_t part, size_t count, const mt_cuda_mat *y, cut c)
{
    static const mt_cuda_kernel kernels[2][3] = {
        {MT_K_experts_w4_g32_rows1_8, MT_K_experts_w4_g64_rows1_8, MT_K_experts_w4_g128_rows1_8},
        {MT_K_experts_w8_g32_rows1_8, MT_K_experts_w8_g64_rows1_8, MT_K_experts_w8_g128_rows1_8}};
    const mt_cuda_weight *w = &e->part[part]->d;
    const size_t each = 128 / w->group, bits = w->kind == MT_CUDA_CODES8 ? 8 : 4;
    const size_t stage = bits * 256 + each * 128 + 1024 + 128 + each * 32; /* as share_stage in codes_shares.cu */
    mt_cuda_few_shares p = {.from = dev->packed};
    for (size_t i = 0; i < count; i++) {
        p.shares[i] = shares_of(dev, e, part + i);
        p.y[i] = y[i];
    }
    mt_cuda_launch(dev,
                   kernels[bits == 8][each == 4   ? 0
                                      : each == 2 ? 1
                                                  : 2],
                   (w->n + 63) / 64, c.most, count, 128, 4 * MT_CUDA_SHARE_STAGES * stage, &p);
}

/* The same in `native`, of as many rows as a share has. */
static void meet_native(mt_device *dev, const mt_experts *e, size_t part, mt_cuda_mat y, cut c)
{
    mt_cuda_native_few few = {.p = {.w = {e->part[part]->d}, .y = {y}, .from = dev->packed, .count = 1},
                              .shares = {shares_of(dev, e, part)}};
    mt_cuda_native_experts(dev, &few, c.most);
}

/* Packs rows of sorted pairs for a part of experts: by row, where given, of m rows of x. */
static void pack(mt_device *dev, const mt_weight *w, mt_cuda_mat x, CUdeviceptr row, size_t m, size_t places, cut c)
{
    if (w->class == MT_CLASS_N)
        mt_cuda_native_pack_shares(dev, w, x, row, m, c.rows, c.most);
    else
        mt_cuda_pack_rows(dev, w, x, row, places);
}

/* y = each sorted row times its expert; row: the row of x of each; 0: x is sorted. */
static void meet(mt_device *dev, const mt_experts *e, size_t part, mt_cuda_mat y, mt_cuda_mat x, CUdeviceptr row, cut c)
{
    const mt_cuda_shares shares = shares_of(dev, e, part);
    if (c.rows == MT_CUDA_MANY)
        mt_cuda_many_experts(dev, mt_cuda_product_kernel(dev, e->part[part], MT_CUDA_MANY), y, e->part[part], shares,
                             c.most);
    else if (e->part[part]->class == MT_CLASS_N)
        meet_native(dev, e, part, y, c);
    else if (known(e->part[part]))
        meet_few(dev, e, part, 1, &y, c);
    else
        mt_cuda_any_launch(dev, e->part[part], (mt_cuda_product){.y = y, .x = x, .shares = shares, .row = row}, c.most);
}

/* gate and up of rows of x, which are packed once where both need them alike. */
static void meet_both(mt_device *dev, const mt_experts *e, mt_cuda_mat x, size_t m, size_t places, cut c)
{
    const mt_weight *gate = e->part[0], *up = e->part[1];
    pack(dev, gate, x, dev->row, m, places, c);
    if (c.rows == 8 && known(gate) && known(up) && mt_cuda_same_rows(gate, up) && gate->d.kind == up->d.kind) {
        meet_few(dev, e, 0, 2, (const mt_cuda_mat[]){dev->gate, dev->up}, c);
        return;
    }
    meet(dev, e, 0, dev->gate, x, dev->row, c);
    if (!mt_cuda_same_rows(gate, up))
        pack(dev, up, x, dev->row, m, places, c);
    meet(dev, e, 1, dev->up, x, dev->row, c);
}

/* All of experts with few rows each, but the sum: by two kernels behind the router; false where there are none for
   that. */
static bool meet_all(mt_device *dev, const mt_experts *e, const mt_cuda_route *how, mt_cuda_mat x, cut c)
{
    const mt_cuda_weight *gate = &e->part[0]->d, *down = &e->part[2]->d;
    const size_t bits[2] = {gate->kind == MT_CUDA_CODES8 ? 8 : 4, down->kind == MT_CUDA_CODES8 ? 8 : 4};
    const size_t shared[2] = {MT_CUDA_MEET_SHARED(gate->steps, bits[0]), MT_CUDA_MEET_SHARED(down->steps, bits[1])};
    const size_t most = (size_t)dev->shared - 8192; /* the rest is what the kernels use besides */
    const size_t pairs = how->m * e->top_k, places = mt_cuda_places(pairs, e->count);
    if (c.rows != 8 || !mt_cuda_chosen_can(dev, e) || shared[0] > most || shared[1] > most)
        return false;
    route(dev, e, how, c);
    mt_cuda_pack_rows(dev, e->part[0], x, 0, how->m);
    /* what is between both kernels lies where gates lie otherwise, which take more */
    const CUdeviceptr at = dev->gate.data;
    mt_cuda_meet p = {.shares = {shares_of(dev, e, 0), shares_of(dev, e, 1)},
                      .from = dev->packed,
                      .to = {.q = at,
                             .turns = at + places * down->k,
                             .sums = at + places * (down->k + down->steps * 16),
                             .rows = (uint32_t)places,
                             .padded = down->k},
                      .row = dev->row,
                      .act = e->glu.act,
                      .wide = e->part[2]->mat.bits == 8,
                      .limit = e->glu.limit,
                      .offset = e->glu.offset};
    mt_cuda_launch(dev, bits[0] == 8 ? MT_K_experts_up_w8_g64_rows1_8 : MT_K_experts_up_w4_g64_rows1_8, gate->n / 64,
                   c.most, 1, 32 * MT_CUDA_MEET_WARPS, shared[0], &p);
    p.shares[0] = shares_of(dev, e, 2);
    p.from = p.to;
    p.y = dev->down;
    mt_cuda_launch(dev, bits[1] == 8 ? MT_K_experts_down_w8_g64_rows1_8 : MT_K_experts_down_w4_g64_rows1_8,
                   (down->n + 127) / 128, c.most, 1, 32 * MT_CUDA_MEET_WARPS, shared[1], &p);
    return true;
}

/* gate and up in `native`, combined, by one kernel, which packs them for down where it can; false where there is none
   for both. */
static bool gate_native(mt_device *dev, const mt_experts *e, mt_cuda_mat x, size_t m, size_t places, cut c)
{
    const mt_weight *gate = e->part[0], *up = e->part[1], *down = e->part[2];
    mt_cuda_mat glu = dev->gate;
    glu.cols = (uint32_t)e->inner;
    if (!mt_cuda_native_alike(gate, up))
        return false;
    pack(dev, gate, x, dev->row, m, places, c);
    mt_cuda_native_few few = {.p = {.w = {gate->d, up->d},
                                    .from = dev->packed,
                                    .count = 2,
                                    .gates = 1,
                                    .glu_limit = e->glu.limit,
                                    .glu_offset = e->glu.offset,
                                    .act = e->glu.act},
                              .shares = {shares_of(dev, e, 0), shares_of(dev, e, 1)}};
    const bool packs = down->class == MT_CLASS_N && e->inner % MT_NATIVE_CHUNK == 0;
    if (packs)
        few.p.gated = mt_cuda_native_beside(dev, down, c.rows, c.most);
    else
        few.p.glu = glu;
    few.p.packed_only = packs;
    mt_cuda_native_experts(dev, &few, c.most);
    if (packs)
        dev->packed = few.p.gated;
    else
        pack(dev, down, glu, 0, places, places, c);
    return true;
}

void mt_cuda_op_moe(mt_device *dev, mt_tensor *y, const mt_tensor *x, mt_tensor *router, size_t m, const mt_experts *e)
{
    const size_t pairs = m * e->top_k, places = mt_cuda_places(pairs, e->count);
    const cut c = cut_of(e, pairs);
    const mt_cuda_route how = {.router = router->m,
                               .y = y->m,
                               .x = dev->down,
                               .expert = dev->expert,
                               .place = dev->place,
                               .weight = dev->weight,
                               .m = (uint32_t)m,
                               .count = (uint32_t)e->count,
                               .top_k = (uint32_t)e->top_k,
                               .correction = e->correction,
                               .scale = e->scale,
                               .kind = e->routing.kind,
                               .renormalise = e->routing.renormalise,
                               .groups = e->routing.groups,
                               .top_groups = e->routing.top_groups,
                               .scaling = e->routing.scaling};
    if (mt_cuda_row_experts(dev, &how, x->m, e))
        return;
    if (!meet_all(dev, e, &how, x->m, c)) {
        mt_cuda_mat gate = dev->gate;
        gate.cols = (uint32_t)e->inner;
        route(dev, e, &how, c);
        if (!gate_native(dev, e, x->m, m, places, c)) {
            meet_both(dev, e, x->m, m, places, c);
            mt_cuda_run_glu(dev, gate, gate, dev->up, places, &e->glu);
            pack(dev, e->part[2], gate, 0, places, places, c);
        }
        meet(dev, e, 2, dev->down, gate, 0, c);
    }
    mt_cuda_launch(dev, MT_K_combine, (y->m.cols + 4 * THREADS - 1) / (4 * THREADS), m, 1, THREADS, 0, &how);
}
