/* Shared by all kernels: R6 and R7 of docs/numerics.md from the same source lines as on the CPU, rows, and where a
   weight's elements are stored. */
#ifndef MT_DEVICE_CUDA_COMMON_COMMON_CUH
#define MT_DEVICE_CUDA_COMMON_COMMON_CUH

#include "device/cuda/params.h"
#include "device/device.h"
#include "kernels/block.h"
#include "kernels/portable/scalar.h"

#define KERNEL(name) extern "C" __global__ void mtk_##name
#define THREADS 256

/* A kernel may start while the kernel before it still runs (host/launch.c). wait_for_last waits until that one has
   ended and its results can be read; start_next lets the next kernel start. */
static __device__ inline void wait_for_last(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

static __device__ inline void start_next(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* For kernels with nothing to do before their input is there. */
static __device__ inline void follow_last(void)
{
    start_next();
    wait_for_last();
}

static __device__ inline float *row_of(const mt_cuda_mat &t, uint64_t i)
{
    return t.data + i * t.stride;
}

static __device__ inline unsigned shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

/* Sixteen threads, of which this is number l, hold a lane each: all get the sum (R6). */
static __device__ inline float fold16(float lane)
{
    for (int width = 8; width > 0; width /= 2)
        lane = lane + __shfl_down_sync(0xffffffffu, lane, width, 16);
    return __shfl_sync(0xffffffffu, lane, 0, 16);
}

/* R6 dot of x and y by sixteen threads; every thread of the warp must call it. */
static __device__ inline float dot16(const float *x, const float *y, uint32_t n)
{
    const uint32_t l = threadIdx.x % 16;
    float lane = 0;
    uint32_t i = l;
#pragma unroll 16
    for (; i - l + 16 <= n; i += 16)
        lane = fmaf(x[i], y[i], lane);
    if (i - l < n)
        lane = i < n ? fmaf(x[i], y[i], lane) : lane + 0.0f;
    return fold16(lane);
}

static __device__ inline float sum16(const float *x, uint32_t n)
{
    const uint32_t l = threadIdx.x % 16;
    float lane = 0;
#pragma unroll 16
    for (uint32_t i = l; i - l < n; i += 16)
        lane += i < n ? x[i] : 0.0f;
    return fold16(lane);
}

static __device__ inline float max_of_block(float m, float *room)
{
    for (int width = 16; width > 0; width /= 2)
        m = mt_max1(m, __shfl_xor_sync(0xffffffffu, m, width));
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = m;
    __syncthreads();
    m = room[0];
    for (unsigned i = 1; i < blockDim.x / 32; i++)
        m = mt_max1(m, room[i]);
    __syncthreads();
    return m;
}

/* Two floats as bf16, the first below. */
static __device__ inline unsigned two_halves(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0,%1,%2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

/* ---- packed rows, see params.h ---- */

/* Where a piece of 16 bytes of q begins. */
static __device__ inline uint64_t piece_at(const mt_cuda_packed &p, uint32_t step, uint32_t row, uint32_t piece)
{
    return ((uint64_t)step * p.rows + row) * 128 + (piece ^ row % 8) * 16;
}

/* The add that goes with the mul of a turn, within a link and at its end. */
static __device__ inline float turn_on_add(float mul)
{
    return fmaf(-MT_DOT_START, mul, MT_DOT_START);
}

static __device__ inline float turn_end_add(float mul)
{
    return -(MT_DOT_START * mul);
}

/* ---- weights ---- */

/* Where a step of a tile of NATIVE4 or NATIVE8 begins, whose steps have so many bytes. */
static __device__ inline const uint8_t *native_step(const mt_cuda_weight &w, uint32_t n, uint32_t k, uint32_t bytes)
{
    return w.w + ((uint64_t)(n / MT_CUDA_NATIVE_TILE) * w.steps + k / MT_CUDA_NATIVE_STEP) * bytes;
}

static __device__ inline int code_at(const mt_cuda_weight &w, uint32_t n, uint32_t k)
{
    const uint32_t r = k % 32, lane = n % 8 * 4 + r % 16 / 4, ks = k % 128 / 32, high = r / 16;
    const uint64_t block = ((uint64_t)(n / 16) * w.steps + k / 128) * 2 + n % 16 / 8;
    if (w.kind == MT_CUDA_CODES4)
        return w.w[block * 512 + lane * 16 + ks * 4 + r % 4] >> (high ? 4 : 0) & 15;
    const uint8_t code = w.w[block * 1024 + lane * 32 + (ks * 2 + high) * 4 + r % 4];
    return w.format == MT_FORMAT_AFFINE ? (int)code : (int)(int8_t)code;
}

/* Scale and bias of a group of a column of a tile; `scales` are the tile's. */
static __device__ inline float2 pair_of(const uint8_t *scales, uint8_t type, uint64_t at)
{
    if (type == MT_SCALE_F32)
        return ((const float2 *)scales)[at];
    const unsigned both = ((const unsigned *)scales)[at];
    return type == MT_SCALE_BF16
               ? make_float2(mt_f32_from_bf16((uint16_t)both), mt_f32_from_bf16((uint16_t)(both >> 16)))
               : make_float2(mt_f32_from_f16((uint16_t)both), mt_f32_from_f16((uint16_t)(both >> 16)));
}

static __device__ inline float2 scale_at(const mt_cuda_weight &w, uint32_t n, uint32_t g)
{
    return pair_of(w.scales, w.pairs, ((uint64_t)(n / 16) * w.groups + g) * 16 + n % 16);
}

/* Where an element of HALVES is, counted in elements; where the four of BYTES are that it is one of. */
static __device__ inline uint64_t half_at(const mt_cuda_weight &w, uint32_t n, uint32_t k)
{
    const uint64_t step = (uint64_t)(n / 16) * w.steps + k / 64;
    if (w.kind == MT_CUDA_HALVES)
        return step * 1024 + n % 16 * 64 + (k % 64 / 8 ^ n % 8) * 8 + k % 8;
    return step * 1024 + n % 16 / 8 * 512 + (n % 8 * 4 + k % 8 / 2) * 16 + k % 64 / 16 * 4;
}

/* An element of BYTES, as it was: see products/fp8.cuh. */
static __device__ inline uint8_t byte_at(const mt_cuda_weight &w, uint32_t n, uint32_t k)
{
    const unsigned word = *(const unsigned *)(w.w + half_at(w, n, k)), own = word >> k % 2 * 16;
    if (k % 16 < 8)
        return (uint8_t)((own >> 8 & 0x80) | (own >> 4 & 0x7f));
    return (uint8_t)((word >> (1 - k % 2) * 16 << 4 & 0x80) | (own >> 8 & 0x78) | (own & 7));
}

/* An element as fp32, as mt_row_f32 has it. Not of NATIVE4 and NATIVE8, which are for products alone. */
static __device__ inline float weight_at(const mt_cuda_weight &w, uint32_t n, uint32_t k)
{
    const uint8_t *row = w.w + (uint64_t)n * w.row_bytes;
    if (w.kind == MT_CUDA_HALVES)
        return mt_f32_from_bf16(((const uint16_t *)w.w)[half_at(w, n, k)]);
    if (w.kind == MT_CUDA_BYTES)
        return ((const float *)w.scales)[(uint64_t)(n / 128) * w.scale_row + k / 128] *
               mt_f32_from_fp8(byte_at(w, n, k));
    switch (w.format) {
    case MT_FORMAT_F32: return ((const float *)row)[k];
    case MT_FORMAT_F16: return mt_f32_from_f16(((const uint16_t *)row)[k]);
    case MT_FORMAT_BF16: return mt_f32_from_bf16(((const uint16_t *)row)[k]);
    case MT_FORMAT_FP8:
        return ((const float *)w.scales)[(uint64_t)(n / 128) * w.scale_row + k / 128] * mt_f32_from_fp8(row[k]);
    case MT_FORMAT_MXFP8:
        return ((const float *)w.scales)[(uint64_t)n * w.scale_row + k / 32] * mt_f32_from_e4m3(row[k]);
    }
    const float2 s = scale_at(w, n, k / w.group);
    const float q = (float)code_at(w, n, k);
    return w.biased ? fmaf(s.x, q, s.y) : s.x * q;
}

#endif
