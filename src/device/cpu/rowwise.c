/* Operations that treat each row by itself: embedding, norms, rotation, gates, copying. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "device/cpu/cpu.h"

typedef struct rowwise {
    mt_device *dev;
    mt_tensor *y, *y2;
    const mt_tensor *x, *x2, *w;
    const mt_weight *weight;
    const mt_index *index;
    float eps, offset, scale;
    size_t heads, head_dim, first, rest;
    bool pairs;
} rowwise;

static void embed_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    float *y = mt_cpu_row(op->y, i);
    op->dev->k.row_f32(y, &op->weight->mat, op->dev->batch.tokens[i]);
    if (op->scale != 1.0f)
        op->dev->k.scale(y, op->scale, y, op->y->cols);
}

void mt_cpu_op_embed(mt_device *dev, mt_tensor *x, const mt_weight *w, float scale)
{
    const size_t m = dev->batch.rows;
    assert(m <= x->rows && w->mat.k == x->cols && w->class == MT_CLASS_F);
    rowwise op = {.dev = dev, .y = x, .weight = w, .scale = scale};
    mt_cpu_run(dev, embed_row, &op, m, m * x->cols);
}

static void norm_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    op->dev->k.rmsnorm(mt_cpu_row(op->y, i), mt_cpu_row(op->x, i), op->w->data, op->x->cols, op->eps, op->offset);
}

void mt_cpu_op_norm(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w, float eps,
                    float offset)
{
    assert(m <= y->rows && y->cols == x->cols && w->cols == x->cols);
    rowwise op = {.dev = dev, .y = y, .x = x, .w = w, .eps = eps, .offset = offset};
    mt_cpu_run(dev, norm_row, &op, m, m * x->cols);
}

static void add_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    op->dev->k.add(mt_cpu_row(op->y, i), mt_cpu_row(op->x, i), op->x->cols);
}

/* Everything is written at once. */
void mt_cpu_op_spend(mt_device *dev, const mt_tensor *x)
{
    (void)dev, (void)x;
}

void mt_cpu_op_add(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m)
{
    assert(m <= y->rows && y->cols == x->cols);
    rowwise op = {.dev = dev, .y = y, .x = x};
    mt_cpu_run(dev, add_row, &op, m, m * x->cols);
}

/* cos and sin of row i's angles. */
static void table_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    const mt_kernels *k = &op->dev->k;
    const size_t half = op->y->cols / 2;
    const mt_position *at = &op->dev->batch.positions[i];
    const float *inv_freq = op->x->data;
    float *c = mt_cpu_row(op->y, i), *s = c + half;
    if (op->index)
        for (size_t f = 0; f < half; f++)
            c[f] = (float)at->axis[op->index->data[f]] * inv_freq[f];
    else
        k->scale(c, (float)at->axis[0], inv_freq, half);
    k->sincos(s, c, c, half);
    if (op->scale != 1.0f)
        k->scale(c, op->scale, c, 2 * half);
}

void mt_cpu_op_rope_table(mt_device *dev, mt_tensor *table, const mt_tensor *inv_freq, const mt_index *axis,
                          float scale)
{
    const size_t m = dev->batch.rows, half = inv_freq->cols;
    assert(m <= table->rows && table->cols == 2 * half && (!axis || axis->count == half));
    rowwise op = {.dev = dev, .y = table, .x = inv_freq, .index = axis, .scale = scale};
    mt_cpu_run(dev, table_row, &op, m, 16 * m * half);
}

static void set_feature(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    const uint32_t from = op->dev->batch.features[i];
    if (from != MT_NO_PAGE)
        memcpy(mt_cpu_row(op->y, i), mt_cpu_row(op->x, from) + op->first, op->y->cols * sizeof(float));
}

static void add_feature(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    const uint32_t from = op->dev->batch.features[i];
    if (from != MT_NO_PAGE)
        op->dev->k.add(mt_cpu_row(op->y, i), mt_cpu_row(op->x, from) + op->first, op->y->cols);
}

void mt_cpu_op_features(mt_device *dev, mt_tensor *x, const mt_tensor *features, size_t column, bool add)
{
    const size_t m = dev->batch.rows;
    assert(m <= x->rows && column + x->cols <= features->cols);
    rowwise op = {.dev = dev, .y = x, .x = features, .first = column};
    mt_cpu_run(dev, add ? add_feature : set_feature, &op, m, m * x->cols);
}

/* Rotates elements 2 i and 2 i + 1. */
static void rotate_pairs(float *x, const float *c, const float *s, size_t half)
{
    for (size_t i = 0; i < half; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = fmaf(a, c[i], -(b * s[i]));
        x[2 * i + 1] = fmaf(b, c[i], a * s[i]);
    }
}

/* Norms and rotates each head of row i. */
static void heads_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    const mt_kernels *k = &op->dev->k;
    const float *table = op->x2 ? mt_cpu_row(op->x2, i) : NULL, *from = mt_cpu_row(op->x, i);
    const size_t half = op->x2 ? op->x2->cols / 2 : 0;
    float *y = mt_cpu_row(op->y, i);
    for (size_t h = 0; h < op->heads; h++, y += op->head_dim, from += op->head_dim) {
        if (op->w)
            k->rmsnorm(y, from, op->w->data, op->head_dim, op->eps, op->offset);
        else if (y != from)
            memcpy(y, from, op->head_dim * sizeof(*y));
        if (table)
            (op->pairs ? rotate_pairs : k->rope)(y, table, table + half, half);
    }
}

void mt_cpu_op_heads(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, size_t head_dim, const mt_tensor *w,
                     float eps, float offset, const mt_tensor *table, bool pairs)
{
    assert(m <= x->rows && x->cols == y->cols && x->cols % head_dim == 0 && (!table || table->cols <= head_dim));
    rowwise op = {.dev = dev,
                  .y = y,
                  .x = x,
                  .x2 = table,
                  .w = w,
                  .eps = eps,
                  .offset = offset,
                  .heads = x->cols / head_dim,
                  .head_dim = head_dim,
                  .pairs = pairs};
    mt_cpu_run(dev, heads_row, &op, m, m * x->cols);
}

/* first and rest: elements of a head of x and of y, of which the last head_dim are turned. */
static void turn_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    const float *table = op->x2 ? mt_cpu_row(op->x2, i) : NULL, *from = mt_cpu_row(op->x, i);
    const size_t half = op->x2 ? op->x2->cols / 2 : 0, count = op->head_dim;
    for (size_t h = 0; h < op->heads; h++) {
        float *y = mt_cpu_row(op->y, i) + (h + 1) * op->rest - count;
        memmove(y, from + (h + 1) * op->first - count, count * sizeof(*y));
        if (table)
            (op->pairs ? rotate_pairs : op->dev->k.rope)(y, table, table + half, half);
    }
}

void mt_cpu_op_turn_ends(mt_device *dev, mt_tensor *y, size_t y_dim, const mt_tensor *x, size_t x_dim, size_t count,
                         size_t m, const mt_tensor *table, bool pairs)
{
    assert(m <= x->rows && m <= y->rows && x->cols % x_dim == 0 && x->cols / x_dim == y->cols / y_dim &&
           count <= x_dim && count <= y_dim && (!table || table->cols <= count));
    rowwise op = {.dev = dev,
                  .y = y,
                  .x = x,
                  .x2 = table,
                  .heads = x->cols / x_dim,
                  .head_dim = count,
                  .first = x_dim,
                  .rest = y_dim,
                  .pairs = pairs};
    mt_cpu_run(dev, turn_row, &op, m, m * op.heads * count);
}

static void stretch_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    const size_t at = op->dev->batch.positions[i].axis[0] / op->first, last = op->w->cols - 1;
    const float factor = op->w->data[at < last ? at : last];
    float *y = mt_cpu_row(op->y, i);
    if (factor != 1.0f)
        op->dev->k.scale(y, factor, y, op->y->cols);
}

void mt_cpu_op_stretch(mt_device *dev, mt_tensor *x, const mt_tensor *factor, size_t every)
{
    const size_t m = dev->batch.rows;
    assert(m <= x->rows && every > 0);
    rowwise op = {.dev = dev, .y = x, .w = factor, .first = every};
    mt_cpu_run(dev, stretch_row, &op, m, m * x->cols);
}

static void split_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    const size_t size = op->head_dim * sizeof(float);
    const float *x = mt_cpu_row(op->x, i);
    for (size_t h = 0; h < op->heads; h++, x += 2 * op->head_dim) {
        memcpy(mt_cpu_row(op->y, i) + h * op->head_dim, x, size);
        memcpy(mt_cpu_row(op->y2, i) + h * op->head_dim, x + op->head_dim, size);
    }
}

void mt_cpu_op_split_heads(mt_device *dev, mt_tensor *q, mt_tensor *gate, const mt_tensor *x, size_t head_dim, size_t m)
{
    assert(m <= q->rows && q->cols == gate->cols && x->cols == 2 * q->cols && q->cols % head_dim == 0);
    rowwise op = {.dev = dev, .y = q, .y2 = gate, .x = x, .heads = q->cols / head_dim, .head_dim = head_dim};
    mt_cpu_run(dev, split_row, &op, m, m * x->cols);
}

static void gate_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    op->dev->k.sigmoid_mul(mt_cpu_row(op->y, i), mt_cpu_row(op->x, i), mt_cpu_row(op->y, i), op->y->cols);
}

void mt_cpu_op_gate(mt_device *dev, mt_tensor *y, const mt_tensor *gate, size_t m)
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
    op->dev->k.sigmoid(&share, mt_cpu_row(op->x2, i), 1);
    op->dev->k.axpy(mt_cpu_row(op->y, i), share, mt_cpu_row(op->x, i), op->y->cols);
}

void mt_cpu_op_add_gated(mt_device *dev, mt_tensor *y, const mt_tensor *x, const mt_tensor *gate, size_t m)
{
    assert(m <= y->rows && y->cols == x->cols && gate->cols == 1);
    rowwise op = {.dev = dev, .y = y, .x = x, .x2 = gate};
    mt_cpu_run(dev, add_gated_row, &op, m, m * y->cols);
}

static void gather_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    memcpy(mt_cpu_row(op->y, i), mt_cpu_row(op->x, op->index->data[i]), op->x->cols * sizeof(float));
}

void mt_cpu_op_gather(mt_device *dev, mt_tensor *y, const mt_tensor *x, const mt_index *index, size_t m)
{
    assert(m <= y->rows && m <= index->count && y->cols == x->cols && y != x);
    rowwise op = {.dev = dev, .y = y, .x = x, .index = index};
    mt_cpu_run(dev, gather_row, &op, m, m * x->cols);
}

static void scatter_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    if (op->index->data[i] != MT_NO_PAGE)
        memcpy(mt_cpu_row(op->y, op->index->data[i]) + op->first, mt_cpu_row(op->x, i), op->x->cols * sizeof(float));
}

void mt_cpu_op_scatter(mt_device *dev, mt_tensor *y, const mt_index *to, size_t column, const mt_tensor *x, size_t m)
{
    assert(m <= x->rows && m <= to->count && column + x->cols <= y->cols);
    rowwise op = {.dev = dev, .y = y, .x = x, .index = to, .first = column};
    mt_cpu_run(dev, scatter_row, &op, m, m * x->cols);
}

/* On one thread, as several rows may be added to the same sum. */
void mt_cpu_op_sum_rows(mt_device *dev, mt_tensor *y, const mt_index *to, const mt_tensor *x, size_t m)
{
    assert(m <= x->rows && m <= to->count && x->cols == y->cols);
    for (size_t i = 0; i < m; i++)
        if (to->data[i] != MT_NO_PAGE)
            dev->k.add(mt_cpu_row(y, to->data[i]), mt_cpu_row(x, i), x->cols);
}

void mt_cpu_op_copy_row(mt_device *dev, mt_tensor *y, size_t to, const mt_tensor *x, size_t from)
{
    (void)dev;
    assert(to < y->rows && from < x->rows && x->cols == y->cols);
    memmove(mt_cpu_row(y, to), mt_cpu_row(x, from), x->cols * sizeof(float));
}

void mt_cpu_op_clear(mt_device *dev, mt_tensor *y, size_t row, size_t m)
{
    (void)dev;
    assert(row + m <= y->rows);
    for (size_t i = row; i < row + m; i++)
        memset(mt_cpu_row(y, i), 0, y->cols * sizeof(float));
}

static void scale_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    op->dev->k.scale(mt_cpu_row(op->y, i), op->scale, mt_cpu_row(op->y, i), op->y->cols);
}

void mt_cpu_op_scale(mt_device *dev, mt_tensor *x, size_t m, float factor)
{
    assert(m <= x->rows);
    rowwise op = {.dev = dev, .y = x, .scale = factor};
    mt_cpu_run(dev, scale_row, &op, m, m * x->cols);
}

typedef struct adjusting {
    mt_tensor *x;
    const float *bias, *w;
    float low, high;
} adjusting;

static void adjust_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const adjusting *op = ctx;
    float *x = mt_cpu_row(op->x, i);
    for (size_t c = 0; op->bias && c < op->x->cols; c++)
        x[c] -= op->bias[c];
    for (size_t c = 0; op->w && c < op->x->cols; c++)
        x[c] *= op->w[c];
    for (size_t c = 0; c < op->x->cols; c++)
        x[c] = x[c] > op->high ? op->high : x[c] < op->low ? op->low : x[c];
}

void mt_cpu_op_adjust(mt_device *dev, mt_tensor *x, size_t m, const mt_tensor *bias, const mt_tensor *w, float low,
                      float high)
{
    assert(m <= x->rows && (!bias || bias->cols == x->cols) && (!w || w->cols == x->cols));
    adjusting op = {
        .x = x, .bias = bias ? mt_cpu_row(bias, 0) : NULL, .w = w ? mt_cpu_row(w, 0) : NULL, .low = low, .high = high};
    mt_cpu_run(dev, adjust_row, &op, m, 2 * m * x->cols);
}

enum { SOFTCAP_COLUMNS = 8192 }; /* of an item: a step of one answer has a single row, of a whole vocabulary */

static size_t softcap_pieces(const mt_tensor *x)
{
    return (x->cols + SOFTCAP_COLUMNS - 1) / SOFTCAP_COLUMNS;
}

/* item: columns of one row */
static void softcap_item(void *ctx, size_t item, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    const size_t pieces = softcap_pieces(op->y), first = item % pieces * SOFTCAP_COLUMNS, left = op->y->cols - first;
    op->dev->k.softcap(mt_cpu_row(op->y, item / pieces) + first, op->scale,
                       left < SOFTCAP_COLUMNS ? left : SOFTCAP_COLUMNS);
}

void mt_cpu_op_softcap(mt_device *dev, mt_tensor *x, size_t m, float cap)
{
    assert(m <= x->rows);
    rowwise op = {.dev = dev, .y = x, .scale = cap};
    mt_cpu_run(dev, softcap_item, &op, m * softcap_pieces(x), 8 * m * x->cols);
}

static void finite_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const rowwise *op = ctx;
    const float *p = mt_cpu_row(op->x, i);
    uint32_t bad = 0;
    for (size_t c = 0; c < op->x->cols; c++) {
        uint32_t bits;
        memcpy(&bits, &p[c], sizeof(bits));
        bad |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    *mt_cpu_row(op->y, i) = bad ? 0.0f : 1.0f;
}

void mt_cpu_op_finite(mt_device *dev, mt_tensor *ok, const mt_tensor *x, size_t m)
{
    assert(m <= x->rows && m <= ok->rows);
    rowwise op = {.dev = dev, .y = ok, .x = x};
    mt_cpu_run(dev, finite_row, &op, m, m * x->cols);
}

typedef struct argmax {
    const mt_device *dev;
    const mt_tensor *x;
    mt_index *y;
} argmax;

static void argmax_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const argmax *op = ctx;
    const float *x = mt_cpu_row(op->x, i), most = op->dev->k.max(x, op->x->cols);
    uint32_t at = 0;
    while (at + 1 < op->x->cols && !(x[at] >= most))
        at++;
    op->y->data[i] = at;
}

void mt_cpu_op_argmax(mt_device *dev, mt_index *y, const mt_tensor *x, size_t m)
{
    assert(m <= x->rows && m <= y->count);
    argmax op = {.dev = dev, .x = x, .y = y};
    mt_cpu_run(dev, argmax_row, &op, m, m * x->cols);
}
