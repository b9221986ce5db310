/* Elementwise kernels and reductions (R6 of docs/numerics.md) on NEON. */
#include <math.h>

#include "kernels/levels.h"
#include "kernels/neon/lanes.h"
#include "kernels/neon/math.h"

static uint16x4_t round_bf16(float32x4_t x)
{
    uint32x4_t bits = vreinterpretq_u32_f32(x), odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
    uint32x4_t nan = vorrq_u32(bits, vdupq_n_u32(0x400000));
    return vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), rounded, nan), 16);
}

void mt_to_bf16_neon(mt_bf16 *y, const float *x, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1_u16(y + i, round_bf16(vld1q_f32(x + i)));
    if (i < n) {
        uint16_t padded[4];
        vst1_u16(padded, round_bf16(mt_load_part(x + i, n - i, 0.0f)));
        memcpy(y + i, padded, (n - i) * sizeof(*y));
    }
}

void mt_add_neon(float *y, const float *x, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vaddq_f32(vld1q_f32(y + i), vld1q_f32(x + i)));
    for (; i < n; i++)
        y[i] += x[i];
}

void mt_axpy_neon(float *y, float a, const float *x, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vfmaq_n_f32(vld1q_f32(y + i), vld1q_f32(x + i), a));
    for (; i < n; i++)
        y[i] = fmaf(a, x[i], y[i]);
}

void mt_scale_neon(float *y, float a, const float *x, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vmulq_n_f32(vld1q_f32(x + i), a));
    for (; i < n; i++)
        y[i] = a * x[i];
}

float mt_dot_neon(const float *x, const float *y, size_t n)
{
    mt_lanes4 acc = mt_lanes4_zero();
    size_t i = 0;
    for (; i + MT_LANES <= n; i += MT_LANES)
        acc = mt_lanes4_fma(acc, mt_lanes4_load(x + i), mt_lanes4_load(y + i));
    if (i < n)
        acc = mt_lanes4_fma(acc, mt_lanes4_load_part(x + i, n - i), mt_lanes4_load_part(y + i, n - i));
    return mt_lanes4_fold(acc);
}

float mt_sum_neon(const float *x, size_t n)
{
    mt_lanes4 acc = mt_lanes4_zero();
    size_t i = 0;
    for (; i + MT_LANES <= n; i += MT_LANES)
        acc = mt_lanes4_add(acc, mt_lanes4_load(x + i));
    if (i < n)
        acc = mt_lanes4_add(acc, mt_lanes4_load_part(x + i, n - i));
    return mt_lanes4_fold(acc);
}

float mt_max_neon(const float *x, size_t n)
{
    float32x4_t a = vdupq_n_f32(-INFINITY), b = a;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        a = vmaxq_f32(a, vld1q_f32(x + i));
        b = vmaxq_f32(b, vld1q_f32(x + i + 4));
    }
    for (; i + 4 <= n; i += 4)
        a = vmaxq_f32(a, vld1q_f32(x + i));
    if (i < n)
        b = vmaxq_f32(b, mt_load_part(x + i, n - i, -INFINITY));
    return vmaxvq_f32(vmaxq_f32(a, b));
}

static mt_lanes4 exp_lanes(mt_lanes4 x, float32x4_t m)
{
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        x.v[i] = vsubq_f32(x.v[i], m);
    return mt_exp16(x);
}

float mt_sum_exp_neon(const float *x, float m, size_t n)
{
    mt_lanes4 acc = mt_lanes4_zero();
    float32x4_t shift = vdupq_n_f32(m);
    size_t i = 0;
    for (; i + MT_LANES <= n; i += MT_LANES)
        acc = mt_lanes4_add(acc, exp_lanes(mt_lanes4_load(x + i), shift));
    if (i < n) {
        float e[MT_LANES];
        mt_lanes4_store(e, exp_lanes(mt_lanes4_load_part(x + i, n - i), shift));
        acc = mt_lanes4_add(acc, mt_lanes4_load_part(e, n - i));
    }
    return mt_lanes4_fold(acc);
}

void mt_rmsnorm_neon(float *y, const float *x, const float *w, size_t n, float eps, float offset)
{
    float r = 1.0f / sqrtf(mt_dot_neon(x, x, n) / (float)n + eps);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float32x4_t gain = vaddq_f32(vdupq_n_f32(offset), vld1q_f32(w + i));
        vst1q_f32(y + i, vmulq_f32(vmulq_n_f32(vld1q_f32(x + i), r), gain));
    }
    for (; i < n; i++)
        y[i] = (x[i] * r) * (offset + w[i]);
}

void mt_rope_neon(float *x, const float *c, const float *s, size_t half)
{
    size_t i = 0;
    for (; i + 4 <= half; i += 4) {
        float32x4_t a = vld1q_f32(x + i), b = vld1q_f32(x + i + half);
        float32x4_t cosine = vld1q_f32(c + i), sine = vld1q_f32(s + i);
        vst1q_f32(x + i, vfmaq_f32(vnegq_f32(vmulq_f32(b, sine)), a, cosine));
        vst1q_f32(x + i + half, vfmaq_f32(vmulq_f32(a, sine), b, cosine));
    }
    for (; i < half; i++) {
        float a = x[i], b = x[i + half];
        x[i] = fmaf(a, c[i], -(b * s[i]));
        x[i + half] = fmaf(b, c[i], a * s[i]);
    }
}

static void exp_minus(float *x, float m, size_t n)
{
    float32x4_t shift = vdupq_n_f32(m);
    size_t i = 0;
    for (; i + MT_LANES <= n; i += MT_LANES)
        mt_lanes4_store(x + i, exp_lanes(mt_lanes4_load(x + i), shift));
    if (i < n)
        mt_lanes4_store_part(x + i, exp_lanes(mt_lanes4_load_part(x + i, n - i), shift), n - i);
}

void mt_softmax_neon(float *x, size_t n)
{
    exp_minus(x, mt_max_neon(x, n), n);
    float total = mt_sum_neon(x, n);
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(x + i, vdivq_f32(vld1q_f32(x + i), vdupq_n_f32(total)));
    for (; i < n; i++)
        x[i] /= total;
}
