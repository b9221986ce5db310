/* Rows sorted by expert, in shares of up to 8 rows, with codes of any usual group (R4): y = x W' for one part of each
   expert.

   Roofline: memory. A warp has 16 columns of an expert, and a ring of its own with the steps to come. */
#include "device/cuda/products/product.cuh"

enum { SHARE_WARPS = 4, SHARE_STAGES = MT_CUDA_SHARE_STAGES };

/* A stage of a warp: codes and scales of 16 columns; 8 rows, their turns and sums. */
template <int BITS, int GROUP> struct share_stage {
    enum {
        EACH = 128 / GROUP,
        SCALES = BITS * 256,
        ROWS_AT = SCALES + EACH * 16 * 8,
        TURNS = ROWS_AT + 1024,
        SUMS = TURNS + 128,
        BYTES = SUMS + 8 * EACH * 4
    };
};

/* Begins to copy a step: codes, scales (0 beyond k), rows. */
template <int BITS, int GROUP>
static __device__ inline void share_fetch(const mt_cuda_weight &w, const mt_cuda_packed &from, uint32_t tile_at,
                                          uint32_t row, uint32_t step, unsigned to)
{
    typedef share_stage<BITS, GROUP> S;
    const uint32_t lane = threadIdx.x % 32, pieces = w.pairs == MT_SCALE_F32 ? 8 : 4; /* of a group's scales */
    const uint64_t place = (uint64_t)step * from.rows + row;
    const uint8_t *codes = w.w + ((uint64_t)tile_at * w.steps + step) * (BITS * 256);
    const uint8_t *scales = w.scales + ((uint64_t)tile_at * w.groups + step * S::EACH) * (16 * pieces);
#pragma unroll
    for (int i = 0; i < BITS / 2; i++)
        copy_16(to + (lane + i * 32) * 16, codes + (lane + i * 32) * 16);
    if (lane < S::EACH * pieces)
        copy_or_clear(to + S::SCALES + lane * 16, scales + lane * 16, step * S::EACH + lane / pieces < w.groups);
#pragma unroll
    for (int i = 0; i < 2; i++)
        copy_16(to + S::ROWS_AT + (lane + i * 32) * 16, from.q + place * 128 + (lane + i * 32) * 16);
    if (lane < 8)
        copy_16(to + S::TURNS + lane * 16, from.turns + place * 4 + lane * 4);
    if (lane < 2 * S::EACH)
        copy_16(to + S::SUMS + lane * 16, from.sums + place * S::EACH + lane * 4);
}

/* Codes of a block of 32. */
template <int BITS> static __device__ inline void share_codes(unsigned a[4], const uint8_t *at, uint32_t block)
{
    const uint32_t lane = threadIdx.x % 32;
    if (BITS == 4) {
        const unsigned low = *(const unsigned *)(at + lane * 16 + block * 4);
        const unsigned high = *(const unsigned *)(at + 512 + lane * 16 + block * 4);
        a[0] = low & 0x0f0f0f0fu;
        a[1] = high & 0x0f0f0f0fu;
        a[2] = low >> 4 & 0x0f0f0f0fu;
        a[3] = high >> 4 & 0x0f0f0f0fu;
    } else {
        const uint2 low = *(const uint2 *)(at + lane * 32 + block * 8),
                    high = *(const uint2 *)(at + 1024 + lane * 32 + block * 8);
        a[0] = low.x;
        a[1] = high.x;
        a[2] = low.y;
        a[3] = high.y;
    }
}

/* A step of 128 of k: columns lane / 4 and + 8, rows lane % 4 * 2 and + 1. */
template <int BITS, int GROUP>
static __device__ inline void share_step(float a[4], float b[4], const uint8_t *at, uint8_t pairs, bool is_signed)
{
    typedef share_stage<BITS, GROUP> S;
    const uint32_t lane = threadIdx.x % 32, column = lane / 4, row = lane % 4 * 2;
    const float *turns = (const float *)(at + S::TURNS) + row * 4,
                *sums = (const float *)(at + S::SUMS) + row * S::EACH;
    const uint8_t *q = at + S::ROWS_AT + column * 128 + lane % 4 * 4; /* as right operand a lane has row lane / 4 */
    int sum[4] = {MT_DOT_BITS, MT_DOT_BITS, MT_DOT_BITS, MT_DOT_BITS};
#pragma unroll
    for (int block = 0; block < 4; block++) {
        const int g = block * 32 / GROUP;
        const float mul[2] = {turns[block], turns[4 + block]};
        const unsigned x[2] = {*(const unsigned *)(q + (block * 2 ^ column) * 16),
                               *(const unsigned *)(q + (block * 2 + 1 ^ column) * 16)};
        unsigned codes[4];
        share_codes<BITS>(codes, at, block);
        multiply_codes(sum, codes, x, is_signed);
        if (GROUP > 32 && block % 2 == 0) {
#pragma unroll
            for (int r = 0; r < 4; r++)
                sum[r] = __float_as_int(fmaf(mul[r & 1], __int_as_float(sum[r]), turn_on_add(mul[r & 1])));
            continue;
        }
        const float2 pair[2] = {pair_of(at + S::SCALES, pairs, g * 16 + column),
                                pair_of(at + S::SCALES, pairs, g * 16 + column + 8)};
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const float m = mul[r & 1];
            a[r] = fmaf(pair[r >> 1].x, fmaf(m, __int_as_float(sum[r]), turn_end_add(m)), a[r]);
            if ((block + 1) * 32 % GROUP == 0)
                b[r] = fmaf(pair[r >> 1].y, sums[(r & 1) * S::EACH + g], b[r]);
            sum[r] = MT_DOT_BITS;
        }
    }
}

template <int BITS, int GROUP> static __device__ inline void few_shares(const mt_cuda_few_shares &p)
{
    typedef share_stage<BITS, GROUP> S;
    extern __shared__ __align__(128) uint8_t ring[];
    follow_last();
    if (blockIdx.y >= *p.shares[0].count)
        return;
    const mt_cuda_share share = p.shares[0].share[blockIdx.y];
    const mt_cuda_weight w = p.shares[blockIdx.z].experts[share.expert];
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, tile_at = blockIdx.x * SHARE_WARPS + warp;
    uint8_t *mine = ring + warp * (SHARE_STAGES * S::BYTES);
    if (tile_at * 16 >= w.n)
        return;
    float a[4] = {0}, b[4] = {0};
    for (uint32_t s = 0; s < SHARE_STAGES - 1; s++) {
        if (s < w.steps)
            share_fetch<BITS, GROUP>(w, p.from, tile_at, share.row, s, shared_address(mine + s * S::BYTES));
        copy_commit();
    }
    for (uint32_t s = 0; s < w.steps; s++) {
        const uint32_t next = s + SHARE_STAGES - 1;
        copy_wait<SHARE_STAGES - 2>();
        __syncwarp();
        if (next < w.steps)
            share_fetch<BITS, GROUP>(w, p.from, tile_at, share.row, next,
                                     shared_address(mine + next % SHARE_STAGES * S::BYTES));
        copy_commit();
        share_step<BITS, GROUP>(a, b, mine + s % SHARE_STAGES * S::BYTES, w.pairs, w.format != MT_FORMAT_AFFINE);
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const uint32_t n = tile_at * 16 + lane / 4 + (r >> 1) * 8, row = lane % 4 * 2 + (r & 1);
        const float y = w.biased ? a[r] + b[r] : a[r];
        if (n < w.n && row < share.rows)
            row_of(p.y[blockIdx.z], share.row + row)[n] = w.bias ? y + w.bias[n] : y;
    }
}

#define SHARES(name, bits, group)                              \
    KERNEL(name)(const __grid_constant__ mt_cuda_few_shares p) \
    {                                                          \
        few_shares<bits, group>(p);                            \
    }

SHARES(experts_w4_g32_rows1_8, 4, 32)
SHARES(experts_w4_g64_rows1_8, 4, 64)
SHARES(experts_w4_g128_rows1_8, 4, 128)
SHARES(experts_w8_g32_rows1_8, 8, 32)
SHARES(experts_w8_g64_rows1_8, 8, 64)
SHARES(experts_w8_g128_rows1_8, 8, 128)
