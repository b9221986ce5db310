/* R7 in portable C. */
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

/* |r| <= pi / 4 */
static double sin_reduced(double r)
{
    double z = r * r;
    double p = ((((-1.0 / 39916800 * z + 1.0 / 362880) * z - 1.0 / 5040) * z + 1.0 / 120) * z - 1.0 / 6) * z;
    return p * r + r;
}

static double cos_reduced(double r)
{
    double z = r * r;
    double p =
        (((((1.0 / 479001600 * z - 1.0 / 3628800) * z + 1.0 / 40320) * z - 1.0 / 720) * z + 1.0 / 24) * z - 0.5) * z;
    return p + 1.0;
}

/* Reduced in double by two parts of pi / 2: good for |x| <= 2^48; beyond that, and for infinities, NaN. */
static void sincos1(float *s, float *c, float x)
{
    const double magic = 0x1.8p52, pi_half_high = 0x1.921fb54442d18p+0, pi_half_low = 0x1.1a62633145c07p-54;
    if (!(fabsf(x) <= 0x1p48f)) {
        *s = *c = NAN;
        return;
    }
    double z = (double)x * 0x1.45f306dc9c883p-1 + magic, n = z - magic;
    double r = fma(-n, pi_half_low, fma(-n, pi_half_high, (double)x));
    uint64_t quadrant;
    memcpy(&quadrant, &z, sizeof quadrant);
    float sine = (float)sin_reduced(r), cosine = (float)cos_reduced(r);
    float a = quadrant & 1 ? cosine : sine, b = quadrant & 1 ? sine : cosine;
    *s = quadrant & 2 ? -a : a;
    *c = (quadrant + 1) & 2 ? -b : b;
}

void mt_sincos_portable(float *s, float *c, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sincos1(&s[i], &c[i], x[i]);
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
