/* Products in the arithmetic `native` (device/native.h) on the host's side: how rows are packed, which kernel runs on
   how many blocks, and which operations become part of it. */
#include <assert.h>

#include "base/compiler.h"
#include "device/cuda/cuda.h"

#define WARPS (MT_NATIVE_GROUP / MT_NATIVE_SEGMENT) /* of a block that packs: a segment each */

/* A kernel of native_few.cu. */
typedef struct few_kernel {
    mt_cuda_kernel kernel;
    uint32_t rows, tiles;
    size_t shared;
} few_kernel;

static const few_kernel few_kernels[] = {
#define FEW_KERNEL(rows, tiles, stages) \
    {MT_K_native_few_##rows##_##tiles, rows, tiles, MT_CUDA_NATIVE_FEW_SHARED(rows, tiles, stages)},
    MT_CUDA_NATIVE_FEW(FEW_KERNEL)
#undef FEW_KERNEL
};

static uint32_t groups_of(const mt_cuda_weight *w)
{
    return (uint32_t)((w->k + MT_NATIVE_GROUP - 1) / MT_NATIVE_GROUP);
}

/* ---- rows ---- */

/* Rows of a tile of packed rows: the fewest that products of few rows take at once, or those of many. */
static uint32_t tile_rows(size_t m)
{
    uint32_t rows = 8;
    while (rows < m && rows < MT_CUDA_NATIVE_ROWS)
        rows *= 2;
    return rows;
}

/* Replaces the last kernel in the list, if it makes these rows, by one that packs them as well; else false. */
static bool pack_made(mt_device *dev, const mt_cuda_pack *p)
{
    const mt_cuda_made *few = mt_cuda_last(dev, MT_K_norm, MT_K_norm);
    const mt_cuda_made *norm = few ? few : mt_cuda_last(dev, MT_K_norm_many, MT_K_norm_many);
    const mt_cuda_made *glu = mt_cuda_last(dev, MT_K_glu_many, MT_K_glu_many);
    const mt_cuda_rows *glu_few = mt_cuda_last(dev, MT_K_glu, MT_K_glu);
    const mt_cuda_rows *last = norm ? &norm->rows : glu ? &glu->rows : glu_few;
    const bool packs = (norm && norm->pack.to.q) || (glu && glu->pack.to.q);
    if (!last || packs || last->y.data != p->x.data || last->y.cols != p->k || last->m != p->m)
        return false;
    const mt_cuda_made both = {.rows = *last, .pack = *p};
    const size_t padded = p->to.padded, segments = padded / MT_NATIVE_SEGMENT;
    mt_cuda_drop(dev);
    if (norm)
        mt_cuda_launch(dev, MT_K_native_norm, p->m, 1, 1, 32 * MT_MIN(segments, (size_t)32),
                       (padded / 8 * 9 + segments) * sizeof(float), &both);
    else
        mt_cuda_launch(dev, MT_K_native_glu, (segments + WARPS - 1) / WARPS, p->m, 1, 32 * WARPS, 0, &both);
    return true;
}

void mt_cuda_native_pack(mt_device *dev, const mt_weight *w, mt_cuda_mat x, size_t m)
{
    dev->packed = dev->packed_any;
    dev->packed.rows = tile_rows(m);
    dev->packed.padded = (uint32_t)mt_native_padded(w->d.k);
    const mt_cuda_pack p = {.x = x, .to = dev->packed, .m = (uint32_t)m, .k = w->d.k};
    if (!pack_made(dev, &p))
        mt_cuda_launch(dev, MT_K_native_pack, groups_of(&w->d), m, 1, 32 * WARPS, 0, &p);
}

/* ---- products ---- */

/* 64 columns a block where all blocks run at once, else 128. */
static const few_kernel *choose_few(const mt_device *dev, const mt_weight *const *w, size_t count, uint32_t rows)
{
    size_t blocks = 0;
    for (size_t i = 0; i < count; i++)
        blocks += mt_cuda_up(w[i]->d.n, MT_CUDA_NATIVE_TILE) / MT_CUDA_NATIVE_TILE * groups_of(&w[i]->d);
    const uint32_t tiles = blocks <= (size_t)dev->processors * MT_CUDA_NATIVE_FEW_BLOCKS ? 1 : 2;
    const few_kernel *k = few_kernels;
    while (k->rows != rows || k->tiles != tiles)
        k++;
    return k;
}

static void multiply_few(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, size_t m)
{
    const few_kernel *k = choose_few(dev, w, count, dev->packed.rows);
    const size_t columns = (size_t)k->tiles * MT_CUDA_NATIVE_TILE, groups = groups_of(&w[0]->d);
    mt_cuda_native p = {.from = dev->packed, .m = (uint32_t)m, .count = (uint32_t)count};
    for (size_t i = 0; i < count; i++) {
        p.w[i] = w[i]->d;
        p.y[i] = y[i]->m;
        p.first[i + 1] = p.first[i] + (uint32_t)(mt_cuda_up(w[i]->d.n, columns) / columns);
    }
    for (size_t i = count; i < MT_CUDA_TOGETHER; i++)
        p.first[i + 1] = p.first[i];
    mt_cuda_launch_cluster(dev, k->kernel, p.first[count] * groups, groups, MT_CUDA_NATIVE_FEW_THREADS(k->tiles),
                           k->shared, &p);
}

/* Strips of columns, as many at a time as there is room for once they are decoded. */
static void multiply_many(mt_device *dev, mt_tensor *y, const mt_weight *w, size_t m)
{
    const size_t padded = mt_native_padded(w->d.k);
    const size_t most =
        dev->decoded_bytes / (padded * sizeof(mt_f16)) / MT_CUDA_NATIVE_COLUMNS * MT_CUDA_NATIVE_COLUMNS;
    const size_t all = mt_cuda_up(w->d.n, MT_CUDA_NATIVE_COLUMNS);
    const size_t row_tiles =
        (m + MT_CUDA_NATIVE_GROUPS * MT_CUDA_NATIVE_ROWS - 1) / (MT_CUDA_NATIVE_GROUPS * MT_CUDA_NATIVE_ROWS);
    assert(most > 0); /* mt_cuda_device_plan has seen every weight */
    for (size_t column = 0; most > 0 && column < all; column += most) {
        const size_t columns = MT_MIN(most, all - column), tiles = columns / MT_CUDA_NATIVE_COLUMNS * row_tiles;
        const mt_cuda_native_prompt p = {.w = w->d,
                                         .y = y->m,
                                         .from = dev->packed,
                                         .decoded = dev->decoded,
                                         .column = (uint32_t)column,
                                         .columns = (uint32_t)columns,
                                         .m = (uint32_t)m};
        mt_cuda_launch(dev, MT_K_native_decode, w->d.steps, columns / MT_CUDA_NATIVE_TILE, 1, 128, 0, &p);
        mt_cuda_launch(dev, MT_K_native_prompt, MT_MIN(tiles, (size_t)dev->processors), 1, 1, MT_CUDA_NATIVE_THREADS,
                       MT_CUDA_NATIVE_STAGES * MT_CUDA_NATIVE_STAGE + 1024, &p);
    }
}

void mt_cuda_native_launch(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, size_t m)
{
    if (m <= MT_CUDA_FEW_ROWS)
        multiply_few(dev, y, w, count, m);
    for (size_t i = 0; m > MT_CUDA_FEW_ROWS && i < count; i++)
        multiply_many(dev, y[i], w[i], m);
}

bool mt_cuda_native_add(mt_device *dev, mt_cuda_mat y, mt_cuda_mat x, size_t m)
{
    mt_cuda_native *p = mt_cuda_last(dev, MT_K_native_few_8_1, MT_K_native_few_64_2);
    if (!p || p->count != 1 || p->m != m || p->add.data || p->y[0].data != x.data || p->y[0].cols != x.cols ||
        y.data == x.data || p->w[0].n != y.cols)
        return false;
    p->add = y;
    return true;
}
