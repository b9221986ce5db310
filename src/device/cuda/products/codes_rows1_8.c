/* How products of up to 8 rows are launched for codes_rows1_8.cu, and which operations become part of them: making a
   row before, gates behind. */
#include <assert.h>

#include "device/cuda/cuda.h"

#define OWN 16u /* bytes of shared memory that the kernels declare */

/* Bytes of shared memory: what the warps of all teams leave in one place of each. */
static size_t left_room(const mt_cuda_few *p)
{
    const size_t bits = p->w[0].kind == MT_CUDA_CODES8 ? 8 : 4;
    return p->m > 1 ? MT_CUDA_ROW_LEFT_MORE(bits) : MT_CUDA_ROW_LEFT(bits);
}

static bool can(const mt_device *dev, const mt_cuda_few *p)
{
    const mt_cuda_weight *w = &p->w[0];
    return dev->ways.row && p->m <= MT_CUDA_ROW_ROWS && w->group == 64 && w->k % MT_CUDA_STEP == 0 &&
           w->pairs == MT_SCALE_BF16;
}

bool mt_cuda_row_launch(mt_device *dev, mt_cuda_few *p)
{
    const size_t k = p->w[0].k, sums = p->m * mt_cuda_up(k / MT_CUDA_STEP * 8, 16), left = left_room(p);
    const size_t rows = k / MT_CUDA_STEP * p->m * (128 + 16) + sums + (p->made ? k / 8 * 9 * sizeof(float) : 0);
    if (!can(dev, p) || rows + left + OWN > (size_t)dev->shared)
        return false;
    p->stages = rows + 2 * left + OWN > (size_t)dev->shared ? 1 : 2;
    const size_t shared = rows + p->stages * left;
    const size_t tiles = p->first[p->count], most = (tiles + MT_CUDA_ROW_TEAMS - 1) / MT_CUDA_ROW_TEAMS;
    const size_t all = (size_t)dev->processors;
    const int kernel = MT_K_row_4_1 + (p->w[0].kind == MT_CUDA_CODES8 ? 2 : 0) + (p->m > 1);
    p->from.padded = p->w[0].k;
    mt_cuda_launch(dev, (mt_cuda_kernel)kernel, most < all ? most : all, 1, 1,
                   32 * MT_CUDA_ROW_TEAMS * MT_CUDA_ROW_WARPS, shared, p);
    return true;
}

/* If the last kernel in the list norms the row, this kernel does it instead. */
static void absorb_norm(mt_device *dev, mt_cuda_few *p)
{
    const mt_cuda_made *last = mt_cuda_last(dev, MT_K_norm, MT_K_norm);
    const mt_cuda_rows *norm = last ? &last->rows : NULL;
    p->made = MT_CUDA_AS_THEY_ARE;
    if (!norm || norm->y.data != p->x.data || norm->y.cols != p->w[0].k || norm->m != 1 ||
        norm->y.data == norm->x.data || norm->x.data % 16 || norm->y.data % 16)
        return;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->y[i].data == norm->x.data || p->y[i].data == norm->y.data)
            return;
    p->made = MT_CUDA_NORMED;
    p->x = norm->x;
    p->out = norm->y;
    p->norm = norm->w.data;
    p->eps = norm->eps;
    p->offset = norm->offset;
}

bool mt_cuda_row_make(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, mt_cuda_mat x)
{
    mt_cuda_few p = {.from = dev->packed, .m = 1, .count = (uint32_t)count, .x = x};
    for (size_t i = 0; i < count; i++) {
        p.w[i] = w[i]->d;
        p.y[i] = y[i]->m;
        p.first[i + 1] = p.first[i] + (w[i]->d.n + 15) / 16;
        if (y[i]->m.data == x.data)
            return false;
    }
    if (!can(dev, &p))
        return false;
    if (x.data % 16 || (size_t)p.w[0].k * 6 + OWN + left_room(&p) > (size_t)dev->shared)
        return false;
    absorb_norm(dev, &p);
    if (p.made == MT_CUDA_NORMED)
        mt_cuda_drop(dev);
    const bool listed = mt_cuda_row_launch(dev, &p);
    assert(listed);
    return listed;
}

bool mt_cuda_row_glu(mt_device *dev, mt_cuda_mat y, mt_cuda_mat gate, mt_cuda_mat up, size_t m, const mt_glu *glu)
{
    mt_cuda_few *p = mt_cuda_last(dev, MT_K_row_4_1, MT_K_row_8_8);
    if (!p || p->count != 2 || p->m != m || p->add.data || p->glu.data || p->y[0].data != gate.data ||
        p->y[1].data != up.data || p->w[0].n != p->w[1].n || p->w[0].n != y.cols || y.data == up.data ||
        (p->made && y.data == p->x.data))
        return false;
    p->glu = y;
    p->glu_limit = glu->limit;
    p->glu_offset = glu->offset;
    p->act = glu->act;
    return true;
}
