/* Elementwise kernels and reductions (R6 of docs/numerics.md). */
#include "kernels/levels.h"
#include "kernels/x86/math.h"

void MT_LEVEL(to_bf16)(mt_bf16 *y, const float *x, size_t n)
{
    size_t i = 0;
    for (; i + VL <= n; i += VL)
        vi_store_u16(y + i, vi_srl(vf_round_bf16(vf_load(x + i)), 16));
    if (i < n) {
        mt_bf16 padded[VL];
        vi_store_u16(padded, vi_srl(vf_round_bf16(vf_load_part(x + i, n - i, 0.0f)), 16));
        memcpy(y + i, padded, (n - i) * sizeof(*y));
    }
}

void MT_LEVEL(add)(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += VL)
        vf_put(y, i, n, vf_add(vf_get(y, i, n), vf_get(x, i, n)));
}

void MT_LEVEL(axpy)(float *y, float a, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += VL)
        vf_put(y, i, n, vf_fma(vf_set1(a), vf_get(x, i, n), vf_get(y, i, n)));
}

void MT_LEVEL(scale)(float *y, float a, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += VL)
        vf_put(y, i, n, vf_mul(vf_set1(a), vf_get(x, i, n)));
}

float MT_LEVEL(dot)(const float *x, const float *y, size_t n)
{
    vlanes acc = vlanes_zero();
    for (size_t i = 0; i < n; i += MT_LANES)
        acc = vlanes_fma(vlanes_get(x, i, n), vlanes_get(y, i, n), acc);
    return vlanes_fold(acc);
}

float MT_LEVEL(sum)(const float *x, size_t n)
{
    vlanes acc = vlanes_zero();
    for (size_t i = 0; i < n; i += MT_LANES)
        acc = vlanes_add(acc, vlanes_get(x, i, n));
    return vlanes_fold(acc);
}

float MT_LEVEL(max)(const float *x, size_t n)
{
    vf m = vf_set1(-INFINITY);
    size_t i = 0;
    for (; i + VL <= n; i += VL)
        m = vf_max1(m, vf_load(x + i));
    if (i < n)
        m = vf_max1(m, vf_load_part(x + i, n - i, -INFINITY));
    return vf_max_of(m);
}

/* exp(x - m), zero beyond the end */
MT_INLINE vlanes exp_lanes(const float *x, vf m, size_t i, size_t n)
{
    vlanes a = vlanes_get(x, i, n);
    MT_UNROLL
    for (size_t h = 0; h < VREGS; h++) {
        vf e = vf_exp(vf_sub(a.v[h], m));
        a.v[h] = i + MT_LANES <= n ? e : vf_select(vi_within(h * VL, 0, n - i), e, vf_set1(0.0f));
    }
    return a;
}

float MT_LEVEL(sum_exp)(const float *x, float m, size_t n)
{
    vlanes acc = vlanes_zero();
    for (size_t i = 0; i < n; i += MT_LANES)
        acc = vlanes_add(acc, exp_lanes(x, vf_set1(m), i, n));
    return vlanes_fold(acc);
}

void MT_LEVEL(rmsnorm)(float *y, const float *x, const float *w, size_t n, float eps, float offset)
{
    vf r = vf_set1(1.0f / sqrtf(MT_LEVEL(dot)(x, x, n) / (float)n + eps));
    for (size_t i = 0; i < n; i += VL)
        vf_put(y, i, n, vf_mul(vf_mul(vf_get(x, i, n), r), vf_add(vf_set1(offset), vf_get(w, i, n))));
}

void MT_LEVEL(rope)(float *x, const float *c, const float *s, size_t half)
{
    float *other = x + half;
    for (size_t i = 0; i < half; i += VL) {
        vf a = vf_get(x, i, half), b = vf_get(other, i, half), cosine = vf_get(c, i, half), sine = vf_get(s, i, half);
        vf_put(x, i, half, vf_fms(a, cosine, vf_mul(b, sine)));
        vf_put(other, i, half, vf_fma(b, cosine, vf_mul(a, sine)));
    }
}

void MT_LEVEL(softmax)(float *x, size_t n)
{
    const vf m = vf_set1(MT_LEVEL(max)(x, n));
    for (size_t i = 0; i < n; i += VL)
        vf_put(x, i, n, vf_exp(vf_sub(vf_get(x, i, n), m)));
    const vf total = vf_set1(MT_LEVEL(sum)(x, n));
    for (size_t i = 0; i < n; i += VL)
        vf_put(x, i, n, vf_div(vf_get(x, i, n), total));
}
