/* How products of few rows are divided for codes_rows1_64.cu. */
#include "base/compiler.h"
#include "device/cuda/cuda.h"

#define OWN (18u << 10) /* bytes of shared memory that the kernels use besides */

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

mt_cuda_few mt_cuda_few_of(const mt_device *dev, const mt_cuda_products *from)
{
    mt_cuda_few p = {.from = dev->packed, .m = (uint32_t)from->m, .count = (uint32_t)from->count};
    for (size_t i = 0; i < from->count; i++) {
        p.w[i] = from->w[i]->d;
        p.y[i] = from->y[i]->m;
        p.first[i + 1] = p.first[i] + (p.w[i].n + MT_CUDA_TILE - 1) / MT_CUDA_TILE;
    }
    return p;
}

bool mt_cuda_list_few(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *from)
{
    mt_cuda_few p = mt_cuda_few_of(dev, from);
    const uint32_t m = p.m, tiles = p.first[p.count], blocks = MT_MIN(tiles, (uint32_t)dev->processors);
    const uint32_t each = (tiles + blocks - 1) / blocks, warps = MT_CUDA_FEW_WARPS - (m > 32 ? 2 : 0), most = warps / 2;
    const uint32_t rounds = (each + most - 1) / most;
    uint32_t shared = 0;
    p.together = (each + rounds - 1) / rounds;
    p.split = m > 32 ? 1 : warps / (2 * p.together);
    if (!share_out(dev, &p, &shared))
        return false;
    mt_cuda_launch(dev, kernel, blocks, 1, 1, 32 * (2 * p.together * p.split + 2), shared, &p);
    return true;
}
