/* How products of few rows are cut for product_few.cu. */
#include "device/cuda/cuda.h"

#define SHARED (112u << 10) /* of a block of few rows, so that one of the next product can stand beside it */
/* A slot is waited for by its turn, odd or even: one for each tile side by side. */
#define LEAST_STAGES MT_CUDA_FEW_TILES

bool mt_cuda_few_can(const mt_device *dev, const mt_weight *a, const mt_weight *b, size_t m)
{
    const mt_cuda_weight *p = &a->d, *q = &b->d;
    return m <= MT_CUDA_FEW_ROWS && dev->code >= 90 && b->class == MT_CLASS_Q && q->kind != MT_CUDA_PLAIN &&
           (q->group == 32 || q->group == 64 || q->group == 128) && a->class == b->class && p->kind == q->kind &&
           p->group == q->group && p->pairs == q->pairs && p->biased == q->biased && p->format == q->format &&
           p->k == q->k && a->mat.bits == b->mat.bits;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Chunks and rings that fit; false where none do. */
static bool share_out(const mt_device *dev, mt_cuda_few *p, uint32_t *shared)
{
    const uint32_t all = p->m <= 16 ? SHARED : (uint32_t)dev->shared - 1024;
    const mt_cuda_weight *w = &p->w[0];
    const uint32_t each = 128 / w->group, pair = w->pairs == MT_SCALE_F32 ? 8 : 4, wide = w->kind == MT_CUDA_CODES8;
    p->chunk = (p->m <= 16 ? 8 >> wide : p->m <= 32 ? 4 : 2);
    while (p->chunk * each < 4) /* sums are copied in pieces of 16 bytes */
        p->chunk *= 2;
    const uint32_t slot = p->chunk * ((wide ? 2048 : 1024) + each * 16 * pair),
                   rows = p->chunk * p->m * (144 + each * 4);
    p->row_stages = least(all * 3 / 5 / rows, MT_CUDA_FEW_ROW_STAGES);
    if (p->row_stages < 2 || p->row_stages * rows + LEAST_STAGES * slot > all)
        return false;
    p->stages = least((all - p->row_stages * rows) / slot, MT_CUDA_FEW_STAGES);
    *shared = p->stages * slot + p->row_stages * rows;
    return true;
}

/* A row by itself, where it has a kernel of its own. */
static bool launch_row(mt_device *dev, const mt_cuda_few *p)
{
    const mt_cuda_weight *w = &p->w[0];
    if (!dev->ways.row || p->m != 1 || w->kind != MT_CUDA_CODES4 || w->format != MT_FORMAT_AFFINE || w->group != 64 ||
        w->k % MT_CUDA_STEP != 0 || w->pairs != MT_SCALE_BF16)
        return false;
    const size_t steps = w->k / MT_CUDA_STEP, shared = steps * (128 + 16 + 8);
    const size_t blocks = (2 * (size_t)p->first[p->count] + MT_CUDA_ROW_WARPS - 1) / MT_CUDA_ROW_WARPS;
    if (shared > (size_t)dev->shared)
        return false;
    const mt_cuda_kernel kernel = blocks > 4 * (size_t)dev->processors ? MT_K_row_wide : MT_K_row_deep;
    mt_cuda_launch(dev, kernel, blocks, 1, 1, 32 * MT_CUDA_ROW_WARPS, shared, p);
    return true;
}

bool mt_cuda_few_launch(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, size_t m)
{
    mt_cuda_few p = {.from = dev->packed, .m = (uint32_t)m, .count = (uint32_t)count};
    uint32_t shared = 0;
    for (size_t i = 0; i < count; i++) {
        p.w[i] = w[i]->d;
        p.y[i] = y[i]->m;
        p.first[i + 1] = p.first[i] + (w[i]->d.n + 15) / 16;
    }
    if (launch_row(dev, &p))
        return true;
    if (!share_out(dev, &p, &shared))
        return false;
    const uint32_t tiles = p.first[count], blocks = least(tiles, (uint32_t)dev->processors);
    const uint32_t each = (tiles + blocks - 1) / blocks, rounds = (each + MT_CUDA_FEW_TILES - 1) / MT_CUDA_FEW_TILES;
    p.together = (each + rounds - 1) / rounds;
    const bool plain = p.w[0].group == 64 && p.w[0].k % 128 == 0 && p.w[0].pairs == MT_SCALE_BF16;
    const int kernel = MT_K_few_4_8_64 + (plain ? 0 : 8) + (p.w[0].kind == MT_CUDA_CODES8 ? 4 : 0) +
                       (m <= 8    ? 0
                        : m <= 16 ? 1
                        : m <= 32 ? 2
                                  : 3);
    mt_cuda_launch(dev, (mt_cuda_kernel)kernel, blocks, 1, 1, 32 * (2 * p.together + 2), shared, &p);
    return true;
}

bool mt_cuda_few_add(mt_device *dev, mt_cuda_mat y, mt_cuda_mat x, size_t m)
{
    mt_cuda_few *p = mt_cuda_last(dev, MT_K_few_4_8_64, MT_K_row_wide);
    if (!p || p->count != 1 || p->m != m || p->add.data || p->y[0].data != x.data || p->y[0].cols != x.cols ||
        y.data == x.data || p->w[0].n != y.cols)
        return false;
    p->add = y;
    return true;
}
