/* GatedDeltaNet and Mamba2: the convolution before them, the recurrence, the norm behind it, and their states. Where
   states have no keys (key_dim 0), the convolution is all. Mamba2's states are plain ones (mt_state_shape).

   A row of the convolution needs the taps - 1 rows before it, from the batch or the span's state, so rows can be
   divided freely. The recurrence takes a span's tokens in order; heads, and blocks of their columns, are independent.
   Each piece of a span reads the slot that the piece before it wrote, so states are never copied.

   Guesses at the end of a span run on a state that is dropped. What they do to a state is much smaller than a state,
   and is stored in a memo; the sequence's next step first repeats it for the guesses that proved right. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "device/limits.h"

#define LENGTH_EPS 1e-6f /* added to a head's squared length; transformers has no setting for it */
#define ITEMS 4          /* work items for each thread, before heads are divided into columns */

typedef struct recurrent {
    mt_device *dev;
    mt_states *st;
    size_t layer;
    mt_tensor *y;
    const mt_tensor *x, *w, *gates, *rate;
    const mt_columns *in;
    const mt_batch *batch;
    size_t key_heads;
    size_t blocks; /* blocks of columns in one item */
    float eps, low, high;
} recurrent;

static const float *columns_of(const mt_columns *c, size_t row, size_t head)
{
    return mt_cpu_row(c->x, row) + c->base + head * c->step;
}

/* ---- states ---- */

static void measure(mt_states *st, const mt_state_shape *s)
{
    st->shape = *s;
    st->columns = 2 * s->key_heads * s->key_dim + s->value_heads * s->value_dim;
    st->blocks = (s->value_dim + MT_DELTA_COLUMNS - 1) / MT_DELTA_COLUMNS;
    st->conv = mt_cpu_up((s->taps - 1) * st->columns, MT_LANES);
    st->layer = st->conv + s->value_heads * st->blocks * s->key_dim * MT_DELTA_COLUMNS;
}

static size_t slot_bytes(const mt_state_shape *shape)
{
    mt_states st;
    measure(&st, shape);
    return shape->layers * st.layer * sizeof(float);
}

size_t mt_cpu_state_slot_bytes(const mt_device *dev, const mt_state_shape *shape)
{
    (void)dev;
    return slot_bytes(shape);
}

mt_states *mt_cpu_state_new(mt_set *set, const mt_state_shape *shape, size_t memos)
{
    mt_states *st = mt_cpu_alloc(set, sizeof(*st));
    assert(shape->value_heads % shape->key_heads == 0 && shape->taps >= 2 && shape->taps <= MT_LIMIT_CONV_TAPS);
    measure(st, shape);
    st->zeros = mt_cpu_alloc(set, st->columns * sizeof(*st->zeros));
    if (shape->plain)
        st->ones = mt_cpu_alloc(set, st->columns * sizeof(*st->ones));
    for (size_t i = 0; st->ones && i < st->columns; i++)
        st->ones[i] = 1;
    st->memo_row = mt_cpu_up(2 * st->columns + 2 * shape->value_heads, MT_LANES);
    st->memo = mt_cpu_alloc(set, memos * shape->layers * MT_LIMIT_MEMO_ROWS * st->memo_row * sizeof(*st->memo));
    st->room_each = (shape->key_dim + 1) * MT_DELTA_COLUMNS;
    st->room = mt_cpu_alloc(set, mt_host_threads(set->head.dev->head.host) * st->room_each * sizeof(*st->room));
    return st;
}

bool mt_cpu_state_reserve(mt_set *set, mt_states *st, size_t slots, mt_error *err)
{
    const size_t bytes = slot_bytes(&st->shape);
    assert(!st->data && slots > 0);
    st->data = mt_cpu_map(set, slots, bytes);
    st->slots = slots;
    return st->data || mt_fail(err, MT_E_MEMORY,
                               "%zu recurrent states of %zu bytes do not fit in memory; lower --max-sequences or "
                               "--state-cache",
                               slots, bytes);
}

void mt_cpu_state_poison(mt_device *dev, mt_states *st, uint32_t slot)
{
    (void)dev;
    const size_t bytes = slot_bytes(&st->shape);
    mt_cpu_poison((uint8_t *)st->data + slot * bytes, bytes);
}

bool mt_cpu_state_poisoned(mt_device *dev, const mt_states *st, uint32_t slot)
{
    (void)dev;
    const size_t bytes = slot_bytes(&st->shape);
    return mt_cpu_poisoned((const uint8_t *)st->data + slot * bytes, bytes);
}

void mt_cpu_read_state(mt_device *dev, mt_reading *r, const mt_states *st, uint32_t slot)
{
    (void)dev;
    *r = (mt_reading){.data = (const uint8_t *)st->data + slot * slot_bytes(&st->shape)};
}

void mt_cpu_state_restore(mt_device *dev, mt_states *st, uint32_t slot, mt_sending *s, size_t at)
{
    (void)dev;
    memcpy((uint8_t *)st->data + slot * slot_bytes(&st->shape), s->data + at, slot_bytes(&st->shape));
}

static float *slot_of(const recurrent *op, uint32_t slot)
{
    assert(slot < op->st->slots);
    return op->st->data + (slot * op->st->shape.layers + op->layer) * op->st->layer;
}

static float *memo_of(const recurrent *op, const mt_span *span, size_t row)
{
    assert(row < MT_LIMIT_MEMO_ROWS);
    return op->st->memo +
           ((span->memo * op->st->shape.layers + op->layer) * MT_LIMIT_MEMO_ROWS + row) * op->st->memo_row;
}

/* ---- the convolution ---- */

static const mt_span *span_of(const mt_batch *batch, size_t row)
{
    size_t low = 0, high = batch->spans;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        *(batch->span[middle].row <= row ? &low : &high) = middle;
    }
    return &batch->span[low];
}

/* One of q, k, v among the columns of the convolution. */
typedef struct section {
    size_t first, width; /* its first column; columns of a key head */
} section;

static section section_of(const mt_states *st, size_t i)
{
    const mt_state_shape *s = &st->shape;
    const size_t keys = s->key_heads * s->key_dim;
    return i < 2 ? (section){i * keys, s->key_dim} : (section){2 * keys, s->value_heads / s->key_heads * s->value_dim};
}

/* Input row `local` of a span; negative: before the span, in the memo and before that in the state, an array of
   [taps - 1][columns]. */
static const float *input(const recurrent *op, const mt_span *span, ptrdiff_t local, size_t i, size_t head)
{
    const section s = section_of(op->st, i);
    if (local >= 0)
        return columns_of(&op->in[i], span->row + (size_t)local, head);
    local += (ptrdiff_t)span->replay;
    if (local >= 0)
        return memo_of(op, span, (size_t)local) + s.first + head * s.width;
    if (span->state == MT_NO_PAGE)
        return op->st->zeros;
    const size_t kept = (size_t)((ptrdiff_t)op->st->shape.taps - 1 + local);
    return slot_of(op, span->state) + kept * op->st->columns + s.first + head * s.width;
}

static void convolve(const recurrent *op, const mt_span *span, size_t row, size_t i, size_t head, size_t width)
{
    const section s = section_of(op->st, i);
    const size_t taps = op->st->shape.taps, at = s.first + head * s.width;
    const float *x[MT_LIMIT_CONV_TAPS + 1];
    for (size_t j = 0; j < taps; j++)
        x[j] = input(op, span, (ptrdiff_t)(row - span->row + j) - (ptrdiff_t)(taps - 1), i, head);
    x[taps] = op->st->ones; /* of a bias, which is one more tap */
    op->dev->k.conv(mt_cpu_row(op->y, row) + at, x, op->w->data + at, op->w->stride, op->w->rows, width);
}

static void normalise(const recurrent *op, float *x, float scale)
{
    const mt_kernels *k = &op->dev->k;
    const size_t n = op->st->shape.key_dim;
    k->scale(x, scale / sqrtf(k->dot(x, x, n) + LENGTH_EPS), x, n);
}

static void conv_row(void *ctx, size_t row, size_t worker)
{
    (void)worker;
    const recurrent *op = ctx;
    const mt_state_shape *s = &op->st->shape;
    const mt_span *span = span_of(op->batch, row);
    for (size_t i = 0; i < 3; i++) {
        const size_t width = section_of(op->st, i).width;
        if (op->in[i].step == width) /* the heads are contiguous */
            convolve(op, span, row, i, 0, s->key_heads * width);
        else
            for (size_t g = 0; g < s->key_heads; g++)
                convolve(op, span, row, i, g, width);
    }
    if (s->key_dim == 0) /* only a convolution */
        return;
    float *q = mt_cpu_row(op->y, row), *k = q + s->key_heads * s->key_dim;
    mt_cpu_activate(&op->dev->k, MT_ACT_SILU, q, op->y->cols);
    for (size_t g = 0; g < s->key_heads && !s->plain; g++) {
        normalise(op, q + g * s->key_dim, 1 / sqrtf((float)s->key_dim));
        normalise(op, k + g * s->key_dim, 1);
    }
}

/* Copies the last inputs before row `end` of the span to a slot, oldest first; in place, they only move forward. */
static void keep_inputs(const recurrent *op, const mt_span *span, size_t end, uint32_t slot)
{
    const size_t kept = op->st->shape.taps - 1;
    float *to = slot_of(op, slot);
    for (size_t j = 0; j < kept; j++)
        for (size_t i = 0; i < 3; i++) {
            const section s = section_of(op->st, i);
            for (size_t g = 0; g < op->st->shape.key_heads; g++)
                memmove(to + j * op->st->columns + s.first + g * s.width,
                        input(op, span, (ptrdiff_t)(end + j) - (ptrdiff_t)kept, i, g), s.width * sizeof(*to));
        }
}

static void keep_span(void *ctx, size_t item, size_t worker)
{
    (void)worker;
    const recurrent *op = ctx;
    const mt_span *span = &op->batch->span[item];
    size_t end = 0;
    for (size_t p = 0; p < span->pieces; p++) {
        end += span->piece[p].rows;
        keep_inputs(op, span, end, span->piece[p].slot);
    }
    assert(end + span->guesses == span->rows);
}

void mt_cpu_op_conv(mt_device *dev, mt_tensor *y, mt_states *state, size_t layer, const mt_columns in[3],
                    const mt_tensor *w)
{
    const mt_batch *batch = &dev->batch;
    assert(batch->rows <= y->rows && y->cols == state->columns && w->cols == y->cols &&
           w->rows == state->shape.taps + state->shape.plain);
    recurrent op = {.dev = dev, .st = state, .layer = layer, .y = y, .w = w, .in = in, .batch = batch};
    mt_cpu_run(dev, conv_row, &op, batch->rows, 8 * batch->rows * y->cols);
    mt_cpu_run(dev, keep_span, &op, batch->spans, batch->spans * y->cols);
}

/* ---- gates ---- */

/* y = log(1 + exp(t)); e and room are temporary arrays of n. */
static void softplus(const mt_kernels *k, float *y, const float *t, float *e, float *room, size_t n)
{
    for (size_t i = 0; i < n; i++)
        e[i] = -fabsf(t[i]);
    k->exp(e, e, n);
    for (size_t i = 0; i < n; i++)
        room[i] = 1.0f + e[i];
    k->log(room, room, n);
    for (size_t i = 0; i < n; i++) {
        const float u = 1.0f + e[i], small = u - 1.0f; /* log(u) / (u - 1) corrects the rounding of u */
        y[i] = (t[i] > 0 ? t[i] : 0.0f) + (small == 0 ? e[i] : room[i] * (e[i] / small));
    }
}

/* Decay and beta of row i, see mt_op_gates. */
static void gates_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const recurrent *op = ctx;
    const mt_kernels *k = &op->dev->k;
    const size_t n = op->rate->cols, share = n / op->key_heads;
    float *decay = mt_cpu_row(op->y, i), *beta = decay + n, *room = beta + n;
    for (size_t h = 0; h < n; h++)
        decay[h] = columns_of(&op->in[0], i, h / share)[h % share] + op->w->data[h];
    softplus(k, decay, decay, beta, room, n);
    for (size_t h = 0; h < n; h++)
        decay[h] *= -op->rate->data[h];
    k->exp(decay, decay, n);
    for (size_t h = 0; h < n; h++)
        beta[h] = columns_of(&op->in[1], i, h / share)[h % share];
    k->sigmoid(beta, beta, n);
}

void mt_cpu_op_gates(mt_device *dev, mt_tensor *gates, mt_columns a, mt_columns b, size_t key_heads,
                     const mt_tensor *rate, const mt_tensor *bias, size_t m)
{
    const mt_columns in[2] = {a, b};
    assert(m <= gates->rows && gates->cols == 3 * rate->cols && bias->cols == rate->cols);
    recurrent op = {.dev = dev, .y = gates, .in = in, .rate = rate, .w = bias, .key_heads = key_heads};
    mt_cpu_run(dev, gates_row, &op, m, 16 * m * gates->cols);
}

/* Decay and step of row i, see mt_op_time_steps. */
static void time_steps_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const recurrent *op = ctx;
    const mt_kernels *k = &op->dev->k;
    const size_t n = op->rate->cols;
    const float *x = mt_cpu_row(op->x, i);
    float *decay = mt_cpu_row(op->y, i), *s = decay + n, *room = s + n;
    for (size_t h = 0; h < n; h++)
        decay[h] = x[h] + op->w->data[h];
    softplus(k, decay, decay, s, room, n);
    for (size_t h = 0; h < n; h++) {
        s[h] = decay[h] < op->low ? op->low : decay[h] > op->high ? op->high : decay[h];
        decay[h] = s[h] * -op->rate->data[h];
    }
    k->exp(decay, decay, n);
}

void mt_cpu_op_time_steps(mt_device *dev, mt_tensor *gates, const mt_tensor *x, const mt_tensor *rate,
                          const mt_tensor *bias, float low, float high, size_t m)
{
    assert(m <= gates->rows && gates->cols == 3 * rate->cols && bias->cols == rate->cols && x->cols == rate->cols);
    recurrent op = {.dev = dev, .y = gates, .x = x, .rate = rate, .w = bias, .low = low, .high = high};
    mt_cpu_run(dev, time_steps_row, &op, m, 16 * m * gates->cols);
}

/* ---- the recurrence ---- */

/* Repeats what right guesses of the step before did to the state. */
static mt_delta replayed(const recurrent *op, const mt_span *span, size_t head, mt_delta d, size_t key, size_t value)
{
    const float *memo = memo_of(op, span, 0), *x = memo + op->st->columns, *gates = x + op->st->columns;
    d.tokens = span->replay;
    d.q = x + key;
    d.k = x + op->st->shape.key_heads * op->st->shape.key_dim + key;
    d.v = x + value;
    d.stride = op->st->memo_row;
    d.decay = gates + head;
    d.beta = gates + op->st->shape.value_heads + head;
    d.gate_stride = op->st->memo_row;
    return d;
}

/* Columns [32 * block, ...) of a head, through all pieces of a span. */
static void run_block(const recurrent *op, const mt_span *span, size_t head, size_t block, float *room)
{
    const mt_state_shape *s = &op->st->shape;
    const size_t keys = s->key_heads * s->key_dim, key = head / (s->value_heads / s->key_heads) * s->key_dim;
    const size_t column = block * MT_DELTA_COLUMNS, left = s->value_dim - column;
    const size_t offset = op->st->conv + (head * op->st->blocks + block) * s->key_dim * MT_DELTA_COLUMNS;
    const float *from = span->state == MT_NO_PAGE ? NULL : slot_of(op, span->state) + offset;
    const mt_delta nowhere = {.plain = s->plain,
                              .dk = s->key_dim,
                              .n = left < MT_DELTA_COLUMNS ? left : MT_DELTA_COLUMNS,
                              .o = room + s->key_dim * MT_DELTA_COLUMNS};
    size_t row = span->row;
    for (size_t p = 0; p < span->pieces + (span->guesses > 0); p++) {
        const bool guessed = p == span->pieces;
        const float *x = mt_cpu_row(op->x, row), *gates = mt_cpu_row(op->gates, row);
        float *to = guessed ? room : slot_of(op, span->piece[p].slot) + offset;
        mt_delta d = nowhere;
        if (p == 0 && span->replay) {
            const mt_delta before = replayed(op, span, head, nowhere, key, 2 * keys + head * s->value_dim + column);
            op->dev->k.delta(to, from, &before);
            from = to;
        }
        d.tokens = guessed ? span->guesses : span->piece[p].rows;
        d.q = x + key;
        d.k = x + keys + key;
        d.v = x + 2 * keys + head * s->value_dim + column;
        d.stride = op->x->stride;
        d.decay = gates + head;
        d.beta = gates + s->value_heads + head;
        d.gate_stride = op->gates->stride;
        d.o = mt_cpu_row(op->y, row) + head * s->value_dim + column;
        d.o_stride = op->y->stride;
        op->dev->k.delta(to, from, &d);
        from = to;
        row += d.tokens;
    }
}

static void delta_item(void *ctx, size_t item, size_t worker)
{
    const recurrent *op = ctx;
    const size_t parts = op->st->blocks / op->blocks, first = item % parts * op->blocks;
    const size_t head = item / parts % op->st->shape.value_heads, span = item / parts / op->st->shape.value_heads;
    for (size_t b = first; b < first + op->blocks; b++)
        run_block(op, &op->batch->span[span], head, b, op->st->room + worker * op->st->room_each);
}

void mt_cpu_op_delta(mt_device *dev, mt_tensor *y, mt_states *state, size_t layer, const mt_tensor *x,
                     const mt_tensor *gates)
{
    const mt_batch *batch = &dev->batch;
    const mt_state_shape *s = &state->shape;
    const size_t heads = batch->spans * s->value_heads;
    assert(x->cols == state->columns && y->cols == s->value_heads * s->value_dim);
    recurrent op = {.dev = dev, .st = state, .layer = layer, .y = y, .x = x, .gates = gates, .batch = batch};
    op.blocks = heads >= ITEMS * mt_host_threads(dev->head.host) ? state->blocks : 1;
    mt_cpu_run(dev, delta_item, &op, heads * (state->blocks / op.blocks),
               batch->rows * s->value_heads * s->key_dim * s->value_dim);
}

/* Copies what a span's guesses do to the layer into its memo. */
static void remember_span(void *ctx, size_t item, size_t worker)
{
    (void)worker;
    const recurrent *op = ctx;
    const mt_span *span = &op->batch->span[item];
    const size_t first = span->rows - span->guesses;
    for (size_t r = 0; r < span->guesses; r++) {
        float *to = memo_of(op, span, r);
        const size_t row = span->row + first + r;
        for (size_t i = 0; i < 3; i++) {
            const section s = section_of(op->st, i);
            for (size_t g = 0; g < op->st->shape.key_heads; g++)
                memcpy(to + s.first + g * s.width, columns_of(&op->in[i], row, g), s.width * sizeof(*to));
        }
        memcpy(to + op->st->columns, mt_cpu_row(op->x, row), op->st->columns * sizeof(*to));
        memcpy(to + 2 * op->st->columns, mt_cpu_row(op->gates, row), 2 * op->st->shape.value_heads * sizeof(*to));
    }
}

void mt_cpu_op_remember(mt_device *dev, mt_states *state, size_t layer, const mt_columns in[3], const mt_tensor *x,
                        const mt_tensor *gates)
{
    const mt_batch *batch = &dev->batch;
    recurrent op = {.dev = dev, .st = state, .layer = layer, .in = in, .x = x, .gates = gates, .batch = batch};
    mt_cpu_run(dev, remember_span, &op, batch->spans, batch->spans * state->columns);
}

static void gated_norm_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const recurrent *op = ctx;
    const mt_kernels *k = &op->dev->k;
    const size_t n = op->w->cols, width = op->y->cols / op->key_heads;
    float *y = mt_cpu_row(op->y, i);
    for (size_t c = 0; c < op->y->cols; c += n)
        k->rmsnorm(y + c, y + c, op->w->data, n, op->eps, 0);
    for (size_t g = 0; g < op->key_heads; g++)
        k->silu_mul(y + g * width, columns_of(&op->in[0], i, g), y + g * width, width);
}

void mt_cpu_op_gated_norm(mt_device *dev, mt_tensor *x, mt_columns z, size_t key_heads, const mt_tensor *w, float eps,
                          size_t m)
{
    assert(m <= x->rows && x->cols % w->cols == 0 && x->cols % key_heads == 0);
    recurrent op = {.dev = dev, .y = x, .in = &z, .w = w, .eps = eps, .key_heads = key_heads};
    mt_cpu_run(dev, gated_norm_row, &op, m, 4 * m * x->cols);
}
