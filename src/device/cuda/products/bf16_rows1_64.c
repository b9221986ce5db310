/* How products of few bf16 rows are divided for bf16_rows1_64.cu. */
#include "base/compiler.h"
#include "device/cuda/cuda.h"

/* What a block fetches at a time: about so many bytes of few rows and their weights, at most so many steps. Copies of a
   tile are as long as its chunk, and small ones are slow: rather fewer tiles side by side, and more rounds. */
#define CHUNK_BYTES (52u << 10)
#define CHUNK_STEPS 8

static size_t tile_bytes(const mt_cuda_weight *w)
{
    return w->kind == MT_CUDA_HALVES ? 2048 : 1024;
}

/* Most tiles side by side. With FP8 more rows than eight are worth more tiles: every round reads them again. */
static uint32_t most_tiles(const mt_cuda_halves *p)
{
    if (p->m > 32)
        return MT_CUDA_HALF_WARPS / 2;
    return p->w[0].kind == MT_CUDA_HALVES ? 4 : p->m <= 8 ? 6 : MT_CUDA_HALF_WARPS;
}

/* Tiles side by side, two weights' in pairs, and how many warps share each: as many as there are, so that each has few
   rows. */
static void share_out(const mt_device *dev, mt_cuda_halves *p, uint32_t *warps, uint32_t *eights)
{
    const uint32_t most = most_tiles(p), all = (p->m + 7) / 8, tiles = p->first[p->count];
    const uint32_t each = (tiles + (uint32_t)dev->processors - 1) / (uint32_t)dev->processors;
    const uint32_t rounds = (each + most - 1) / most;
    p->together = (each + rounds - 1) / rounds;
    if (p->count == 2 && p->together > 1)
        p->together = (p->together + 1) / 2 * 2;
    *eights = 1;
    while (*eights < 4 && p->together * ((all + *eights - 1) / *eights) > MT_CUDA_HALF_WARPS)
        *eights *= 2;
    *warps = p->together * ((all + *eights - 1) / *eights);
}

/* With FP8 and up to 32 rows: two, four or eight warps share the k of two tiles, 128 at a time. Returns the bytes in
   which they exchange sums. */
static uint32_t share_k(mt_cuda_halves *p, uint32_t *warps, mt_cuda_kernel *kernel)
{
    static const mt_cuda_kernel kernels[3][3] = {
        {MT_K_COUNT, MT_K_matmul_fp8_split4_rows1_8, MT_K_matmul_fp8_split8_rows1_8}, /* most_tiles */
        {MT_K_matmul_fp8_split2_rows9_16, MT_K_matmul_fp8_split4_rows9_16, MT_K_matmul_fp8_split8_rows9_16},
        {MT_K_matmul_fp8_split2_rows17_32, MT_K_matmul_fp8_split4_rows17_32, MT_K_matmul_fp8_split8_rows17_32}};
    const uint32_t rows = p->m <= 8 ? 0 : p->m <= 16 ? 1 : 2, pairs = (p->together + 1) / 2;
    const uint32_t sharing = pairs == 1 ? 2 : pairs <= 3 ? 1 : 0, split = 2u << sharing;
    const uint32_t sums = pairs * 2 * split * MT_CUDA_HALF_PART(1u << rows), step = p->together * 1024 + p->m * 128;
    *kernel = kernels[rows][sharing];
    *warps = pairs * split;
    p->chunk = 2 * split; /* or less, but of what they have in a turn no two chunks are in the same place */
    while (p->chunk > 2 && (MT_CUDA_SHARED - sums) / (p->chunk * step) < 2)
        p->chunk /= 2;
    return sums;
}

bool mt_cuda_list_bf16(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *from)
{
    static const mt_cuda_kernel kernels[2][3] = {
        {MT_K_matmul_bf16_warp8_rows1_64, MT_K_matmul_bf16_warp16_rows1_64, MT_K_matmul_bf16_warp32_rows1_64},
        {MT_K_matmul_fp8_warp8_rows1_64, MT_K_matmul_fp8_warp16_rows1_64, MT_K_matmul_fp8_warp32_rows1_64}};
    const size_t count = from->count, m = from->m;
    mt_cuda_halves p = {.from = dev->packed, .m = (uint32_t)m, .count = (uint32_t)count};
    for (size_t i = 0; i < count; i++) {
        p.w[i] = from->w[i]->d;
        p.y[i] = from->y[i]->m;
        p.first[i + 1] = p.first[i] + (p.w[i].n + MT_CUDA_TILE - 1) / MT_CUDA_TILE;
    }
    uint32_t warps, eights, room = MT_CUDA_SHARED;
    share_out(dev, &p, &warps, &eights);
    const bool bytes = p.w[0].kind == MT_CUDA_BYTES;
    const uint32_t step = (uint32_t)(p.together * tile_bytes(&p.w[0]) + m * 128), many = CHUNK_BYTES / step;
    kernel = kernels[bytes][eights / 2];
    p.chunk = MT_MIN(many ? many : 1, CHUNK_STEPS);
    if (bytes) /* with whole scales */
        p.chunk = p.chunk < 2 ? 2 : p.chunk / 2 * 2;
    if (bytes && m <= 32)
        room -= share_k(&p, &warps, &kernel);
    p.stages = MT_MIN(room / (p.chunk * step), MT_CUDA_FEW_HALF_STAGES);
    const uint32_t blocks = MT_MIN((p.first[count] + p.together - 1) / p.together, (uint32_t)dev->processors);
    mt_cuda_launch(dev, kernel, blocks, 1, 1, (warps + 1) * 32, p.stages * p.chunk * step + MT_CUDA_SHARED - room, &p);
    return true;
}
