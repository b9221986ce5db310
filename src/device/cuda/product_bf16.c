/* How products of few bf16 rows are divided for product_bf16.cu. */
#include "base/compiler.h"
#include "device/cuda/cuda.h"

#define CHUNK_BYTES (26u << 10) /* about so many bytes of few rows and their weights */
#define CHUNK_STEPS 8

static size_t tile_bytes(const mt_cuda_weight *w)
{
    return w->kind == MT_CUDA_HALVES ? 2048 : 1024;
}

bool mt_cuda_halves_can(const mt_device *dev, const mt_weight *a, const mt_weight *b, size_t m)
{
    return m <= MT_CUDA_FEW_ROWS && dev->code >= 90 && b->class == MT_CLASS_B && a->class == b->class &&
           a->d.kind == b->d.kind && b->d.kind != MT_CUDA_PLAIN && a->d.k == b->d.k;
}

void mt_cuda_halves_launch(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, size_t m)
{
    static const mt_cuda_kernel kernels[2][3] = {{MT_K_few_halves_1, MT_K_few_halves_2, MT_K_few_halves_4},
                                                 {MT_K_few_bytes_1, MT_K_few_bytes_2, MT_K_few_bytes_4}};
    mt_cuda_halves p = {.from = dev->packed, .m = (uint32_t)m, .count = (uint32_t)count};
    for (size_t i = 0; i < count; i++) {
        p.w[i] = w[i]->d;
        p.y[i] = y[i]->m;
        p.first[i + 1] = p.first[i] + (w[i]->d.n + MT_CUDA_TILE - 1) / MT_CUDA_TILE;
    }
    const uint32_t tiles = p.first[count], each = (tiles + (uint32_t)dev->processors - 1) / (uint32_t)dev->processors;
    const uint32_t rounds = (each + MT_CUDA_HALF_TILES - 1) / MT_CUDA_HALF_TILES;
    p.together = (each + rounds - 1) / rounds;
    const uint32_t step = (uint32_t)(p.together * tile_bytes(&p.w[0]) + m * 128), many = CHUNK_BYTES / step;
    p.chunk = MT_MIN(many ? many : 1, CHUNK_STEPS);
    p.stages = MT_MIN(MT_CUDA_SHARED / (p.chunk * step), MT_CUDA_FEW_HALF_STAGES);
    const uint32_t blocks = MT_MIN((tiles + p.together - 1) / p.together, (uint32_t)dev->processors);
    const size_t shares = m > 32 ? 2 : 1;
    mt_cuda_launch(dev,
                   kernels[p.w[0].kind == MT_CUDA_BYTES][m <= 8    ? 0
                                                         : m <= 16 ? 1
                                                                   : 2],
                   blocks, 1, 1, (p.together * shares + 1) * 32, p.stages * p.chunk * step, &p);
}
