/* R7 on four or sixteen elements: the same operations in the same order as portable/scalar.h. */
#ifndef MT_KERNELS_NEON_MATH_H
#define MT_KERNELS_NEON_MATH_H

#include <math.h>

#include "kernels/neon/lanes.h"
#include "kernels/poly.h"

static inline float32x4_t mt_horner4(float32x4_t p, float32x4_t x, float c)
{
    return vfmaq_f32(vdupq_n_f32(c), p, x);
}

/* Sixteen at a time, step by step: a chain on its own would fill the issue queues with waiting instructions. */
MT_INLINE mt_lanes4 mt_horner16(mt_lanes4 p, mt_lanes4 x, float c)
{
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        p.v[i] = vfmaq_f32(vdupq_n_f32(c), p.v[i], x.v[i]);
    return p;
}

/* 1 + r + r^2 P(r) with r = x - n ln 2, |r| <= ln 2 / 2; z is n in its low bits. Needs MT_EXP_MIN <= x <= MT_EXP_MAX. */
MT_INLINE mt_lanes4 mt_exp16_reduced(mt_lanes4 x, mt_lanes4 *z, float32x4_t magic)
{
    mt_lanes4 r, p;
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        z->v[i] = vfmaq_f32(magic, x.v[i], vdupq_n_f32(MT_LOG2E));
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        p.v[i] = vsubq_f32(z->v[i], magic);
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        r.v[i] = vfmsq_f32(x.v[i], p.v[i], vdupq_n_f32(MT_LN2_HIGH));
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        r.v[i] = vfmsq_f32(r.v[i], p.v[i], vdupq_n_f32(MT_LN2_LOW));
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        p.v[i] = vfmaq_f32(vdupq_n_f32(MT_EXP_C3), vdupq_n_f32(MT_EXP_C4), r.v[i]);
    p = mt_horner16(p, r, MT_EXP_C2);
    p = mt_horner16(p, r, MT_EXP_C1);
    p = mt_horner16(p, r, MT_EXP_C0);
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        p.v[i] = vfmaq_f32(r.v[i], vmulq_f32(r.v[i], r.v[i]), p.v[i]);
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        p.v[i] = vaddq_f32(p.v[i], vdupq_n_f32(1.0f));
    return p;
}

MT_INLINE mt_lanes4 mt_exp16(mt_lanes4 x)
{
    mt_lanes4 z;
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        x.v[i] = vmaxq_f32(vminq_f32(x.v[i], vdupq_n_f32(MT_EXP_MAX)), vdupq_n_f32(MT_EXP_MIN));
    mt_lanes4 p = mt_exp16_reduced(x, &z, vdupq_n_f32(MT_ROUND_MAGIC));
    MT_UNROLL
    for (int i = 0; i < 4; i++) {
        int32x4_t e = vreinterpretq_s32_u32(vsubq_u32(vreinterpretq_u32_f32(z.v[i]), vdupq_n_u32(MT_ROUND_BITS)));
        int32x4_t half = vshrq_n_s32(e, 1), one = vdupq_n_s32(127 << 23);
        float32x4_t low = vreinterpretq_f32_s32(vaddq_s32(vshlq_n_s32(half, 23), one));
        float32x4_t high = vreinterpretq_f32_s32(vaddq_s32(vshlq_n_s32(vsubq_s32(e, half), 23), one));
        p.v[i] = vmulq_f32(vmulq_f32(p.v[i], low), high);
    }
    return p;
}

static inline float32x4_t mt_exp4(float32x4_t x)
{
    return mt_exp16((mt_lanes4){{x, x, x, x}}).v[0];
}

static inline float32x4_t mt_log4(float32x4_t x)
{
    const float32x4_t zero = vdupq_n_f32(0.0f);
    uint32x4_t tiny = vcltq_f32(x, vdupq_n_f32(0x1p-126f));
    float32x4_t scaled = vbslq_f32(tiny, vmulq_n_f32(x, 0x1p23f), x);
    uint32x4_t i = vsubq_u32(vreinterpretq_u32_f32(scaled), vdupq_n_u32(MT_LOG_SQRT_HALF));
    float32x4_t e = vcvtq_f32_s32(vshrq_n_s32(vreinterpretq_s32_u32(i), 23));
    e = vsubq_f32(e, vbslq_f32(tiny, vdupq_n_f32(23.0f), zero));
    uint32x4_t m = vaddq_u32(vandq_u32(i, vdupq_n_u32(0x7fffffu)), vdupq_n_u32(MT_LOG_SQRT_HALF));
    float32x4_t f = vsubq_f32(vreinterpretq_f32_u32(m), vdupq_n_f32(1.0f)), z = vmulq_f32(f, f);
    float32x4_t p = mt_horner4(vdupq_n_f32(MT_LOG_C8), f, MT_LOG_C7);
    p = mt_horner4(p, f, MT_LOG_C6);
    p = mt_horner4(p, f, MT_LOG_C5);
    p = mt_horner4(p, f, MT_LOG_C4);
    p = mt_horner4(p, f, MT_LOG_C3);
    p = mt_horner4(p, f, MT_LOG_C2);
    p = mt_horner4(p, f, MT_LOG_C1);
    p = mt_horner4(p, f, MT_LOG_C0);
    p = vfmaq_f32(vmulq_n_f32(e, MT_LN2_LOW), vmulq_f32(f, z), p);
    p = vfmaq_f32(p, vdupq_n_f32(-0.5f), z);
    float32x4_t y = vfmaq_f32(vaddq_f32(f, p), e, vdupq_n_f32(MT_LN2_HIGH));
    y = vbslq_f32(vcltq_f32(x, vdupq_n_f32(INFINITY)), y, vaddq_f32(x, x));
    y = vbslq_f32(vcltq_f32(x, zero), vdupq_n_f32(NAN), y);
    return vbslq_f32(vceqq_f32(x, zero), vdupq_n_f32(-INFINITY), y);
}

static inline float32x4_t mt_sigmoid4(float32x4_t x)
{
    const float32x4_t one = vdupq_n_f32(1.0f);
    float32x4_t e = mt_exp4(vnegq_f32(vabsq_f32(x)));
    return vdivq_f32(vbslq_f32(vcltq_f32(x, vdupq_n_f32(0.0f)), e, one), vaddq_f32(one, e));
}

static inline float32x4_t mt_tanh4(float32x4_t x)
{
    const float32x4_t one = vdupq_n_f32(1.0f), two = vdupq_n_f32(2.0f);
    float32x4_t a = vabsq_f32(x), z = vmulq_f32(a, a);
    float32x4_t p = mt_horner4(vdupq_n_f32(MT_TANH_C4), z, MT_TANH_C3);
    p = mt_horner4(p, z, MT_TANH_C2);
    p = mt_horner4(p, z, MT_TANH_C1);
    p = mt_horner4(p, z, MT_TANH_C0);
    float32x4_t small = vfmaq_f32(a, vmulq_f32(a, z), p);
    float32x4_t large = vsubq_f32(one, vdivq_f32(two, vaddq_f32(mt_exp4(vaddq_f32(a, a)), one)));
    float32x4_t y = vbslq_f32(vcltq_f32(a, vdupq_n_f32(MT_TANH_SMALL)), small, large);
    return vbslq_f32(vdupq_n_u32(0x80000000u), x, y);
}

static inline float32x4_t mt_silu4(float32x4_t x)
{
    return vmulq_f32(x, mt_sigmoid4(x));
}

static inline float32x4_t mt_gelu4(float32x4_t x)
{
    float32x4_t cube = vmulq_n_f32(vmulq_f32(x, x), MT_GELU_CUBE);
    return vmulq_f32(x, mt_sigmoid4(vmulq_n_f32(vfmaq_f32(x, cube, x), MT_GELU_SCALE)));
}

static inline float32x4_t mt_softcap4(float32x4_t x, float cap)
{
    return vmulq_n_f32(mt_tanh4(vdivq_f32(x, vdupq_n_f32(cap))), cap);
}

#endif
