/* R7 of docs/numerics.md on four or sixteen elements: the same operations in the same order as portable/scalar.h. */
#ifndef MT_KERNELS_NEON_MATH_H
#define MT_KERNELS_NEON_MATH_H

#include <math.h>

#include "kernels/neon/lanes.h"
#include "kernels/poly.h"

static inline float32x4_t mt_horner4(float32x4_t p, float32x4_t x, float c)
{
    return vfmaq_f32(vdupq_n_f32(c), p, x);
}

/* A fused multiply-add overwrites its addend, so a constant must be copied first. Loads are free here and copies
   between registers are not: this loads the constant each time, whatever the compiler would prefer. */
typedef float mt_constant[4];
MT_INLINE float32x4_t mt_reload(const mt_constant *c)
{
    float32x4_t v;
    __asm__ volatile("ldr %q0, %1" : "=w"(v) : "m"(*c));
    return v;
}

#define MT_EACH4(x) \
    {               \
        x, x, x, x  \
    }

/* Evaluates several vectors step by step: a single chain would fill the issue queues with waiting instructions. */
MT_INLINE void mt_horner(float32x4_t *p, const float32x4_t *x, const mt_constant *c, size_t n)
{
    MT_UNROLL
    for (size_t i = 0; i < n; i++)
        p[i] = vfmaq_f32(mt_reload(c), p[i], x[i]);
}

/* p = r + r^2 P(r), which is exp(r) - 1, with r = x - m ln 2, |r| <= ln 2 / 2; z has m in its low bits. x is between
   MT_EXP_MIN and MT_EXP_MAX and becomes r. */
MT_INLINE void mt_exp_reduced(float32x4_t *p, float32x4_t *z, float32x4_t *x, const mt_constant *magic, size_t n)
{
    static const mt_constant c3 = MT_EACH4(MT_EXP_C3), c2 = MT_EACH4(MT_EXP_C2), c1 = MT_EACH4(MT_EXP_C1),
                             c0 = MT_EACH4(MT_EXP_C0);
    MT_UNROLL
    for (size_t i = 0; i < n; i++)
        z[i] = vfmaq_f32(mt_reload(magic), x[i], vdupq_n_f32(MT_LOG2E));
    MT_UNROLL
    for (size_t i = 0; i < n; i++)
        p[i] = vsubq_f32(z[i], vdupq_n_f32((*magic)[0]));
    MT_UNROLL
    for (size_t i = 0; i < n; i++)
        x[i] = vfmsq_f32(x[i], p[i], vdupq_n_f32(MT_LN2_HIGH));
    MT_UNROLL
    for (size_t i = 0; i < n; i++)
        x[i] = vfmsq_f32(x[i], p[i], vdupq_n_f32(MT_LN2_LOW));
    MT_UNROLL
    for (size_t i = 0; i < n; i++)
        p[i] = vdupq_n_f32(MT_EXP_C4);
    mt_horner(p, x, &c3, n);
    mt_horner(p, x, &c2, n);
    mt_horner(p, x, &c1, n);
    mt_horner(p, x, &c0, n);
    MT_UNROLL
    for (size_t i = 0; i < n; i++)
        p[i] = vfmaq_f32(x[i], vmulq_f32(x[i], x[i]), p[i]);
}

MT_INLINE mt_lanes4 mt_exp16(mt_lanes4 x)
{
    static const mt_constant magic = MT_EACH4(MT_ROUND_MAGIC);
    mt_lanes4 p, z;
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        x.v[i] = vmaxq_f32(vminq_f32(x.v[i], vdupq_n_f32(MT_EXP_MAX)), vdupq_n_f32(MT_EXP_MIN));
    mt_exp_reduced(p.v, z.v, x.v, &magic, 4);
    MT_UNROLL
    for (int i = 0; i < 4; i++) {
        uint32x4_t e = vsubq_u32(vreinterpretq_u32_f32(z.v[i]), vdupq_n_u32(MT_ROUND_BITS)),
                   one = vdupq_n_u32(127u << 23);
        uint32x4_t half = vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_u32(e), 1));
        float32x4_t low = vreinterpretq_f32_u32(vaddq_u32(vshlq_n_u32(half, 23), one));
        float32x4_t high = vreinterpretq_f32_u32(vaddq_u32(vshlq_n_u32(vsubq_u32(e, half), 23), one));
        p.v[i] = vmulq_f32(vmulq_f32(vaddq_f32(p.v[i], vdupq_n_f32(1.0f)), low), high);
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

MT_INLINE mt_lanes4 mt_sigmoid16(mt_lanes4 x)
{
    const float32x4_t one = vdupq_n_f32(1.0f);
    mt_lanes4 e;
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        e.v[i] = vnegq_f32(vabsq_f32(x.v[i]));
    e = mt_exp16(e);
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        x.v[i] = vdivq_f32(vbslq_f32(vcltq_f32(x.v[i], vdupq_n_f32(0.0f)), e.v[i], one), vaddq_f32(one, e.v[i]));
    return x;
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

MT_INLINE mt_lanes4 mt_silu16(mt_lanes4 x)
{
    mt_lanes4 y = mt_sigmoid16(x);
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        y.v[i] = vmulq_f32(x.v[i], y.v[i]);
    return y;
}

MT_INLINE mt_lanes4 mt_gelu16(mt_lanes4 x)
{
    mt_lanes4 y;
    MT_UNROLL
    for (int i = 0; i < 4; i++) {
        float32x4_t cube = vmulq_n_f32(vmulq_f32(x.v[i], x.v[i]), MT_GELU_CUBE);
        y.v[i] = vmulq_n_f32(vfmaq_f32(x.v[i], cube, x.v[i]), MT_GELU_SCALE);
    }
    y = mt_sigmoid16(y);
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        y.v[i] = vmulq_f32(x.v[i], y.v[i]);
    return y;
}

static inline float32x4_t mt_softcap4(float32x4_t x, float cap)
{
    return vmulq_n_f32(mt_tanh4(vdivq_f32(x, vdupq_n_f32(cap))), cap);
}

#endif
