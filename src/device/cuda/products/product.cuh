/* Shared by the kernels of products. */
#ifndef MT_DEVICE_CUDA_PRODUCTS_PRODUCT_CUH
#define MT_DEVICE_CUDA_PRODUCTS_PRODUCT_CUH

#include "device/cuda/common/mma.cuh"

/* ---- weights that share their rows ---- */

/* Which weight a tile of columns is of, of several side by side; the tile becomes one of the weight's own. p.first: the
   first tile of each. */
template <class parameter> static __device__ inline uint32_t weight_of_tile(const parameter &p, uint32_t *tile)
{
    uint32_t i = 0;
    while (i + 1 < p.count && *tile >= p.first[i + 1])
        i++;
    *tile -= p.first[i];
    return i;
}

/* ---- a warp with 16 columns and 8 rows ---- */

enum { ROWS = 8, WARPS = 4 }; /* of a block */

/* What a thread holds of the result: columns `column` and column + 8, rows `row` and row + 1. */
typedef struct tile {
    float a[4], b[4];
    uint32_t column, row; /* of the tile */
} tile;

/* A block has eight rows, or those of a share: number r of them, the first where it is not there. */
static __device__ inline uint32_t row_at(const mt_cuda_product &p, uint32_t r, bool *there)
{
    const uint32_t first = p.shares.experts ? p.shares.share[blockIdx.y].row : blockIdx.y * ROWS;
    const uint32_t rows = p.shares.experts ? p.shares.share[blockIdx.y].rows : p.m - first;
    *there = r < rows;
    return first + (*there ? r : 0);
}

/* The weight that the block's rows are multiplied with; NULL: there is no such share. */
static __device__ inline const mt_cuda_weight *weight_of(const mt_cuda_product &p)
{
    if (!p.shares.experts)
        return &p.w;
    return blockIdx.y < *p.shares.count ? &p.shares.experts[p.shares.share[blockIdx.y].expert] : NULL;
}

static __device__ inline void put(const mt_cuda_product &p, const mt_cuda_weight &w, const tile *t, uint32_t tile_at,
                                  const float y[4])
{
    for (int r = 0; r < 4; r++) {
        const uint32_t n = tile_at * 16 + t->column + (r >> 1) * 8, row = t->row + (r & 1);
        bool there;
        const uint32_t i = row_at(p, row, &there);
        if (n < w.n && there)
            row_of(p.y, i)[n] = w.bias ? y[r] + w.bias[n] : y[r];
    }
}

/* ---- a block with 128 rows and 128 columns ---- */

#if defined(__CUDA_ARCH__)
#define ARCH (__CUDA_ARCH__ / 10)
#else
#define ARCH 90
#endif

/* Steps in shared memory; tiles of rows that a column of tiles meets one by one. */
enum { MANY_STAGES = MT_CUDA_MANY_STAGES(ARCH), BAND = 8 };

/* Where a tile lies: which weight, or expert, its first tile of 16 columns there, its first row and the end of rows. */
typedef struct many_tile {
    uint32_t weight, column, row, end;
} many_tile;

static __device__ inline const mt_cuda_weight &many_weight(const mt_cuda_many &p, const many_tile &t)
{
    return p.shares.experts ? p.shares.experts[t.weight] : p.w[t.weight];
}

static __device__ inline uint32_t many_tiles(const mt_cuda_many &p)
{
    return (p.shares.experts ? *p.shares.count : (p.m + MT_CUDA_MANY - 1) / MT_CUDA_MANY) * p.first[p.count];
}

static __device__ inline many_tile many_tile_at(const mt_cuda_many &p, uint32_t id, uint32_t tiles)
{
    const uint32_t columns = p.first[p.count], rows = (p.m + MT_CUDA_MANY - 1) / MT_CUDA_MANY;
    id = id < tiles ? id : 0; /* beyond the last: anything that is there */
    if (p.shares.experts) {
        const mt_cuda_share s = p.shares.share[id / columns];
        return {s.expert, id % columns * 8, s.row, s.row + s.rows};
    }
    const uint32_t band = id / (BAND * columns), height = rows - band * BAND < BAND ? rows - band * BAND : BAND;
    const uint32_t within = id - band * BAND * columns;
    many_tile t = {0, within / height, (band * BAND + within % height) * MT_CUDA_MANY, p.m};
    t.weight = weight_of_tile(p, &t.column);
    t.column *= 8;
    return t;
}

/* c[16 columns of w][8 rows] += codes (16 x 32) times q (32 x 8) */
static __device__ inline void multiply_codes(int c[4], const unsigned a[4], const unsigned b[2], bool is_signed)
{
    if (is_signed)
        mma_s8_s8(c, a, b[0], b[1]);
    else
        mma_u8_s8(c, a, b[0], b[1]);
}

/* Two neighbours of a row of the result. */
static __device__ inline void many_store(const mt_cuda_many &p, const many_tile &t, uint32_t row, uint32_t n, float2 y)
{
    const mt_cuda_weight &w = many_weight(p, t);
    if (row >= t.end || n >= w.n)
        return;
    float *to = row_of(p.y[p.shares.experts ? 0 : t.weight], row) + n;
    const bool both = n + 1 < w.n;
    if (w.bias) {
        y.x = y.x + w.bias[n];
        y.y = both ? y.y + w.bias[n + 1] : 0;
    }
    if (both)
        *(float2 *)to = y;
    else
        *to = y.x;
}

/* Codes of a block of 32 of a tile's 16 columns, as the left operand. low, high: what a lane has of a step of both
   halves of the columns. */
template <int BITS>
static __device__ inline void tile_codes(unsigned a[4], const uint4 (&low)[BITS / 4], const uint4 (&high)[BITS / 4],
                                         int block)
{
    if (BITS == 4) {
        const unsigned one = (&low[0].x)[block], two = (&high[0].x)[block];
        a[0] = one & 0x0f0f0f0fu;
        a[1] = two & 0x0f0f0f0fu;
        a[2] = one >> 4 & 0x0f0f0f0fu;
        a[3] = two >> 4 & 0x0f0f0f0fu;
    } else {
        constexpr int LAST = BITS / 4 - 1;
        const uint4 &one = low[min(block / 2, LAST)], &two = high[min(block / 2, LAST)];
        a[0] = (&one.x)[block % 2 * 2];
        a[1] = (&two.x)[block % 2 * 2];
        a[2] = (&one.x)[block % 2 * 2 + 1];
        a[3] = (&two.x)[block % 2 * 2 + 1];
    }
}

/* ---- a column of codes in shared memory, times a row in fp32 (R6) ---- */

/* Has the block copy a column's codes, and its scales and biases, group by group. */
static __device__ inline void fetch_codes(const mt_cuda_weight &w, uint32_t n, uint32_t bits, uint8_t *codes,
                                          uint8_t *pairs)
{
    const uint32_t pair = w.pairs == MT_SCALE_F32 ? 8 : 4;
    const uint8_t *from = w.w + ((uint64_t)(n / 16) * w.steps * 2 + n % 16 / 8) * (bits * 128) + n % 8 * (bits * 16);
    const uint8_t *scales = w.scales + ((uint64_t)(n / 16) * w.groups * 16 + n % 16) * pair;
    for (uint32_t i = threadIdx.x; i < w.steps * bits; i += blockDim.x)
        copy_16(shared_address(codes + i * 16), from + (uint64_t)(i / bits) * (bits * 256) + i % bits * 16);
    for (uint32_t g = threadIdx.x; g < w.groups; g += blockDim.x)
        copy_small(shared_address(pairs + g * pair), scales + (uint64_t)g * 16 * pair, pair);
}

/* Where element 16 i of a step is in a row; APART: whose blocks of 32 stand apart (rows/pack.cuh). */
template <bool APART> static __device__ inline uint32_t step_at(uint32_t step, uint32_t i)
{
    return APART ? step * 144 + i / 2 * 36 + i % 2 * 16 : step * 128 + i * 16;
}

/* A lane of the product of a row and a column of codes that are whole numbers from 0 on, in groups of 64 or 128 with
   scales and biases in bf16. */
template <bool APART, int BITS>
static __device__ inline float lane_of_affine(const mt_cuda_weight &w, const float *x, const uint8_t *codes,
                                              const uint8_t *pairs)
{
    const uint32_t l = threadIdx.x % 16, byte = l % 4 * 8, shift = w.group == 64 ? 6 : 7;
    float sum = 0;
#pragma unroll 4
    for (uint32_t step = 0; step < w.steps; step++) {
        uint4 all[BITS / 4];
#pragma unroll
        for (int i = 0; i < BITS / 4; i++)
            all[i] = *(const uint4 *)(codes + (step * 4 + l / 4) * (BITS * 4) + i * 16);
#pragma unroll
        for (uint32_t i = 0; i < 8; i++) { /* elements l, l + 16 and so on of the step */
            const unsigned both = ((const unsigned *)pairs)[step * 128 + i / 4 * 64 >> shift];
            const uint32_t number = BITS == 4 ? i / 2 : i;
            const unsigned word = (&all[number / 4].x)[number % 4] >> byte;
            /* of 2^23 the lowest bit counts 1, of 2^19 the fifth */
            const bool upper = BITS == 4 && i % 2;
            const unsigned bits = upper ? word & 0xf0u | 0x49000000u : word & (BITS == 4 ? 0xfu : 0xffu) | 0x4b000000u;
            const float v = __uint_as_float(bits) - (upper ? 0x1p19f : 0x1p23f);
            sum = fmaf(fmaf(__uint_as_float(both << 16), v, __uint_as_float(both & 0xffff0000u)),
                       x[step_at<APART>(step, i) + l], sum);
        }
    }
    return sum;
}

/* The same for any codes. */
template <bool APART>
static __device__ inline float lane_of_codes(const mt_cuda_weight &w, const float *x, const uint8_t *codes,
                                             const uint8_t *pairs)
{
    const uint32_t l = threadIdx.x % 16, shift = 31 - __clz(w.group), byte = l % 4 * 8;
    const bool wide = w.kind == MT_CUDA_CODES8, is_signed = wide && w.format != MT_FORMAT_AFFINE;
    const float from = is_signed ? 0x1p23f + 128.0f : 0x1p23f; /* what 2^23 + code is too much */
    float sum = 0;
    for (uint32_t step = 0; step < w.steps; step++) {
        const uint4 one = *(const uint4 *)(codes + (wide ? step * 128 + l / 4 * 32 : step * 64 + l / 4 * 16));
        const uint4 two = wide ? *(const uint4 *)(codes + step * 128 + l / 4 * 32 + 16) : one;
        const unsigned words[8] = {one.x, one.y, one.z, one.w, two.x, two.y, two.z, two.w};
#pragma unroll
        for (uint32_t i = 0; i < 8; i++) {
            unsigned code = wide ? words[i] >> byte & 0xffu : words[i / 2] >> (byte + i % 2 * 4) & 0xfu;
            code ^= is_signed ? 0x80u : 0u;
            const float2 s = pair_of(pairs, w.pairs, step * 128 + i * 16 >> shift);
            const float v = __uint_as_float(0x4b000000u | code) - from;
            sum = fmaf(w.biased ? fmaf(s.x, v, s.y) : s.x * v, x[step_at<APART>(step, i) + l], sum);
        }
    }
    return sum;
}

/* The product, by sixteen threads. k is a multiple of 128, and bytes of such a step stand as code_at has it. */
template <bool APART>
static __device__ inline float dot_codes(const mt_cuda_weight &w, const float *x, const uint8_t *codes,
                                         const uint8_t *pairs)
{
    if (w.format != MT_FORMAT_AFFINE || !w.biased || w.pairs != MT_SCALE_BF16 || w.group < 64)
        return fold16(lane_of_codes<APART>(w, x, codes, pairs));
    return fold16(w.kind == MT_CUDA_CODES4 ? lane_of_affine<APART, 4>(w, x, codes, pairs)
                                           : lane_of_affine<APART, 8>(w, x, codes, pairs));
}

#endif
