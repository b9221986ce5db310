/* Operations that only vision towers need: pixels, layer norms, learned positions, and joining patches to tokens. Rows
   are independent. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "device/cpu/cpu.h"

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
    assert(m <= x->rows && w->mat.k == x->cols && m * count <= index->count && w->class == MT_CLASS_F);
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

static void weave_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const patches *op = ctx;
    float *y = mt_cpu_row(op->y, i);
    for (size_t j = 0; j < op->count; j++) {
        const float *x = mt_cpu_row(op->x, i * op->count + j);
        for (size_t c = 0; c < op->x->cols; c++)
            y[c * op->count + j] = x[c];
    }
}

void mt_cpu_op_join(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t count, size_t m, bool interleaved)
{
    assert(m <= y->rows && m * count <= x->rows && y->cols == count * x->cols);
    patches op = {.dev = dev, .y = y, .x = x, .count = count};
    mt_cpu_run(dev, interleaved ? weave_row : join_row, &op, m, m * y->cols);
}

static void mean_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const patches *op = ctx;
    float *y = mt_cpu_row(op->y, i);
    memcpy(y, mt_cpu_row(op->x, i * op->count), op->y->cols * sizeof(*y));
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
