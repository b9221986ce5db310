/* Operations that treat each row by itself: embedding, norms, rotation, activations, gathering. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "device/cpu/cpu.h"

typedef struct rowwise {
    mt_device *dev;
    mt_tensor *y, *y2;
    const mt_tensor *x, *x2, *w;
    const mt_weight *weight;
    const uint32_t *index;
    float eps, offset, scale;
    size_t heads, head_dim, first;
    const float *inv_freq;
    const mt_position *positions;
    const uint8_t *axis;
    const float *const *features;
    void (*glu)(float *, const float *, const float *, size_t);
} rowwise;

static float *row_of(const mt_tensor *t, size_t i)
{
    return t->data + i * t->stride;
}

static void embed_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    float *y = row_of(op->y, i);
    op->dev->k.row_f32(y, &op->weight->mat, op->index[i]);
    if (op->scale != 1.0f)
        op->dev->k.scale(y, op->scale, y, op->y->cols);
}

void mt_op_embed(mt_device *dev, mt_tensor *x, const mt_weight *w, const uint32_t *tokens, size_t m, float scale)
{
    assert(m <= x->rows && w->mat.k == x->cols);
    rowwise op = {.dev = dev, .y = x, .weight = w, .index = tokens, .scale = scale};
    mt_cpu_run(dev, embed_row, &op, m, m * x->cols);
}

static void norm_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    op->dev->k.rmsnorm(row_of(op->y, i), row_of(op->x, i), op->w->data, op->x->cols, op->eps, op->offset);
}

void mt_op_norm(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w, float eps, float offset)
{
    assert(m <= y->rows && y->cols == x->cols && w->cols == x->cols);
    rowwise op = {.dev = dev, .y = y, .x = x, .w = w, .eps = eps, .offset = offset};
    mt_cpu_run(dev, norm_row, &op, m, m * x->cols);
}

static void add_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    op->dev->k.add(row_of(op->y, i), row_of(op->x, i), op->x->cols);
}

void mt_op_add(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m)
{
    assert(m <= y->rows && y->cols == x->cols);
    rowwise op = {.dev = dev, .y = y, .x = x};
    mt_cpu_run(dev, add_row, &op, m, m * x->cols);
}

static void table_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    const mt_kernels *k = &op->dev->k;
    const size_t half = op->y->cols / 2;
    float *c = row_of(op->y, i), *s = c + half;
    if (op->axis)
        for (size_t f = 0; f < half; f++)
            c[f] = (float)op->positions[i].axis[op->axis[f]] * op->inv_freq[f];
    else
        k->scale(c, (float)op->positions[i].axis[0], op->inv_freq, half);
    k->sincos(s, c, c, half);
    if (op->scale != 1.0f)
        k->scale(c, op->scale, c, 2 * half);
}

void mt_op_rope_table(mt_device *dev, mt_tensor *table, const mt_position *positions, size_t m, const float *inv_freq,
                      const uint8_t *axis, size_t half, float scale)
{
    assert(m <= table->rows && table->cols == 2 * half);
    rowwise op = {.dev = dev, .y = table, .positions = positions, .inv_freq = inv_freq, .axis = axis, .scale = scale};
    mt_cpu_run(dev, table_row, &op, m, 16 * m * half);
}

static void set_feature(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    if (op->features[i])
        memcpy(row_of(op->y, i), op->features[i] + op->first, op->y->cols * sizeof(float));
}

static void add_feature(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    if (op->features[i])
        op->dev->k.add(row_of(op->y, i), op->features[i] + op->first, op->y->cols);
}

void mt_op_features(mt_device *dev, mt_tensor *x, const float *const *features, size_t m, size_t offset, bool add)
{
    assert(m <= x->rows);
    rowwise op = {.dev = dev, .y = x, .features = features, .first = offset};
    mt_cpu_run(dev, add ? add_feature : set_feature, &op, m, m * x->cols);
}

static void heads_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    const mt_kernels *k = &op->dev->k;
    const float *table = op->x2 ? row_of(op->x2, i) : NULL;
    const size_t half = op->x2 ? op->x2->cols / 2 : 0;
    for (size_t h = 0; h < op->heads; h++) {
        float *x = row_of(op->y, i) + h * op->head_dim;
        if (op->w)
            k->rmsnorm(x, x, op->w->data, op->head_dim, op->eps, op->offset);
        if (table)
            k->rope(x, table, table + half, half);
    }
}

void mt_op_heads(mt_device *dev, mt_tensor *x, size_t m, size_t heads, size_t head_dim, const mt_tensor *w, float eps,
                 float offset, const mt_tensor *table)
{
    assert(m <= x->rows && x->cols == heads * head_dim && (!table || table->cols <= head_dim));
    rowwise op = {
        .dev = dev, .y = x, .x2 = table, .w = w, .eps = eps, .offset = offset, .heads = heads, .head_dim = head_dim};
    mt_cpu_run(dev, heads_row, &op, m, m * x->cols);
}

static void glu_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    op->glu(row_of(op->y, i), row_of(op->x, i), row_of(op->x2, i), op->y->cols);
}

static void run_glu(mt_device *dev, mt_tensor *y, const mt_tensor *gate, const mt_tensor *up, size_t m,
                    void (*glu)(float *, const float *, const float *, size_t))
{
    assert(m <= y->rows && y->cols == gate->cols && y->cols == up->cols);
    rowwise op = {.dev = dev, .y = y, .x = gate, .x2 = up, .glu = glu};
    mt_cpu_run(dev, glu_row, &op, m, 4 * m * y->cols);
}

void mt_op_silu_mul(mt_device *dev, mt_tensor *y, const mt_tensor *gate, const mt_tensor *up, size_t m)
{
    run_glu(dev, y, gate, up, m, dev->k.silu_mul);
}

void mt_op_gelu_mul(mt_device *dev, mt_tensor *y, const mt_tensor *gate, const mt_tensor *up, size_t m)
{
    run_glu(dev, y, gate, up, m, dev->k.gelu_mul);
}

static void split_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    const size_t size = op->head_dim * sizeof(float);
    const float *x = row_of(op->x, i);
    for (size_t h = 0; h < op->heads; h++, x += 2 * op->head_dim) {
        memcpy(row_of(op->y, i) + h * op->head_dim, x, size);
        memcpy(row_of(op->y2, i) + h * op->head_dim, x + op->head_dim, size);
    }
}

void mt_op_split_heads(mt_device *dev, mt_tensor *q, mt_tensor *gate, const mt_tensor *x, size_t head_dim, size_t m)
{
    assert(m <= q->rows && q->cols == gate->cols && x->cols == 2 * q->cols && q->cols % head_dim == 0);
    rowwise op = {.dev = dev, .y = q, .y2 = gate, .x = x, .heads = q->cols / head_dim, .head_dim = head_dim};
    mt_cpu_run(dev, split_row, &op, m, m * x->cols);
}

static void gate_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    op->dev->k.sigmoid_mul(row_of(op->y, i), row_of(op->x, i), row_of(op->y, i), op->y->cols);
}

void mt_op_gate(mt_device *dev, mt_tensor *y, const mt_tensor *gate, size_t m)
{
    assert(m <= y->rows && y->cols == gate->cols);
    rowwise op = {.dev = dev, .y = y, .x = gate};
    mt_cpu_run(dev, gate_row, &op, m, 4 * m * y->cols);
}

static void add_gated_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    float share;
    op->dev->k.sigmoid(&share, row_of(op->x2, i), 1);
    op->dev->k.axpy(row_of(op->y, i), share, row_of(op->x, i), op->y->cols);
}

void mt_op_add_gated(mt_device *dev, mt_tensor *y, const mt_tensor *x, const mt_tensor *gate, size_t m)
{
    assert(m <= y->rows && y->cols == x->cols && gate->cols == 1);
    rowwise op = {.dev = dev, .y = y, .x = x, .x2 = gate};
    mt_cpu_run(dev, add_gated_row, &op, m, m * y->cols);
}

static void gather_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    memcpy(row_of(op->y, i), row_of(op->x, op->index[i]), op->x->cols * sizeof(float));
}

void mt_op_gather(mt_device *dev, mt_tensor *y, const mt_tensor *x, const uint32_t *index, size_t m)
{
    assert(m <= y->rows && y->cols == x->cols && y != x);
    rowwise op = {.dev = dev, .y = y, .x = x, .index = index};
    mt_cpu_run(dev, gather_row, &op, m, m * x->cols);
}

static void softcap_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    op->dev->k.softcap(row_of(op->y, i), op->scale, op->y->cols);
}

void mt_op_softcap(mt_device *dev, mt_tensor *x, size_t m, float cap)
{
    assert(m <= x->rows);
    rowwise op = {.dev = dev, .y = x, .scale = cap};
    mt_cpu_run(dev, softcap_row, &op, m, 8 * m * x->cols);
}

typedef struct finite_rows {
    const mt_tensor *x;
    bool *ok;
} finite_rows;

static void finite_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const finite_rows *op = ctx;
    const float *p = row_of(op->x, i);
    uint32_t bad = 0;
    for (size_t c = 0; c < op->x->cols; c++) {
        uint32_t bits;
        memcpy(&bits, &p[c], sizeof bits);
        bad |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    op->ok[i] = !bad;
}

void mt_op_finite(mt_device *dev, const mt_tensor *x, size_t m, bool *ok)
{
    finite_rows op = {.x = x, .ok = ok};
    mt_cpu_run(dev, finite_row, &op, m, m * x->cols);
}
