/* Elementwise kernels and reductions (R6 of docs/numerics.md) in portable C. */
#include "kernels/levels.h"
#include "kernels/portable/scalar.h"

void mt_to_bf16_portable(mt_bf16 *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = mt_bf16_from_f32(x[i]);
}

void mt_add_portable(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

void mt_axpy_portable(float *y, float a, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = fmaf(a, x[i], y[i]);
}

void mt_scale_portable(float *y, float a, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a * x[i];
}

float mt_dot_portable(const float *x, const float *y, size_t n)
{
    return mt_dot1(x, y, n);
}

float mt_sum_portable(const float *x, size_t n)
{
    float lane[MT_LANES] = {0};
    for (size_t i = 0; i < mt_round_up(n, MT_LANES); i++)
        lane[i % MT_LANES] += i < n ? x[i] : 0.0f;
    return mt_fold(lane);
}

float mt_max_portable(const float *x, size_t n)
{
    float m = -INFINITY;
    for (size_t i = 0; i < n; i++)
        m = mt_max1(m, x[i]);
    return m;
}

float mt_sum_exp_portable(const float *x, float m, size_t n)
{
    float lane[MT_LANES] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i % MT_LANES] += mt_exp1(x[i] - m);
    return mt_fold(lane);
}

void mt_rmsnorm_portable(float *y, const float *x, const float *w, size_t n, float eps, float offset)
{
    float r = 1.0f / sqrtf(mt_dot1(x, x, n) / (float)n + eps);
    for (size_t i = 0; i < n; i++)
        y[i] = (x[i] * r) * (offset + w[i]);
}

void mt_rope_portable(float *x, const float *c, const float *s, size_t half)
{
    for (size_t i = 0; i < half; i++) {
        float a = x[i], b = x[i + half];
        x[i] = fmaf(a, c[i], -(b * s[i]));
        x[i + half] = fmaf(b, c[i], a * s[i]);
    }
}

void mt_softmax_portable(float *x, size_t n)
{
    float m = mt_max_portable(x, n);
    for (size_t i = 0; i < n; i++)
        x[i] = mt_exp1(x[i] - m);
    float total = mt_sum_portable(x, n);
    for (size_t i = 0; i < n; i++)
        x[i] /= total;
}
