/* R7 of docs/numerics.md on one register: the same operations in the same order as portable/scalar.h. */
#ifndef MT_KERNELS_X86_MATH_H
#define MT_KERNELS_X86_MATH_H

#include "kernels/poly.h"
#include "kernels/portable/scalar.h"
#include "kernels/x86/simd.h"

#if defined(MT_LEVEL)

MT_INLINE vf vf_horner(vf p, vf x, float c)
{
    return vf_fma(p, x, vf_set1(c));
}

MT_INLINE vf vf_exp(vf x)
{
    const vf magic = vf_set1(MT_ROUND_MAGIC);
    x = vf_max(vf_set1(MT_EXP_MIN), vf_min(vf_set1(MT_EXP_MAX), x));
    vf z = vf_fma(x, vf_set1(MT_LOG2E), magic), n = vf_sub(z, magic);
    vf r = vf_fnma(n, vf_set1(MT_LN2_LOW), vf_fnma(n, vf_set1(MT_LN2_HIGH), x));
    vf p = vf_horner(vf_set1(MT_EXP_C4), r, MT_EXP_C3);
    p = vf_horner(p, r, MT_EXP_C2);
    p = vf_horner(p, r, MT_EXP_C1);
    p = vf_horner(p, r, MT_EXP_C0);
    p = vf_add(vf_fma(vf_mul(r, r), p, r), vf_set1(1.0f));
    vi e = vi_sub(vf_bits(z), vi_set1((int)MT_ROUND_BITS)), half = vi_sra(e, 1), one = vi_set1(127);
    vf low = vf_from_bits(vi_sll(vi_add(half, one), 23)), high = vf_from_bits(vi_sll(vi_add(vi_sub(e, half), one), 23));
    return vf_mul(vf_mul(p, low), high);
}

MT_INLINE vf vf_log(vf x)
{
    const vf zero = vf_set1(0.0f);
    vmask tiny = vf_lt(x, vf_set1(0x1p-126f));
    vi i = vi_sub(vf_bits(vf_select(tiny, vf_mul(x, vf_set1(0x1p23f)), x)), vi_set1((int)MT_LOG_SQRT_HALF));
    vf e = vf_sub(vi_to_f32(vi_sra(i, 23)), vf_select(tiny, vf_set1(23.0f), zero));
    vi m = vi_add(vi_and(i, vi_set1(0x7fffff)), vi_set1((int)MT_LOG_SQRT_HALF));
    vf f = vf_sub(vf_from_bits(m), vf_set1(1.0f)), z = vf_mul(f, f);
    vf p = vf_horner(vf_set1(MT_LOG_C8), f, MT_LOG_C7);
    p = vf_horner(p, f, MT_LOG_C6);
    p = vf_horner(p, f, MT_LOG_C5);
    p = vf_horner(p, f, MT_LOG_C4);
    p = vf_horner(p, f, MT_LOG_C3);
    p = vf_horner(p, f, MT_LOG_C2);
    p = vf_horner(p, f, MT_LOG_C1);
    p = vf_horner(p, f, MT_LOG_C0);
    p = vf_fma(vf_mul(f, z), p, vf_mul(e, vf_set1(MT_LN2_LOW)));
    p = vf_fma(vf_set1(-0.5f), z, p);
    vf y = vf_fma(e, vf_set1(MT_LN2_HIGH), vf_add(f, p));
    y = vf_select(vf_lt(x, vf_set1(INFINITY)), y, vf_add(x, x));
    y = vf_select(vf_lt(x, zero), vf_set1(NAN), y);
    return vf_select(vf_eq(x, zero), vf_set1(-INFINITY), y);
}

MT_INLINE vf vf_sigmoid(vf x)
{
    const vf one = vf_set1(1.0f);
    vf e = vf_exp(vf_from_bits(vi_or(vf_bits(x), vi_set1((int)0x80000000u))));
    return vf_div(vf_select(vf_lt(x, vf_set1(0.0f)), e, one), vf_add(one, e));
}

MT_INLINE vf vf_tanh(vf x)
{
    const vf one = vf_set1(1.0f);
    vf a = vf_abs(x), z = vf_mul(a, a);
    vf p = vf_horner(vf_set1(MT_TANH_C4), z, MT_TANH_C3);
    p = vf_horner(p, z, MT_TANH_C2);
    p = vf_horner(p, z, MT_TANH_C1);
    p = vf_horner(p, z, MT_TANH_C0);
    vf small = vf_fma(vf_mul(a, z), p, a);
    vf large = vf_sub(one, vf_div(vf_set1(2.0f), vf_add(vf_exp(vf_add(a, a)), one)));
    vf y = vf_select(vf_lt(a, vf_set1(MT_TANH_SMALL)), small, large);
    vi sign = vi_and(vf_bits(x), vi_set1((int)0x80000000u));
    return vf_from_bits(vi_or(vf_bits(vf_abs(y)), sign));
}

MT_INLINE vf vf_silu(vf x)
{
    return vf_mul(x, vf_sigmoid(x));
}

MT_INLINE vf vf_gelu(vf x)
{
    vf cube = vf_mul(vf_set1(MT_GELU_CUBE), vf_mul(x, x));
    return vf_mul(x, vf_sigmoid(vf_mul(vf_set1(MT_GELU_SCALE), vf_fma(cube, x, x))));
}

MT_INLINE vf vf_softcap(vf x, vf cap)
{
    return vf_mul(cap, vf_tanh(vf_div(x, cap)));
}

/* mt_max1 of two registers: NaN is carried, +0 is above -0. */
MT_INLINE vf vf_max1(vf a, vf b)
{
    vf zero = vf_from_bits(vi_and(vf_bits(a), vf_bits(b)));
    return vf_select(vf_is_nan(b), b, vf_select(vf_eq(a, b), zero, vf_max(b, a)));
}

MT_INLINE float vf_max_of(vf a)
{
    float e[VL], m = -INFINITY;
    vf_store(e, a);
    for (size_t i = 0; i < VL; i++)
        m = mt_max1(m, e[i]);
    return m;
}

#endif

#endif
