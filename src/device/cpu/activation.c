/* Activation functions, with and without a gate. Rows are independent. */
#include <assert.h>
#include <math.h>

#include "device/cpu/cpu.h"
#include "kernels/portable/scalar.h"

#define CHUNK 256 /* elements processed at a time */

/* x = x / 2 erfc(-x / sqrt 2) */
static void gelu(const mt_kernels *k, float *x, size_t n)
{
    float t[CHUNK], e[CHUNK];
    for (size_t j = 0; j < n; j++) {
        const float z = fabsf(x[j]) * 0.70710678118654752f;
        t[j] = 1.0f / fmaf(0.5f, z, 1.0f);
        e[j] = fmaf(-z, z, mt_erfc_exponent1(t[j]));
    }
    k->exp(e, e, n);
    for (size_t j = 0; j < n; j++) {
        const float tail = 0.5f * (t[j] * e[j]);
        x[j] *= x[j] < 0 ? tail : 1.0f - tail;
    }
}

static void quick_gelu(const mt_kernels *k, float *x, size_t n)
{
    float s[CHUNK];
    k->scale(s, 1.702f, x, n);
    k->sigmoid(s, s, n);
    for (size_t j = 0; j < n; j++)
        x[j] *= s[j];
}

/* x = act(x), at most CHUNK elements */
static void activate(const mt_kernels *k, mt_activation act, float *x, size_t n)
{
    float ones[CHUNK];
    for (size_t j = 0; j < n; j++)
        ones[j] = 1;
    switch (act) {
    case MT_ACT_GELU: gelu(k, x, n); break;
    case MT_ACT_QUICK_GELU: quick_gelu(k, x, n); break;
    case MT_ACT_GELU_TANH: k->gelu_mul(x, x, ones, n); break;
    case MT_ACT_SILU: k->silu_mul(x, x, ones, n); break;
    case MT_ACT_NONE: break;
    case MT_ACT_RELU:
        for (size_t j = 0; j < n; j++)
            x[j] = x[j] < 0 ? 0 : x[j]; /* NaN stays NaN */
        break;
    }
}

static size_t chunk(size_t n, size_t at)
{
    return n - at < CHUNK ? n - at : CHUNK;
}

void mt_cpu_activate(const mt_kernels *k, mt_activation act, float *x, size_t n)
{
    for (size_t j = 0; j < n; j += CHUNK)
        activate(k, act, x + j, chunk(n, j));
}

typedef struct activation {
    mt_device *dev;
    mt_tensor *y;
    const mt_tensor *gate, *up;
    mt_glu glu;
} activation;

static void act_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const activation *op = ctx;
    mt_cpu_activate(&op->dev->k, op->glu.act, mt_cpu_row(op->y, i), op->y->cols);
}

void mt_cpu_op_act(mt_device *dev, mt_tensor *x, size_t m, mt_activation act)
{
    assert(m <= x->rows);
    activation op = {.dev = dev, .y = x, .glu = {.act = act}};
    mt_cpu_run(dev, act_row, &op, m, 8 * m * x->cols);
}

/* NaN stays NaN. */
static void clamp(float *y, const float *x, float low, float high, size_t n)
{
    for (size_t j = 0; j < n; j++)
        y[j] = x[j] > high ? high : x[j] < low ? low : x[j];
}

static void any_glu(const mt_kernels *k, const mt_glu *glu, float *y, const float *gate, const float *up, size_t n)
{
    const float limit = glu->limit != 0 ? glu->limit : INFINITY;
    float g[CHUNK], u[CHUNK];
    clamp(g, gate, -INFINITY, limit, n);
    clamp(u, up, -limit, limit, n);
    activate(k, glu->act, g, n);
    for (size_t j = 0; j < n; j++)
        y[j] = g[j] * (u[j] + glu->offset);
}

void mt_cpu_glu(const mt_kernels *k, const mt_glu *glu, float *y, const float *gate, const float *up, size_t n)
{
    const bool plain = glu->limit == 0 && glu->offset == 0;
    if (plain && glu->act == MT_ACT_SILU) {
        k->silu_mul(y, gate, up, n);
    } else if (plain && glu->act == MT_ACT_GELU_TANH && y != up) {
        k->gelu_mul(y, gate, up, n);
    } else if (plain && glu->act == MT_ACT_NONE) {
        for (size_t j = 0; j < n; j++)
            y[j] = gate[j] * up[j];
    } else {
        for (size_t j = 0; j < n; j += CHUNK)
            any_glu(k, glu, y + j, gate + j, up + j, chunk(n, j));
    }
}

static void glu_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const activation *op = ctx;
    mt_cpu_glu(&op->dev->k, &op->glu, mt_cpu_row(op->y, i), mt_cpu_row(op->gate, i), mt_cpu_row(op->up, i),
               op->y->cols);
}

void mt_cpu_op_glu(mt_device *dev, mt_tensor *y, const mt_tensor *gate, const mt_tensor *up, size_t m, mt_glu glu)
{
    assert(m <= y->rows && y->cols == gate->cols && y->cols == up->cols);
    activation op = {.dev = dev, .y = y, .gate = gate, .up = up, .glu = glu};
    mt_cpu_run(dev, glu_row, &op, m, 4 * m * y->cols);
}
