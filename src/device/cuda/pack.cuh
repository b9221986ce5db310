/* Rows in int8 (R3), as products take them (params.h): a warp has a step of 128 of a row, eight lanes a block of 32, a
   lane four elements next to each other. */
#ifndef MT_DEVICE_CUDA_PACK_CUH
#define MT_DEVICE_CUDA_PACK_CUH

#include "device/cuda/common.cuh"

/* Of the eight lanes of a block: numbers of elements 16 and up are added to those 16 before, then by R6. */
static __device__ inline float block_dot(const float x[4], const float y[4])
{
    float sum[4];
#pragma unroll
    for (int c = 0; c < 4; c++)
        sum[c] = fmaf(x[c], y[c], 0.0f);
#pragma unroll
    for (int c = 0; c < 4; c++) /* only of use to the upper four lanes, as what follows to fewer still */
        sum[c] = fmaf(x[c], y[c], __shfl_up_sync(0xffffffffu, sum[c], 4, 8));
#pragma unroll
    for (int width = 2; width > 0; width /= 2)
#pragma unroll
        for (int c = 0; c < 4; c++)
            sum[c] = sum[c] + __shfl_down_sync(0xffffffffu, sum[c], width, 8);
    return __shfl_sync(0xffffffffu, (sum[0] + sum[2]) + (sum[1] + sum[3]), 4, 8);
}

/* Elements of a block as integers, in y; its scale. `sum` becomes their sum over the lane's half of the block. */
static __device__ inline float quantise(float y[4], int *sum, const float x[4], mt_block b)
{
    unsigned both = 0; /* squares, and sums that are moved up to be positive: 516128 * 8192 + 8128 at most */
#pragma unroll
    for (int c = 0; c < 4; c++) {
        y[c] = b.factor > 0.0f ? rintf(x[c] * b.factor) : 0.0f;
        const int q = (int)y[c];
        both += (unsigned)(q * q) * 8192u + (unsigned)(q + 127);
    }
    both += __shfl_xor_sync(0xffffffffu, both, 1);
    both += __shfl_xor_sync(0xffffffffu, both, 2);
    *sum = (int)(both % 8192u) - 16 * 127;
    both += __shfl_xor_sync(0xffffffffu, both, 4);
    return mt_block_fit(b, block_dot(x, y), (float)(both / 8192u));
}

static __device__ inline float largest(const float x[4])
{
    unsigned most = 0; /* as unsigned numbers, magnitudes keep their order, and NaN is above all */
#pragma unroll
    for (int c = 0; c < 4; c++)
        most = max(most, mt_f32_bits(x[c]) & 0x7fffffffu);
#pragma unroll
    for (int width = 1; width < 8; width *= 2)
        most = max(most, __shfl_xor_sync(0xffffffffu, most, width));
    return mt_f32_from_bits(most);
}

/* Sums of groups of 32 and more: by the lanes 0, 1, ... as many as there are groups. */
static __device__ inline void put_sums(float *to, float xs, int sum, uint32_t group)
{
    const uint32_t lane = threadIdx.x % 32, each = group / 32; /* blocks of a group */
    float sx = 0;
    for (uint32_t b = 0; b < each; b++) {
        const uint32_t from = (lane * each + b) * 8 % 32;
        sx = fmaf(__shfl_sync(0xffffffffu, xs, from), (float)__shfl_sync(0xffffffffu, sum, from), sx);
    }
    if (lane < 128 / group)
        to[lane] = sx;
}

/* Four floats of a row from k on, zeros beyond its end. */
static __device__ inline void load_four(float x[4], const float *row, uint32_t k, uint32_t end)
{
    if (k + 4 <= end && (uintptr_t)(row + k) % 16 == 0) {
        const float4 all = *(const float4 *)(row + k);
        x[0] = all.x;
        x[1] = all.y;
        x[2] = all.z;
        x[3] = all.w;
        return;
    }
#pragma unroll
    for (uint32_t c = 0; c < 4; c++)
        x[c] = k + c < end ? row[k + c] : 0;
}

static __device__ inline void store_four(float *row, uint32_t k, uint32_t end, const float x[4])
{
    if (k + 4 <= end && (uintptr_t)(row + k) % 16 == 0) {
        *(float4 *)(row + k) = make_float4(x[0], x[1], x[2], x[3]);
        return;
    }
#pragma unroll
    for (uint32_t c = 0; c < 4; c++)
        if (k + c < end)
            row[k + c] = x[c];
}

/* Step `step` of row i: lane l has elements 4 l to 4 l + 3, zeros beyond k. */
static __device__ inline void pack_step(const mt_cuda_pack &p, uint32_t i, uint32_t step, const float x[4])
{
    const uint32_t lane = threadIdx.x % 32, linked = p.group % 64 == 0;
    float y[4];
    const bool second = linked && lane / 8 % 2;
    const float amax = largest(x);
    int sum;
    float xs = quantise(y, &sum, x, mt_block_of(amax, 0.0f));
    /* the second of a link once more where its scale would be too small, which is rare */
    const float before = __shfl_sync(0xffffffffu, xs, lane - 8), least = second ? mt_block_least(before, p.wide) : 0.0f;
    const mt_block block = mt_block_of(amax, least);
    if (__any_sync(0xffffffffu, block.least)) {
        float z[4];
        int other;
        const float zs = quantise(z, &other, x, block);
        for (int c = 0; block.least && c < 4; c++)
            y[c] = z[c];
        xs = block.least ? zs : xs;
        sum = block.least ? other : sum;
    }
    unsigned q = 0;
#pragma unroll
    for (int c = 0; c < 4; c++)
        q |= ((unsigned)(int)y[c] & 255u) << 8 * c;
    ((unsigned *)(p.to.q + piece_at(p.to, step, i, lane / 4)))[lane % 4] = q;
    const uint64_t at = (uint64_t)step * p.to.rows + i;
    const float next = __shfl_sync(0xffffffffu, xs, lane + 8);
    if (lane % 8 == 0)
        p.to.turns[at * 4 + lane / 8] = linked && !second ? mt_turn_on(xs, next).mul : xs;
    if (p.group >= 32)
        put_sums(p.to.sums + at * (128 / p.group), xs, sum + __shfl_xor_sync(0xffffffffu, sum, 4), p.group);
    else if (lane % 4 == 0)
        p.to.sums[at * 8 + lane / 4] = fmaf(xs, (float)sum, 0.0f);
}

#endif
