/* Neighbours in the list of kernels that become one: every pattern is a row of the table at the end, with a test in
   tests/unit/device_cuda_fusion.c. Operations list plain kernels; host/launch.c holds each new one against the table
   before it is listed. A fused kernel gives the bits that its parts give one after the other.

   Rows are known by their address: the kernel before writes what the next one reads, and nothing is listed in between.
   A function of the table gets the parameter of the first kernel, to be changed in the list; the call that is to be
   listed; and its parameter. It returns false where the two do not fit each other. */
#include <assert.h>

#include "base/compiler.h"
#include "device/cuda/cuda.h"
#include "device/limits.h"

#define F(name) MT_CUDA_FAMILY(name)

/* Replaces the last kernel in the list by the next one, whose parameter has taken it in. */
static bool replace(mt_device *dev, const mt_cuda_call *call, const void *parameter)
{
    mt_cuda_drop(dev);
    mt_cuda_list(dev, call, parameter);
    return true;
}

/* Whether a kernel that makes `made` may also add it to the rows of `sum`; add: what it adds to already. */
static bool may_add(const mt_cuda_rows *sum, mt_cuda_mat made, mt_cuda_mat add)
{
    return sum->kind == MT_CUDA_ADD && !add.data && made.data == sum->x.data && made.cols == sum->x.cols &&
           made.cols == sum->y.cols && sum->y.data != sum->x.data;
}

/* Whether kernels that make the columns of w[0] and w[1] may also combine them as gate and up. */
static bool may_gate(const mt_cuda_rows *glu, const mt_cuda_mat *y, const mt_cuda_weight *w)
{
    return y[0].data == glu->x.data && y[1].data == glu->x2.data && w[0].n == w[1].n && w[0].n == glu->y.cols &&
           glu->y.data != glu->x2.data;
}

/* Whether a kernel that makes y of m rows makes what is to be packed. */
static bool may_pack(const mt_cuda_pack *pack, mt_cuda_mat y, size_t m)
{
    return !pack->index && y.data == pack->x.data && y.cols == pack->k && m == pack->m;
}

/* ---- sums: products and experts add their result to the residual stream ---- */

static bool add_to_codes(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    mt_cuda_few *p = first;
    const mt_cuda_rows *sum = next;
    (void)dev, (void)call;
    if (p->count != 1 || p->m != sum->m || !may_add(sum, p->y[0], p->add) || p->w[0].n != sum->y.cols ||
        !mt_cuda_in_twos(sum->y) || (p->made && sum->y.data == p->x.data))
        return false;
    p->add = sum->y;
    return true;
}

static bool add_to_bf16(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    mt_cuda_halves *p = first;
    const mt_cuda_rows *sum = next;
    (void)dev, (void)call;
    if (p->count != 1 || p->m != sum->m || p->glu.data || !may_add(sum, p->y[0], p->add) || p->w[0].n != sum->y.cols)
        return false;
    p->add = sum->y;
    return true;
}

static bool add_to_native(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    const mt_cuda_rows *sum = next;
    (void)first, (void)call;
    return sum->kind == MT_CUDA_ADD && mt_cuda_native_add(dev, sum->y, sum->x, sum->m);
}

static bool add_to_experts(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    mt_cuda_route *p = first;
    const mt_cuda_rows *sum = next;
    (void)dev, (void)call;
    if (p->m != sum->m || !may_add(sum, p->y, p->add))
        return false;
    p->add = sum->y;
    return true;
}

static bool add_to_row_experts(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    mt_cuda_chosen *p = first;
    const mt_cuda_rows *sum = next;
    (void)dev, (void)call;
    if (sum->m != 1 || !may_add(sum, p->y, p->add))
        return false;
    p->add = sum->y;
    return true;
}

/* A norm of many rows adds first: these are read and written once. */
static bool add_in_norm(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    const mt_cuda_rows *sum = first;
    mt_cuda_made p = *(const mt_cuda_made *)next;
    if (sum->kind != MT_CUDA_ADD || sum->y.data != p.rows.x.data || sum->y.cols != p.rows.x.cols || sum->m != p.rows.m)
        return false;
    p.rows.x2 = sum->x;
    return replace(dev, call, &p);
}

/* ---- gates: a product of gate and up combines them ---- */

static bool gate_in_codes(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    mt_cuda_few *p = first;
    const mt_cuda_rows *glu = next;
    (void)dev, (void)call;
    if (p->count != 2 || p->m != glu->m || p->add.data || p->glu.data || !may_gate(glu, p->y, p->w) ||
        (p->made && glu->y.data == p->x.data))
        return false;
    p->glu = glu->y;
    p->glu_limit = glu->limit;
    p->glu_offset = glu->offset;
    p->act = glu->kind;
    return true;
}

static bool gate_in_bf16(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    mt_cuda_halves *p = first;
    const mt_cuda_rows *glu = next;
    (void)dev, (void)call;
    if (p->count != 2 || p->m != glu->m || p->add.data || p->glu.data || p->together % 2 || !may_gate(glu, p->y, p->w))
        return false;
    p->glu = glu->y;
    p->glu_limit = glu->limit;
    p->glu_offset = glu->offset;
    p->act = glu->kind;
    return true;
}

static bool gate_in_native(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    const mt_cuda_rows *p = next;
    const mt_glu glu = {.act = (mt_activation)p->kind, .limit = p->limit, .offset = p->offset};
    (void)first, (void)call;
    return mt_cuda_native_glu(dev, p->y, p->x, p->x2, p->m, &glu);
}

/* ---- packing: what makes rows packs them for the product behind it ---- */

static bool pack_made(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    mt_cuda_made *p = first;
    const mt_cuda_pack *pack = next;
    (void)dev, (void)call;
    if (!may_pack(pack, p->rows.y, p->rows.m) || p->pack.to.q)
        return false;
    p->pack = *pack;
    return true;
}

/* Few rows that are normed, or gated, have another kernel when they are packed as codes. */
static bool pack_norm(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    const mt_cuda_pack *pack = next;
    const mt_cuda_made p = {.rows = ((const mt_cuda_made *)first)->rows, .pack = *pack};
    (void)call;
    if (!may_pack(pack, p.rows.y, p.rows.m))
        return false;
    mt_cuda_drop(dev);
    mt_cuda_launch(dev, MT_K_norm_pack, p.rows.m, 1, 1, 512, pack->to.padded / 8 * 9 * sizeof(float), &p);
    return true;
}

static bool pack_glu(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    const mt_cuda_pack *pack = next;
    const mt_cuda_made p = {.rows = *(const mt_cuda_rows *)first, .pack = *pack};
    const size_t warps = p.rows.m * ((pack->to.padded + 255) / 256); /* each has 256 of a row */
    (void)call;
    if (!may_pack(pack, p.rows.y, p.rows.m))
        return false;
    mt_cuda_drop(dev);
    mt_cuda_launch(dev, MT_K_glu_pack, (warps + 7) / 8, 1, 1, 256, 0, &p);
    return true;
}

static bool pack_in_bf16(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    mt_cuda_halves *p = first;
    const mt_cuda_pack *pack = next;
    (void)call;
    if (!p->glu.data || p->gated.q || !may_pack(pack, p->glu, p->m) || pack->k % MT_CUDA_STEP ||
        p->from.q == dev->packed_gated)
        return false;
    dev->packed.q = dev->packed_gated; /* the product still reads the others */
    p->gated = dev->packed;
    return true;
}

static bool pack_in_delta(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    mt_cuda_normed *p = first;
    const mt_cuda_pack *pack = next;
    (void)call;
    if (p->pack.to.q || !may_pack(pack, p->norm.y, dev->step.rows) || pack->k % MT_CUDA_NORMED_COLUMNS)
        return false;
    p->pack = *pack;
    return true;
}

/* ---- one row: its product norms it ---- */

static bool norm_in_codes(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    const mt_cuda_rows *norm = &((const mt_cuda_made *)first)->rows;
    mt_cuda_few p = *(const mt_cuda_few *)next;
    if (p.made != MT_CUDA_AS_THEY_ARE || norm->y.data != p.x.data || norm->y.cols != p.w[0].k || norm->m != 1 ||
        norm->y.data == norm->x.data || norm->x.data % 16 || norm->y.data % 16)
        return false;
    for (uint32_t i = 0; i < p.count; i++)
        if (p.y[i].data == norm->x.data || p.y[i].data == norm->y.data)
            return false;
    p.made = MT_CUDA_NORMED;
    p.x = norm->x;
    p.out = norm->y;
    p.norm = norm->w.data;
    p.eps = norm->eps;
    p.offset = norm->offset;
    return replace(dev, call, &p);
}

static bool norm_in_native(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    const mt_cuda_made norm = *(const mt_cuda_made *)first;
    (void)call;
    return !norm.pack.to.q && mt_cuda_native_norm(dev, &norm.rows, next);
}

/* ---- heads ---- */

/* Queries that the last kernel separates from their gates are read where they stand, and the gates are copied. */
static bool split_in_heads(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    const mt_cuda_rows *split = first;
    mt_cuda_heads p = *(const mt_cuda_heads *)next;
    if (p.count != 1 || split->m != p.m || split->head_dim != p.head_dim || split->y.data != p.x[0].data ||
        split->y.cols != p.x[0].cols || p.y[0].data != p.x[0].data)
        return false;
    p.x[0] = split->x;
    p.apart = 2 * p.head_dim;
    p.gates = split->y2;
    return replace(dev, call, &p);
}

/* Queries and keys, of which neither reads what the other writes. */
static bool heads_of_both(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    const mt_cuda_heads *a = first, *b = next;
    (void)call;
    if (a->count != 1 || a->v.data || a->m != b->m || a->head_dim != b->head_dim || a->eps != b->eps ||
        a->offset != b->offset || a->table.data != b->table.data || a->pairs != b->pairs || b->gates.data ||
        a->gates.data == b->x[0].data || a->y[0].data == b->x[0].data || a->y[0].data == b->y[0].data ||
        a->x[0].data == b->y[0].data)
        return false;
    mt_cuda_heads p = *b;
    p.x[1] = p.x[0];
    p.y[1] = p.y[0];
    p.w[1] = p.w[0];
    p.x[0] = a->x[0];
    p.y[0] = a->y[0];
    p.w[0] = a->w[0];
    p.apart = a->apart;
    p.gates = a->gates;
    p.count = 2;
    mt_cuda_drop(dev);
    mt_cuda_heads_launch(dev, &p);
    return true;
}

/* Keys, and values with them, go to their pages. */
static bool pages_in_heads(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    const mt_cuda_attention *write = next;
    mt_cuda_heads p = *(const mt_cuda_heads *)first;
    (void)call;
    p.keys = p.count - 1;
    if (p.v.data || p.m != write->step.rows || p.head_dim != write->kv.head_dim || p.y[p.keys].data != write->x.data ||
        p.y[0].data == write->v.data || p.y[p.keys].data == write->v.data ||
        p.y[p.keys].cols != write->kv.heads * write->kv.head_dim)
        return false;
    p.v = write->v;
    p.kv = write->kv;
    p.step = write->step;
    p.layer = write->layer;
    mt_cuda_drop(dev);
    mt_cuda_heads_launch(dev, &p);
    return true;
}

/* ---- experts: the router's product, the norm before it, the choice of experts, and packing ---- */

/* Of the router's product, which stands `back` before the last kernel. */
static const mt_cuda_f32 *router_of(mt_device *dev, size_t back, const mt_cuda_route *route, const mt_cuda_pack *pack)
{
    mt_cuda_kernel kernel;
    const mt_cuda_f32 *p = mt_cuda_listed(dev, back, &kernel);
    const bool few =
        p && (kernel == MT_K_matmul_f32_rows4 || kernel == MT_K_matmul_f32_rows8 || kernel == MT_K_matmul_f32_rows16);
    if (!few || p->m != route->m || p->count != 1 || p->y[0].data != route->router.data || p->x.data != pack->x.data ||
        p->x.data % 16 || p->x.stride % 4)
        return NULL;
    const mt_cuda_weight *w = &p->w[0];
    return w->kind != MT_CUDA_PLAIN && w->k % MT_CUDA_STEP == 0 && w->group >= 16 && w->k == pack->k ? p : NULL;
}

/* The norm of these rows, which stands `back` before the last kernel. */
static const mt_cuda_rows *norm_of(mt_device *dev, size_t back, const mt_cuda_pack *pack)
{
    mt_cuda_kernel kernel;
    const mt_cuda_made *p = mt_cuda_listed(dev, back, &kernel);
    if (!p || kernel != MT_K_norm || p->pack.to.q)
        return NULL;
    const mt_cuda_rows *norm = &p->rows;
    return norm->m == pack->m && norm->y.data == pack->x.data && norm->y.data != norm->x.data &&
                   norm->x.cols == pack->k && norm->x.data % 16 == 0 && norm->w.data % 16 == 0 &&
                   norm->x.stride % 4 == 0
               ? norm
               : NULL;
}

/* Rows for `native` are packed behind it, for each expert by itself. */
static bool route_with_router(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    mt_cuda_kernel kernel;
    const mt_cuda_native_packing *sorted = next;
    const mt_cuda_pack *pack = next;
    (void)mt_cuda_listed(dev, 0, &kernel);
    const bool sorts = kernel == MT_K_route_and_sort, native = call->kernel == MT_K_native_pack;
    const mt_cuda_route *route = sorts ? &((const mt_cuda_routed *)first)->route : first;
    const uint32_t m = route->m, rows = MT_MIN(m, MT_CUDA_ROUTER_ROWS);
    const mt_cuda_f32 *product = router_of(dev, 1, route, pack);
    if (m > MT_CUDA_ROUTED || pack->m != m || !product ||
        (native ? !sorted->share.count : pack->index || pack->group != 64))
        return false;
    const mt_cuda_weight *w = &product->w[0];
    mt_cuda_router p = {.w = *w, .x = product->x, .route = *route, .arrived = dev->arrived, .bits = product->bits};
    if (!native)
        p.pack = *pack;
    if (sorts)
        p.sort = ((const mt_cuda_routed *)first)->sort;
    const mt_cuda_rows *norm = norm_of(dev, 2, pack);
    if (norm) {
        p.x = norm->x;
        p.y = norm->y;
        p.norm = norm->w.data;
        p.eps = norm->eps;
        p.offset = norm->offset;
    }
    const size_t room = rows * MT_CUDA_ROUTE_ROOM(route->count) * sizeof(uint32_t);
    size_t shared = MT_CUDA_ROUTER_SHARED(rows, w->k, w->groups, p.bits, w->pairs == MT_SCALE_F32 ? 8u : 4u);
    shared = shared > room ? shared : room;
    if (shared + 4096 + MT_LIMIT_EXPERTS * sizeof(uint32_t) > (size_t)dev->shared)
        return false;
    for (size_t i = 0; i < (norm ? 3 : 2); i++)
        mt_cuda_drop(dev);
    mt_cuda_launch(dev, MT_K_router, (p.w.n + MT_CUDA_ROUTER_COLUMNS - 1) / MT_CUDA_ROUTER_COLUMNS + 1,
                   (m + rows - 1) / rows, 1, rows * MT_CUDA_ROUTER_THREADS, shared, &p);
    if (native)
        mt_cuda_list(dev, call, sorted);
    return true;
}

/* ---- recurrent layers ---- */

static bool same_columns(const mt_cuda_cols *a, const mt_cuda_mat *y)
{
    return a->x.data == y->data && a->x.stride == y->stride && a->x.cols == y->cols;
}

/* The small projections of few rows, the convolution behind them, and the gates. */
static bool gates_with_conv(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    enum { THREADS = 256 };
    mt_cuda_kernel kernel[2];
    const mt_cuda_recurrent *gates = next, *conv = mt_cuda_listed(dev, 1, &kernel[0]);
    const mt_cuda_f32 *small = mt_cuda_listed(dev, 2, &kernel[1]);
    const size_t m = call->grid[0];
    (void)first;
    if (!small || kernel[0] != MT_K_conv_heads ||
        (kernel[1] != MT_K_matmul_f32_rows4 && kernel[1] != MT_K_matmul_f32_rows8 &&
         kernel[1] != MT_K_matmul_f32_rows16))
        return false;
    const mt_cuda_weight *w = &small->w[0];
    if (small->m != m || m != dev->step.rows || m >= MT_CUDA_SPAN_FEW * dev->step.spans || conv->st.taps != 4 ||
        w->kind == MT_CUDA_PLAIN || w->k % MT_CUDA_STEP || w->group < 16 || small->x.data % 16 || small->x.stride % 4)
        return false;
    mt_cuda_mix p = {.conv = *conv, .in = {gates->in[0], gates->in[1]}, .bias = gates->w, .bits = small->bits};
    for (size_t i = 0; i < 2; i++) {
        uint32_t which = 0;
        while (which < small->count && !same_columns(&p.in[i], &small->y[which]))
            which++;
        if (which == small->count)
            return false;
        p.w[i] = small->w[which];
    }
    p.conv.x = small->x;
    p.conv.m = (uint32_t)m;
    p.conv.gates = gates->y;
    p.conv.rate = gates->rate;
    p.conv.key_heads = gates->key_heads;
    p.rows = m < MT_CUDA_MIX_ROWS ? (uint32_t)m : MT_CUDA_MIX_ROWS;
    const size_t shared = MT_CUDA_MIX_SHARED(p.rows, w->k, w->groups, p.bits, w->pairs == MT_SCALE_F32 ? 8u : 4u);
    if (shared + THREADS * sizeof(float) > (size_t)dev->shared)
        return false;
    const size_t heads = (p.conv.rate.cols + MT_CUDA_MIX_HEADS - 1) / MT_CUDA_MIX_HEADS;
    const size_t rows = (m + MT_CUDA_MIX_ROWS - 1) / MT_CUDA_MIX_ROWS;
    const size_t spans = dev->step.spans * (conv->st.columns / THREADS);
    for (size_t i = 0; i < 3; i++)
        mt_cuda_drop(dev);
    mt_cuda_launch(dev, MT_K_mix, heads * rows + spans, 1, 1, THREADS, shared, &p);
    return true;
}

/* The delta rule of few rows norms its result. */
static bool norm_in_delta(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    const mt_cuda_normed p = {.delta = *(const mt_cuda_recurrent *)first, .norm = *(const mt_cuda_recurrent *)next};
    if (call->grid[0] != dev->step.rows || p.delta.y.data != p.norm.y.data || p.delta.y.cols != p.norm.y.cols ||
        p.delta.st.value_dim != MT_CUDA_NORMED_COLUMNS || p.norm.w.cols != MT_CUDA_NORMED_COLUMNS)
        return false;
    mt_cuda_drop(dev);
    mt_cuda_launch(dev, MT_K_delta_normed, 1, p.delta.st.value_heads, dev->step.spans, MT_CUDA_NORMED_COLUMNS, 0, &p);
    return true;
}

/* ---- rows that are spent: what only products have read, or pages have taken, is not written ---- */

static bool spend_heads(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    mt_cuda_heads *p = first;
    (void)dev, (void)call;
    p->kept_only = p->v.data && p->y[p->keys].data == ((const mt_cuda_mat *)next)->data;
    return p->kept_only;
}

static bool spend_made(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    mt_cuda_made *p = first;
    (void)dev, (void)call;
    p->packed_only = p->pack.to.q && p->rows.y.data == ((const mt_cuda_mat *)next)->data;
    return p->packed_only;
}

/* Queries that only attention of few rows reads: it makes the heads itself, and writes keys and values. */
static bool spend_queries(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    mt_cuda_kernel kernel;
    const mt_cuda_attention *a = first;
    const mt_cuda_heads *h = mt_cuda_listed(dev, 1, &kernel);
    const mt_cuda_mat *q = next;
    (void)call;
    if (!h || (kernel != MT_K_heads && kernel != MT_K_heads_64 && kernel != MT_K_heads_128))
        return false;
    const uint32_t dim = a->kv.head_stride;
    if (a->x.data != q->data || h->y[0].data != q->data || !h->kept_only || h->count != 2 || h->keys != 1 ||
        h->m > MT_CUDA_ROW_ROWS || h->layer != a->layer || h->kv.data != a->kv.data || h->kv.group != a->kv.group ||
        a->step.seen || h->head_dim != dim || a->kv.head_dim != dim || h->pairs ||
        (h->table.data && h->table.cols != dim) || h->gates.data || h->apart != dim)
        return false;
    const mt_cuda_asked p = {.attention = *a, .heads = *h};
    mt_cuda_drop(dev);
    mt_cuda_drop(dev);
    mt_cuda_asked_launch(dev, &p);
    return true;
}

static bool spend_native(mt_device *dev, void *first, const mt_cuda_call *call, const void *next)
{
    (void)first, (void)call;
    mt_cuda_native_spend(dev, *(const mt_cuda_mat *)next);
    return true;
}

/* Products that read rows as they are packed and no other way. */
#define READERS (F(CODES_MANY) | F(BF16_MANY) | F(NATIVE_FEW) | F(NATIVE_MANY))
#define MADE (F(NORM_MANY) | F(LAYER_NORM) | F(ACT) | F(GLU_MANY) | F(NATIVE_MADE))
#define CODES (F(CODES_ROW) | F(CODES_ROWS) | F(CODES_FEW))
#define NATIVE (F(NATIVE_FEW) | F(NATIVE_ROW))
#define PACKS (F(PACK_CODES) | F(PACK_MANY) | F(PACK_BF16))
#define FOR_EXPERTS (F(PACK_CODES) | F(NATIVE_PACK))
#define PAIR(name_, first_, next_, fuse_) {.name = (name_), .first = (first_), .next = (next_), .fuse = (fuse_)},
#define SPENT(name_, first_, over_, fuse_) {.name = (name_), .first = (first_), .over = (over_), .fuse = (fuse_)},

/* clang-format off */
const mt_cuda_fusion mt_cuda_fusions[] = {
    /*  name                   first kernel                          next kernel                   */
    PAIR("add to codes",         CODES,                                F(BINARY),                    add_to_codes)
    PAIR("add to bf16",          F(BF16_FEW),                          F(BINARY),                    add_to_bf16)
    PAIR("add to native",        NATIVE,                               F(BINARY),                    add_to_native)
    PAIR("add to experts",       F(COMBINE),                           F(BINARY),                    add_to_experts)
    PAIR("add to row's experts", F(CHOSEN_DOWN),                       F(BINARY),                    add_to_row_experts)
    PAIR("add in norm",          F(BINARY),                            F(NORM_MANY) | F(LAYER_NORM), add_in_norm)
    PAIR("gate in codes",        F(CODES_ROW) | F(CODES_ROWS),         F(GLU),                       gate_in_codes)
    PAIR("gate in bf16",         F(BF16_FEW),                          F(GLU),                       gate_in_bf16)
    PAIR("gate in native",       NATIVE,                               F(GLU),                       gate_in_native)
    PAIR("pack many",            F(NORM_MANY) | F(GLU_MANY),           PACKS,                        pack_made)
    PAIR("pack as bf16",         F(NORM) | F(LAYER_NORM) | F(ACT),     F(PACK_BF16),                 pack_made)
    PAIR("pack norm",            F(NORM),                              F(PACK_CODES),                pack_norm)
    PAIR("pack glu",             F(GLU),                               F(PACK_CODES),                pack_glu)
    PAIR("pack in bf16",         F(BF16_FEW),                          F(PACK_BF16),                 pack_in_bf16)
    PAIR("pack in delta",        F(DELTA_NORMED),                      F(PACK_CODES) | F(PACK_MANY), pack_in_delta)
    PAIR("norm in codes",        F(NORM),                              F(CODES_ROW),                 norm_in_codes)
    PAIR("norm in native",       F(NORM),                              F(NATIVE_ROW),                norm_in_native)
    PAIR("split in heads",       F(SPLIT_HEADS),                       F(HEADS),                     split_in_heads)
    PAIR("heads of both",        F(HEADS),                             F(HEADS),                     heads_of_both)
    PAIR("pages in heads",       F(HEADS),                             F(KV_WRITE),                  pages_in_heads)
    PAIR("route with router",    F(ROUTE),                             FOR_EXPERTS,                  route_with_router)
    PAIR("gates with conv",      F(CONV_KEEP),                         F(GATES),                     gates_with_conv)
    PAIR("norm in delta",        F(DELTA_FEW),                         F(GATED_NORM),                norm_in_delta)
    /*  name                   first kernel                          between                       */
    SPENT("spend queries",       F(ATTENTION_FEW),                     0,                            spend_queries)
    SPENT("spend native",        UINT64_MAX,                           0,                            spend_native)
    SPENT("spend made",          MADE,                                 READERS,                      spend_made)
    SPENT("spend heads",         F(HEADS),                             0,                            spend_heads)
    {.name = NULL},
};
/* clang-format on */
_Static_assert(MT_COUNT(mt_cuda_fusions) <= MT_CUDA_FUSIONS + 1, "the launcher counts as many");
