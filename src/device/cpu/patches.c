/* Operations that only towers need: pixels, layer norms, activations without a gate, learned positions, and patches
   that become tokens. Each row by itself, as elsewhere. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "device/cpu/cpu.h"

#define CHUNK 256 /* elements that an activation takes at a time */

typedef struct patches {
    mt_device *dev;
    mt_tensor *y;
    const mt_tensor *x, *w, *bias;
    const mt_weight *weight;
    const mt_pixels *pixels;
    const mt_index *index;
    const mt_tensor *factor;
    size_t count, area;
    float eps;
    mt_activation act;
} patches;

static void pixels_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const patches *op = ctx;
    const mt_pixels *p = &op->pixels[i];
    const uint8_t *from = p->bytes;
    float *to = mt_cpu_row(op->y, i);
    const size_t stored = p->still ? 1 : op->count;
    for (size_t channel = 0; channel < 3; channel++) {
        const float *level = p->levels[channel];
        for (size_t frame = 0; frame < op->count; frame++, to += op->area) {
            const uint8_t *at = from + (p->still ? 0 : frame * op->area);
            for (size_t j = 0; j < op->area; j++)
                to[j] = level[at[j]];
        }
        from += stored * op->area;
    }
}

void mt_cpu_op_pixels(mt_device *dev, mt_tensor *x, const mt_patches *p, size_t m)
{
    assert(m <= x->rows && m <= p->rows && x->cols == 3 * p->frames * p->area);
    patches op = {.dev = dev, .y = x, .pixels = p->pixels, .count = p->frames, .area = p->area};
    mt_cpu_run(dev, pixels_row, &op, m, m * x->cols);
}

static void layer_norm_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const patches *op = ctx;
    const mt_kernels *k = &op->dev->k;
    const size_t n = op->x->cols;
    const float *x = mt_cpu_row(op->x, i);
    float *y = mt_cpu_row(op->y, i);
    const float mean = k->sum(x, n) / (float)n;
    for (size_t j = 0; j < n; j++)
        y[j] = x[j] - mean;
    k->rmsnorm(y, y, op->w->data, n, op->eps, 0);
    k->add(y, op->bias->data, n);
}

void mt_cpu_op_layer_norm(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w,
                          const mt_tensor *bias, float eps)
{
    assert(m <= y->rows && y->cols == x->cols && w->cols == x->cols && bias->cols == x->cols);
    patches op = {.dev = dev, .y = y, .x = x, .w = w, .bias = bias, .eps = eps};
    mt_cpu_run(dev, layer_norm_row, &op, m, 3 * m * x->cols);
}

/* erfc(z) = t exp(f(t) - z z) with t = 1 / (1 + z / 2): f is smooth, and a polynomial fitted for 0 <= z <= 12 keeps its
   value to 6e-8. */
static float erfc_exponent(float t)
{
    static const float f[] = {0.15775100886821747f, -0.7501815557479858f,  1.3186529874801636f,  -0.909740686416626f,
                              0.09432142227888107f, -0.09025565534830093f, 0.06523264944553375f, 0.3803541362285614f,
                              0.9993481040000916f,  -1.2654823064804077f};
    float sum = f[0];
    for (size_t i = 1; i < MT_COUNT(f); i++)
        sum = fmaf(sum, t, f[i]);
    return sum;
}

/* x = x / 2 erfc(-x / sqrt 2) */
static void gelu(const mt_kernels *k, float *x, size_t n)
{
    float t[CHUNK], e[CHUNK];
    for (size_t j = 0; j < n; j++) {
        const float z = fabsf(x[j]) * 0.70710678118654752f;
        t[j] = 1.0f / fmaf(0.5f, z, 1.0f);
        e[j] = fmaf(-z, z, erfc_exponent(t[j]));
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

static void act_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const patches *op = ctx;
    const mt_kernels *k = &op->dev->k;
    float *x = mt_cpu_row(op->y, i), ones[CHUNK];
    for (size_t j = 0; j < CHUNK; j++)
        ones[j] = 1;
    for (size_t j = 0; j < op->y->cols; j += CHUNK) {
        const size_t left = op->y->cols - j, n = left < CHUNK ? left : CHUNK;
        switch (op->act) {
        case MT_ACT_GELU: gelu(k, x + j, n); break;
        case MT_ACT_QUICK_GELU: quick_gelu(k, x + j, n); break;
        case MT_ACT_GELU_TANH: k->gelu_mul(x + j, x + j, ones, n); break;
        case MT_ACT_SILU: k->silu_mul(x + j, x + j, ones, n); break;
        }
    }
}

void mt_cpu_op_act(mt_device *dev, mt_tensor *x, size_t m, mt_activation act)
{
    assert(m <= x->rows);
    patches op = {.dev = dev, .y = x, .act = act};
    mt_cpu_run(dev, act_row, &op, m, 8 * m * x->cols);
}

static void add_rows_row(void *ctx, size_t i, size_t worker)
{
    const patches *op = ctx;
    float *row = (float *)(void *)mt_cpu_scratch(op->dev, worker), *y = mt_cpu_row(op->y, i);
    for (size_t j = 0; j < op->count; j++) {
        const float factor = op->factor ? mt_cpu_row(op->factor, i)[j] : 1.0f;
        if (factor == 0.0f)
            continue;
        op->dev->k.row_f32(row, &op->weight->mat, op->index->data[i * op->count + j]);
        op->dev->k.axpy(y, factor, row, op->y->cols);
    }
}

void mt_cpu_op_add_rows(mt_device *dev, mt_tensor *x, const mt_weight *w, const mt_index *index,
                        const mt_tensor *factor, size_t count, size_t m)
{
    assert(m <= x->rows && w->mat.k == x->cols && m * count <= index->count);
    patches op = {.dev = dev, .y = x, .weight = w, .index = index, .factor = factor, .count = count};
    mt_cpu_run(dev, add_rows_row, &op, m, m * count * x->cols);
}

static void join_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const patches *op = ctx;
    for (size_t j = 0; j < op->count; j++)
        memcpy(mt_cpu_row(op->y, i) + j * op->x->cols, mt_cpu_row(op->x, i * op->count + j),
               op->x->cols * sizeof(float));
}

void mt_cpu_op_join(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t count, size_t m)
{
    assert(m <= y->rows && m * count <= x->rows && y->cols == count * x->cols);
    patches op = {.dev = dev, .y = y, .x = x, .count = count};
    mt_cpu_run(dev, join_row, &op, m, m * y->cols);
}

static void mean_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const patches *op = ctx;
    float *y = mt_cpu_row(op->y, i);
    memcpy(y, mt_cpu_row(op->x, i * op->count), op->y->cols * sizeof *y);
    for (size_t j = 1; j < op->count; j++)
        op->dev->k.add(y, mt_cpu_row(op->x, i * op->count + j), op->y->cols);
    op->dev->k.scale(y, 1.0f / (float)op->count, y, op->y->cols);
}

void mt_cpu_op_mean(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t count, size_t m)
{
    assert(m <= y->rows && m * count <= x->rows && y->cols == x->cols);
    patches op = {.dev = dev, .y = y, .x = x, .count = count};
    mt_cpu_run(dev, mean_row, &op, m, m * count * y->cols);
}
