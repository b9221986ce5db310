/* Norms and rotations of queries and keys, and writing keys and values to pages (heads.cu). */
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

void mt_cuda_heads_launch(mt_device *dev, const mt_cuda_heads *p)
{
    uint32_t heads = p->y[0].cols / p->head_dim;
    heads += p->count > 1 ? p->x[1].cols / p->head_dim : 0;
    heads += p->v.data ? p->kv.heads : 0;
    const mt_cuda_kernel kernel = find_kernel(p);
    mt_cuda_launch(dev, kernel, p->m, (heads + THREADS / 16 - 1) / (THREADS / 16), 1, THREADS,
                   kernel == MT_K_heads ? THREADS / 16 * p->head_dim * sizeof(float) : 0, p);
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
    mt_cuda_heads_launch(dev, &p);
}
