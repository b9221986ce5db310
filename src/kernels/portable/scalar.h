/* The functions of R6 and R7 (docs/numerics.md), one element at a time: the definition that every level repeats with
   vectors. */
#ifndef MT_KERNELS_PORTABLE_SCALAR_H
#define MT_KERNELS_PORTABLE_SCALAR_H

#include <math.h>
#include <stddef.h>

#include "kernels/convert.h"
#include "kernels/kernels.h"
#include "kernels/poly.h"

MT_LEAF mt_bf16 mt_bf16_from_f32(float x)
{
    uint32_t bits = mt_f32_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (mt_bf16)(bits >> 16 | 0x40u);
    return (mt_bf16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

MT_LEAF float mt_bf16_rounded(float x)
{
    return mt_f32_from_bf16(mt_bf16_from_f32(x));
}

/* NaN is carried; +0 is above -0. */
MT_LEAF float mt_max1(float a, float b)
{
    if (a != a || b != b)
        return a + b;
    if (a == b)
        return mt_f32_bits(a) >> 31 ? b : a;
    return a > b ? a : b;
}

MT_LEAF float mt_exp1(float x)
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

MT_LEAF float mt_log1(float x)
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

MT_LEAF float mt_sigmoid1(float x)
{
    float e = mt_exp1(-fabsf(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

MT_LEAF float mt_tanh1(float x)
{
    float a = fabsf(x), z = a * a;
    float p = fmaf(MT_TANH_C4, z, MT_TANH_C3);
    p = fmaf(p, z, MT_TANH_C2);
    p = fmaf(p, z, MT_TANH_C1);
    p = fmaf(p, z, MT_TANH_C0);
    float small = fmaf(a * z, p, a), large = 1.0f - 2.0f / (mt_exp1(a + a) + 1.0f);
    return copysignf(a < MT_TANH_SMALL ? small : large, x);
}

MT_LEAF float mt_silu1(float x)
{
    return x * mt_sigmoid1(x);
}

MT_LEAF float mt_gelu1(float x)
{
    return x * mt_sigmoid1(MT_GELU_SCALE * fmaf(MT_GELU_CUBE * (x * x), x, x));
}

MT_LEAF float mt_softcap1(float x, float cap)
{
    return cap * mt_tanh1(x / cap);
}

/* |r| <= pi / 4 */
MT_LEAF double mt_sin_reduced(double r)
{
    double z = r * r;
    double p = ((((-1.0 / 39916800 * z + 1.0 / 362880) * z - 1.0 / 5040) * z + 1.0 / 120) * z - 1.0 / 6) * z;
    return p * r + r;
}

MT_LEAF double mt_cos_reduced(double r)
{
    double z = r * r;
    double p =
        (((((1.0 / 479001600 * z - 1.0 / 3628800) * z + 1.0 / 40320) * z - 1.0 / 720) * z + 1.0 / 24) * z - 0.5) * z;
    return p + 1.0;
}

/* Reduced in double by two parts of pi / 2: good for |x| <= 2^48; beyond that, and for infinities, NaN. */
MT_LEAF void mt_sincos1(float *s, float *c, float x)
{
    const double magic = 0x1.8p52, pi_half_high = 0x1.921fb54442d18p+0, pi_half_low = 0x1.1a62633145c07p-54;
    if (!(fabsf(x) <= 0x1p48f)) {
        *s = *c = NAN;
        return;
    }
    double z = (double)x * 0x1.45f306dc9c883p-1 + magic, n = z - magic;
    double r = fma(-n, pi_half_low, fma(-n, pi_half_high, (double)x));
    uint64_t quadrant;
    memcpy(&quadrant, &z, sizeof(quadrant));
    float sine = (float)mt_sin_reduced(r), cosine = (float)mt_cos_reduced(r);
    float a = quadrant & 1 ? cosine : sine, b = quadrant & 1 ? sine : cosine;
    *s = quadrant & 2 ? -a : a;
    *c = (quadrant + 1) & 2 ? -b : b;
}

/* erfc(z) = t exp(f(t) - z z) with t = 1 / (1 + z / 2): f is smooth, and a polynomial fitted for 0 <= z <= 12 keeps its
   value to 6e-8. */
MT_LEAF float mt_erfc_exponent1(float t)
{
    static const float f[] = {0.15775100886821747f, -0.7501815557479858f,  1.3186529874801636f,  -0.909740686416626f,
                              0.09432142227888107f, -0.09025565534830093f, 0.06523264944553375f, 0.3803541362285614f,
                              0.9993481040000916f,  -1.2654823064804077f};
    float sum = f[0];
    for (size_t i = 1; i < sizeof(f) / sizeof(f[0]); i++)
        sum = fmaf(sum, t, f[i]);
    return sum;
}

/* R6: the sum of 16 lanes; lanes are overwritten. */
MT_LEAF float mt_fold(float lane[MT_LANES])
{
    for (size_t width = MT_LANES / 2; width > 0; width /= 2)
        for (size_t i = 0; i < width; i++)
            lane[i] += lane[i + width];
    return lane[0];
}

/* R6: adds n more products to the lanes; a tail is padded with zeros. */
MT_LEAF void mt_lanes_dot(float lane[MT_LANES], const float *x, const float *y, size_t n)
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

MT_LEAF float mt_dot1(const float *x, const float *y, size_t n)
{
    float lane[MT_LANES] = {0};
    mt_lanes_dot(lane, x, y, n);
    return mt_fold(lane);
}

MT_LEAF size_t mt_round_up(size_t n, size_t step)
{
    return (n + step - 1) / step * step;
}

#endif
