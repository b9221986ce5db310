/* How products of few rows are divided for codes_rows1_64.cu. */
#include "base/compiler.h"
#include "device/cuda/cuda.h"

#define OWN (18u << 10) /* bytes of shared memory that the kernels use besides */

bool mt_cuda_few_can(const mt_device *dev, const mt_weight *a, const mt_weight *b, size_t m)
{
    const mt_cuda_weight *p = &a->d, *q = &b->d;
    return m <= MT_CUDA_FEW_ROWS && dev->code >= 90 && b->class == MT_CLASS_Q && q->kind != MT_CUDA_PLAIN &&
           (q->group == 32 || q->group == 64 || q->group == 128) && a->class == b->class && p->kind == q->kind &&
           p->group == q->group && p->pairs == q->pairs && p->biased == q->biased && p->format == q->format &&
           p->k == q->k && a->mat.bits == b->mat.bits;
}

/* Chooses chunks and rings that fit shared memory; false where none do. Every tile side by side has slots of its own,
   and at least as many as warps take turns with it: a warp that waits for a chunk must have had the one before in its
   slot. */
static bool share_out(const mt_device *dev, mt_cuda_few *p, uint32_t *shared)
{
    const mt_cuda_weight *w = &p->w[0];
    const uint32_t all = (uint32_t)dev->shared - OWN, each = 128 / w->group;
    const uint32_t pair = w->pairs == MT_SCALE_F32 ? 8 : 4, code = w->kind == MT_CUDA_CODES8 ? 2048 : 1024;
    p->chunk = p->m <= 16 ? 4 : 2;
    if (p->chunk * each < 4) { /* sums are copied in pieces of 16 bytes */
        p->chunk = 4;
        p->split = 1; /* with turns, a warp computes a chunk at once */
    }
    const uint32_t slot = p->chunk * (code + each * 16 * pair), rows = p->chunk * p->m * (144 + each * 4);
    p->row_stages = MT_MIN(all * 2 / 5 / rows, MT_CUDA_FEW_ROW_STAGES);
    p->stages = MT_MIN((all - p->row_stages * rows) / slot, MT_CUDA_FEW_STAGES);
    const uint32_t depth = p->stages / p->together;
    p->split = MT_MIN(MT_MIN(p->split, depth), p->row_stages);
    *shared = p->stages * slot + p->row_stages * rows;
    return p->row_stages >= 2 && depth >= 1;
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
    const uint32_t tiles = p.first[count], blocks = MT_MIN(tiles, (uint32_t)dev->processors);
    const bool codes8 = p.w[0].kind == MT_CUDA_CODES8;
    if (mt_cuda_row_launch(dev, &p))
        return true;
    const uint32_t each = (tiles + blocks - 1) / blocks, warps = MT_CUDA_FEW_WARPS - (m > 32 ? 2 : 0), most = warps / 2;
    const uint32_t rounds = (each + most - 1) / most;
    p.together = (each + rounds - 1) / rounds;
    p.split = m > 32 ? 1 : warps / (2 * p.together);
    if (!share_out(dev, &p, &shared))
        return false;
    const bool plain = p.w[0].group == 64 && p.w[0].k % 128 == 0 && p.w[0].pairs == MT_SCALE_BF16;
    const int size = m <= 8 ? 0 : m <= 16 ? 1 : m <= 32 ? 2 : 3;
    const int kernel = plain && codes8   ? MT_K_few_8_8_64 + size
                       : plain && m <= 8 ? MT_K_few_4_8_64
                                         : MT_K_few_4_8_0 + (codes8 ? 4 : 0) + size;
    mt_cuda_launch(dev, (mt_cuda_kernel)kernel, blocks, 1, 1, 32 * (2 * p.together * p.split + 2), shared, &p);
    return true;
}

bool mt_cuda_few_add(mt_device *dev, mt_cuda_mat y, mt_cuda_mat x, size_t m)
{
    mt_cuda_few *p = mt_cuda_last(dev, MT_K_few_4_8_64, MT_K_row_8_8);
    if (!p || p->count != 1 || p->m != m || p->add.data || p->y[0].data != x.data || p->y[0].cols != x.cols ||
        y.data == x.data || p->w[0].n != y.cols || !mt_cuda_in_twos(y) || (p->made && y.data == p->x.data))
        return false;
    p->add = y;
    return true;
}
