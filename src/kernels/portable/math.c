/* exp, log, tanh and others (R7 of docs/numerics.md) in portable C. */
#include "kernels/levels.h"
#include "kernels/portable/scalar.h"

void mt_exp_portable(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = mt_exp1(x[i]);
}

void mt_log_portable(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = mt_log1(x[i]);
}

void mt_sigmoid_portable(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = mt_sigmoid1(x[i]);
}

void mt_tanh_portable(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = mt_tanh1(x[i]);
}

void mt_sincos_portable(float *s, float *c, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mt_sincos1(&s[i], &c[i], x[i]);
}

void mt_silu_mul_portable(float *y, const float *g, const float *u, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = mt_silu1(g[i]) * u[i];
}

void mt_sigmoid_mul_portable(float *y, const float *g, const float *u, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = mt_sigmoid1(g[i]) * u[i];
}

void mt_gelu_mul_portable(float *y, const float *g, const float *u, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = mt_gelu1(g[i]) * u[i];
}

void mt_softcap_portable(float *x, float cap, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = mt_softcap1(x[i], cap);
}
