/* Norms and rotations of queries and keys, and writing keys and values to pages: consecutive operations become one
   kernel (heads.cu). */
#include "device/cuda/cuda.h"

#define THREADS 256 /* sixteen for a head */

/* Most heads turn as a whole, halves against each other. Rows that have products of their own
   (products/codes_rows1_8.c) take the kernel of any heads: with the others a step of one answer was slower
   (docs/gpu.md). */
static mt_cuda_kernel find_kernel(const mt_cuda_heads *p)
{
    const uint32_t dim = p->head_dim;
    if (p->m <= MT_CUDA_ROW_ROWS || p->pairs || (p->table.data && p->table.cols != dim) ||
        (p->v.data && p->kv.head_stride != dim))
        return MT_K_heads;
    return dim == 64 ? MT_K_heads_64 : dim == 128 ? MT_K_heads_128 : MT_K_heads;
}

static void list_heads(mt_device *dev, mt_cuda_heads *p)
{
    uint32_t heads = p->y[0].cols / p->head_dim;
    heads += p->count > 1 ? p->x[1].cols / p->head_dim : 0;
    heads += p->v.data ? p->kv.heads : 0;
    const mt_cuda_kernel kernel = find_kernel(p);
    mt_cuda_launch(dev, kernel, p->m, (heads + THREADS / 16 - 1) / (THREADS / 16), 1, THREADS,
                   kernel == MT_K_heads ? THREADS / 16 * p->head_dim * sizeof(float) : 0, p);
}

/* The last kernel, where it is one of heads. */
static const mt_cuda_heads *last_heads(mt_device *dev)
{
    return mt_cuda_last(dev, MT_K_heads, MT_K_heads_128);
}

/* Whether both can run at once: neither reads what the other writes. */
static bool apart(const mt_cuda_heads *a, const mt_cuda_heads *b)
{
    return a->count == 1 && !a->v.data && a->m == b->m && a->head_dim == b->head_dim && a->eps == b->eps &&
           a->offset == b->offset && a->table.data == b->table.data && a->pairs == b->pairs && !b->gates.data &&
           a->gates.data != b->x[0].data && a->y[0].data != b->x[0].data && a->y[0].data != b->y[0].data &&
           a->x[0].data != b->y[0].data;
}

/* Queries that the last kernel separates from their gates are read where they stand, and the gates are copied. */
static void absorb_split(mt_device *dev, mt_cuda_heads *p)
{
    const mt_cuda_rows *split = mt_cuda_last(dev, MT_K_split_heads, MT_K_split_heads);
    if (!split || split->m != p->m || split->head_dim != p->head_dim || split->y.data != p->x[0].data ||
        split->y.cols != p->x[0].cols || p->y[0].data != p->x[0].data)
        return;
    p->x[0] = split->x;
    p->apart = 2 * p->head_dim;
    p->gates = split->y2;
    mt_cuda_drop(dev);
}

void mt_cuda_op_heads(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, size_t head_dim, const mt_tensor *w,
                      float eps, float offset, const mt_tensor *table, bool pairs)
{
    mt_cuda_heads p = {.x = {x->m}, .y = {y->m}, .count = 1, .m = (uint32_t)m, .head_dim = (uint32_t)head_dim};
    p.apart = (uint32_t)head_dim;
    p.eps = eps;
    p.offset = offset;
    p.pairs = pairs;
    if (w)
        p.w[0] = w->m;
    if (table)
        p.table = table->m;
    absorb_split(dev, &p);
    const mt_cuda_heads *last = last_heads(dev);
    if (last && apart(last, &p)) {
        p.x[1] = p.x[0];
        p.y[1] = p.y[0];
        p.w[1] = p.w[0];
        p.x[0] = last->x[0];
        p.y[0] = last->y[0];
        p.w[0] = last->w[0];
        p.apart = last->apart;
        p.gates = last->gates;
        p.count = 2;
        mt_cuda_drop(dev);
    }
    list_heads(dev, &p);
}

bool mt_cuda_heads_keep(mt_device *dev, const mt_kv *kv, size_t layer, mt_cuda_mat k, mt_cuda_mat v)
{
    const mt_cuda_heads *last = last_heads(dev);
    if (!last || last->v.data || last->m != dev->step.rows || last->head_dim != kv->d.head_dim || kv->d.bits)
        return false;
    mt_cuda_heads p = *last;
    p.keys = p.count - 1;
    if (p.y[p.keys].data != k.data || p.y[0].data == v.data || p.y[p.keys].data == v.data ||
        p.y[p.keys].cols != kv->d.heads * kv->d.head_dim)
        return false;
    p.v = v;
    p.kv = kv->d;
    p.step = dev->step;
    p.layer = (uint32_t)layer;
    mt_cuda_drop(dev);
    list_heads(dev, &p);
    return true;
}
