/* How products of up to 8 rows with codes in groups of 64 are divided for codes_rows1_8.cu. */
#include "device/cuda/cuda.h"

#define OWN 16u /* bytes of shared memory that the kernels declare */

/* Bytes of shared memory: what the warps of all teams leave in one place of each. */
static size_t left_room(const mt_cuda_few *p)
{
    const size_t bits = p->w[0].kind == MT_CUDA_CODES8 ? 8 : 4;
    return p->m > 1 ? MT_CUDA_ROW_LEFT_MORE(bits) : MT_CUDA_ROW_LEFT(bits);
}

static bool list(mt_device *dev, mt_cuda_kernel kernel, mt_cuda_few *p)
{
    const size_t k = p->w[0].k, sums = p->m * mt_cuda_up(k / MT_CUDA_STEP * 8, 16), left = left_room(p);
    const size_t rows = k / MT_CUDA_STEP * p->m * (128 + 16) + sums + (p->made ? k / 8 * 9 * sizeof(float) : 0);
    if (!dev->ways.row || rows + left + OWN > (size_t)dev->shared)
        return false;
    p->stages = rows + 2 * left + OWN > (size_t)dev->shared ? 1 : 2;
    const size_t tiles = p->first[p->count], most = (tiles + MT_CUDA_ROW_TEAMS - 1) / MT_CUDA_ROW_TEAMS;
    const size_t all = (size_t)dev->processors;
    p->from.padded = p->w[0].k;
    mt_cuda_launch(dev, kernel, most < all ? most : all, 1, 1, 32 * MT_CUDA_ROW_TEAMS * MT_CUDA_ROW_WARPS,
                   rows + p->stages * left, p);
    return true;
}

bool mt_cuda_list_rows(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *from)
{
    mt_cuda_few p = mt_cuda_few_of(dev, from);
    return list(dev, kernel, &p);
}

bool mt_cuda_list_row(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *from)
{
    mt_cuda_few p = mt_cuda_few_of(dev, from);
    p.made = MT_CUDA_AS_THEY_ARE;
    p.x = from->x;
    for (size_t i = 0; i < from->count; i++)
        if (from->y[i]->m.data == from->x.data)
            return false;
    return from->x.data % 16 == 0 && (size_t)p.w[0].k * 6 + OWN + left_room(&p) <= (size_t)dev->shared &&
           list(dev, kernel, &p);
}
