/* How products in fp32 are cut for f32.cu. */
#include "base/compiler.h"
#include "device/cuda/cuda.h"

#define FEW_ROWS 64   /* at most; */
#define FEW_COLUMNS 8 /* or so many columns, which a tile for many rows would leave empty */

/* A tile, and the kernel that has it. */
typedef struct tiling {
    mt_cuda_kernel kernel;
    uint32_t rows, columns, threads, shared;
} tiling;

static uint32_t bits_of(const mt_weight *w)
{
    return w->d.kind == MT_CUDA_CODES4 ? 4 : w->d.kind == MT_CUDA_CODES8 ? 8 : w->mat.bits;
}

static size_t count_tiles(const mt_weight *const *w, size_t count, size_t columns)
{
    size_t tiles = 0;
    for (size_t i = 0; i < count; i++)
        tiles += (w[i]->d.n + columns - 1) / columns;
    return tiles;
}

/* Few rows in tiles of 4, 8 or 16: the smallest of which there are no more than processors. */
static tiling few(const mt_device *dev, const mt_weight *const *w, size_t count, size_t m)
{
    static const mt_cuda_kernel kernels[] = {MT_K_matmul_f32_rows4, MT_K_matmul_f32_rows8, MT_K_matmul_f32_rows16};
    const size_t tiles = count_tiles(w, count, MT_CUDA_F32_COLUMNS);
    tiling best = {0};
    for (uint32_t i = 0; i < MT_COUNT(kernels); i++) {
        const uint32_t rows = 4u << i, shared = MT_CUDA_F32_SHARED(rows, MT_CUDA_F32_COLUMNS, MT_CUDA_F32_DEPTH,
                                                                   MT_CUDA_F32_STAGES, bits_of(w[0]));
        if (shared > (uint32_t)dev->shared ||
            (best.rows && tiles * ((m + best.rows - 1) / best.rows) <= (size_t)dev->processors))
            break;
        best = (tiling){kernels[i], rows, MT_CUDA_F32_COLUMNS, 128, shared};
    }
    return best;
}

/* Many rows in tiles of 32, or of 16 where those would leave processors idle. */
static tiling many(const mt_device *dev, const mt_weight *const *w, size_t count, size_t m)
{
    const size_t tiles = count_tiles(w, count, MT_CUDA_F32_MANY_COLUMNS);
    const bool large = tiles * ((m + 31) / 32) >= (size_t)dev->processors;
    const uint32_t rows = large ? 32 : 16;
    return (tiling){large ? MT_K_matmul_f32_wide_rows32 : MT_K_matmul_f32_wide_rows16, rows, MT_CUDA_F32_MANY_COLUMNS,
                    256,
                    MT_CUDA_F32_SHARED(rows, MT_CUDA_F32_MANY_COLUMNS, MT_CUDA_F32_MANY_DEPTH, MT_CUDA_F32_MANY_STAGES,
                                       bits_of(w[0]))};
}

bool mt_cuda_list_f32(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *from)
{
    const mt_weight *const *w = from->w;
    const size_t count = from->count, m = from->m;
    size_t columns = 0;
    (void)kernel;
    if (w[0]->d.kind != MT_CUDA_PLAIN && (w[0]->d.group < 16 || 128 % w[0]->d.group))
        return false;
    for (size_t i = 0; i < count; i++)
        columns += w[i]->d.n;
    tiling t = many(dev, w, count, m);
    if (m <= FEW_ROWS || columns <= FEW_COLUMNS || t.shared > (uint32_t)dev->shared)
        t = few(dev, w, count, m);
    if (!t.rows)
        return false;
    mt_cuda_f32 p = {.x = from->x, .m = (uint32_t)m, .count = (uint32_t)count, .bits = bits_of(w[0])};
    for (size_t i = 0; i < count; i++) {
        p.w[i] = w[i]->d;
        p.y[i] = from->y[i]->m;
        p.first[i + 1] = p.first[i] + (w[i]->d.n + t.columns - 1) / t.columns;
    }
    mt_cuda_launch(dev, t.kernel, p.first[count], (m + t.rows - 1) / t.rows, 1, t.threads, t.shared, &p);
    return true;
}
