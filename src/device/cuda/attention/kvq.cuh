/* Quantises vectors of keys and values to integers (kernels/kvq.h), each by one warp, in its own shared memory. */
#ifndef MT_DEVICE_CUDA_ATTENTION_KVQ_CUH
#define MT_DEVICE_CUDA_ATTENTION_KVQ_CUH

#include "device/cuda/common/common.cuh"
#include "kernels/kvq.h"

/* x[head_stride] becomes H D x, or what it was before (mt_kv_turn). */
static __device__ inline void turn_vector(float *x, uint32_t stride, bool back)
{
    const uint32_t n = (uint32_t)mt_kvq_turned(stride), lane = threadIdx.x % 32;
    for (uint32_t i = lane; i < stride; i += 32)
        x[i] = back ? x[i] * (1.0f / (float)n) : mt_kvq_signs(i % n) & 1 ? -x[i] : x[i];
    __syncwarp();
    for (uint32_t h = n / 2; h > 0; h /= 2) {
        for (uint32_t i = lane; i < stride / 2; i += 32) {
            const uint32_t at = i / h * 2 * h + i % h;
            const float a = x[at], b = x[at + h];
            x[at] = a + b;
            x[at + h] = a - b;
        }
        __syncwarp();
    }
    for (uint32_t i = lane; back && i < stride; i += 32)
        x[i] = mt_kvq_signs(i % n) & 1 ? -x[i] : x[i];
    __syncwarp();
}

/* from[0..n), then zeros, turned; returns the largest size. */
static __device__ inline float turned_from(float *y, const float *from, uint32_t n, uint32_t stride, float factor)
{
    float most = 0.0f;
    for (uint32_t i = threadIdx.x % 32; i < stride; i += 32)
        y[i] = i < n ? from[i] * factor : 0.0f;
    __syncwarp();
    turn_vector(y, stride, false);
    for (uint32_t i = threadIdx.x % 32; i < stride; i += 32)
        most = mt_max1(most, fabsf(y[i]));
    for (int width = 16; width > 0; width /= 2)
        most = mt_max1(most, __shfl_xor_sync(0xffffffffu, most, width));
    return most;
}

/* Zero where x is NaN, which the scale shows. */
static __device__ inline int integer_of(float x, float most)
{
    x = x > most ? most : x;
    x = x < -most ? -most : x;
    return x == x ? __float2int_rn(x) : 0;
}

static __device__ inline float finite_or_zero(float x)
{
    return fabsf(x) <= FLT_MAX ? x : 0.0f;
}

/* Writes a turned vector y into its block; most: its largest size. */
static __device__ inline void put_integers(uint8_t *block, uint32_t tokens, uint32_t slot, uint32_t stride,
                                           uint32_t bits, const float *y, float most, bool value)
{
    const float limit = bits == 8 ? 127.0f : 7.0f, unit = bits == 8 ? 1.0f : 16.0f;
    const mt_bf16 d = mt_bf16_from_f32(most / (limit * unit));
    const float factor = finite_or_zero(1.0f / unit / mt_f32_from_bf16(d));
    if (threadIdx.x % 32 == 0)
        ((mt_bf16 *)block)[slot] = d;
    for (uint32_t i = threadIdx.x % 32; i < stride / 8 * bits; i += 32) {
        const uint32_t g = i / (4 * bits), c = i % (4 * bits);
        const uint64_t at =
            value ? mt_kvq_value_at(tokens, bits, slot, g, c) : mt_kvq_key_at(tokens, stride, bits, slot, g, c);
        const int low = integer_of(y[32 * g + c] * factor, limit);
        block[at] =
            bits == 8
                ? (uint8_t)low
                : (uint8_t)(((unsigned)low & 15u) | (unsigned)integer_of(y[32 * g + c + 16] * factor, limit) << 4);
    }
}

/* The vector of a slot as fp32, turned back. */
static __device__ inline void get_integers(float *y, const uint8_t *block, uint32_t tokens, uint32_t slot,
                                           uint32_t stride, uint32_t bits, bool value)
{
    const float d = mt_f32_from_bf16(((const mt_bf16 *)block)[slot]);
    for (uint32_t i = threadIdx.x % 32; i < stride / 8 * bits; i += 32) {
        const uint32_t g = i / (4 * bits), c = i % (4 * bits);
        const uint8_t x =
            block[value ? mt_kvq_value_at(tokens, bits, slot, g, c) : mt_kvq_key_at(tokens, stride, bits, slot, g, c)];
        y[32 * g + c] = d * (float)(int8_t)(bits == 8 ? x : (uint8_t)(x << 4));
        if (bits == 4)
            y[32 * g + c + 16] = d * (float)(int8_t)(x & 0xf0u);
    }
    __syncwarp();
    turn_vector(y, stride, true);
}

#endif
