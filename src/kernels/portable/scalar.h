/* One element at a time: the definition that every level repeats in vectors. */
#ifndef MT_KERNELS_PORTABLE_SCALAR_H
#define MT_KERNELS_PORTABLE_SCALAR_H

#include <math.h>
#include <stddef.h>

#include "kernels/convert.h"
#include "kernels/kernels.h"
#include "kernels/poly.h"

static inline mt_bf16 mt_bf16_from_f32(float x)
{
    uint32_t bits = mt_f32_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (mt_bf16)(bits >> 16 | 0x40u);
    return (mt_bf16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float mt_bf16_rounded(float x)
{
    return mt_f32_from_bf16(mt_bf16_from_f32(x));
}

/* NaN is carried; +0 is above -0. */
static inline float mt_max1(float a, float b)
{
    if (a != a || b != b)
        return a + b;
    if (a == b)
        return mt_f32_bits(a) >> 31 ? b : a;
    return a > b ? a : b;
}

static inline float mt_exp1(float x)
{
    x = x > MT_EXP_MAX ? MT_EXP_MAX : x;
    x = x < MT_EXP_MIN ? MT_EXP_MIN : x;
    float z = fmaf(x, MT_LOG2E, MT_ROUND_MAGIC), n = z - MT_ROUND_MAGIC;
    float r = fmaf(n, -MT_LN2_LOW, fmaf(n, -MT_LN2_HIGH, x));
    float p = fmaf(MT_EXP_C4, r, MT_EXP_C3);
    p = fmaf(p, r, MT_EXP_C2);
    p = fmaf(p, r, MT_EXP_C1);
    p = fmaf(p, r, MT_EXP_C0);
    p = fmaf(r * r, p, r) + 1.0f;
    int32_t e = (int32_t)(mt_f32_bits(z) - MT_ROUND_BITS), half = e >> 1;
    return p * mt_f32_from_bits((uint32_t)(half + 127) << 23) * mt_f32_from_bits((uint32_t)(e - half + 127) << 23);
}

static inline float mt_log1(float x)
{
    float tiny = x < 0x1p-126f ? x * 0x1p23f : x;
    int32_t i = (int32_t)(mt_f32_bits(tiny) - MT_LOG_SQRT_HALF);
    float e = (float)(i >> 23) - (x < 0x1p-126f ? 23.0f : 0.0f);
    float f = mt_f32_from_bits(((uint32_t)i & 0x7fffffu) + MT_LOG_SQRT_HALF) - 1.0f, z = f * f;
    float p = fmaf(MT_LOG_C8, f, MT_LOG_C7);
    p = fmaf(p, f, MT_LOG_C6);
    p = fmaf(p, f, MT_LOG_C5);
    p = fmaf(p, f, MT_LOG_C4);
    p = fmaf(p, f, MT_LOG_C3);
    p = fmaf(p, f, MT_LOG_C2);
    p = fmaf(p, f, MT_LOG_C1);
    p = fmaf(p, f, MT_LOG_C0);
    p = fmaf(f * z, p, e * MT_LN2_LOW);
    p = fmaf(-0.5f, z, p);
    float y = fmaf(e, MT_LN2_HIGH, f + p);
    y = x < INFINITY ? y : x + x; /* infinity and NaN */
    y = x < 0.0f ? NAN : y;
    return x == 0.0f ? -INFINITY : y;
}

static inline float mt_sigmoid1(float x)
{
    float e = mt_exp1(-fabsf(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

static inline float mt_tanh1(float x)
{
    float a = fabsf(x), z = a * a;
    float p = fmaf(MT_TANH_C4, z, MT_TANH_C3);
    p = fmaf(p, z, MT_TANH_C2);
    p = fmaf(p, z, MT_TANH_C1);
    p = fmaf(p, z, MT_TANH_C0);
    float small = fmaf(a * z, p, a), large = 1.0f - 2.0f / (mt_exp1(a + a) + 1.0f);
    return copysignf(a < MT_TANH_SMALL ? small : large, x);
}

static inline float mt_silu1(float x)
{
    return x * mt_sigmoid1(x);
}

static inline float mt_gelu1(float x)
{
    return x * mt_sigmoid1(MT_GELU_SCALE * fmaf(MT_GELU_CUBE * (x * x), x, x));
}

static inline float mt_softcap1(float x, float cap)
{
    return cap * mt_tanh1(x / cap);
}

/* R6: the sum of 16 lanes; lanes are overwritten. */
static inline float mt_fold(float lane[MT_LANES])
{
    for (size_t width = MT_LANES / 2; width > 0; width /= 2)
        for (size_t i = 0; i < width; i++)
            lane[i] += lane[i + width];
    return lane[0];
}

/* R6: lanes take n more products; a tail is padded with zeros. */
static inline void mt_lanes_dot(float lane[MT_LANES], const float *x, const float *y, size_t n)
{
    size_t i = 0;
    for (; i + MT_LANES <= n; i += MT_LANES)
        for (size_t l = 0; l < MT_LANES; l++)
            lane[l] = fmaf(x[i + l], y[i + l], lane[l]);
    if (i == n)
        return;
    for (size_t l = 0; l < MT_LANES; l++)
        lane[l] = i + l < n ? fmaf(x[i + l], y[i + l], lane[l]) : lane[l] + 0.0f;
}

static inline float mt_dot1(const float *x, const float *y, size_t n)
{
    float lane[MT_LANES] = {0};
    mt_lanes_dot(lane, x, y, n);
    return mt_fold(lane);
}

static inline size_t mt_round_up(size_t n, size_t step)
{
    return (n + step - 1) / step * step;
}

#endif
