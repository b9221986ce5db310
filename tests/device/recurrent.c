/* GatedDeltaNet and Mamba2: units are sequences that go through two steps, the first of which may end with guesses,
   some of which the second takes. */
#include <string.h>

#include "base/alloc.h"
#include "check.h"
#include "device/limits.h"

#define SEQUENCES 9
#define ROWS 24 /* of a sequence in a step */

typedef struct layer {
    mt_state_shape shape;
    size_t columns, values, keys;
    mt_states *states;
    mt_tensor *conv, *rate, *bias, *norm;
    size_t hidden;             /* of the rows that a and b are products of; 0: they are not */
    bool together, answers;    /* a and b are columns of one product; steps of few rows */
    mt_weight *small[2], *out; /* a and b; out NULL: the result is not multiplied */
} layer;

typedef struct sequence {
    size_t first, guesses, taken, second, cut; /* rows of the steps; cut: the second one's first piece, 0: it has one */
} sequence;

static void draw_sequence(const run *r, size_t i, const layer *l, sequence *s)
{
    const size_t most = l->answers ? 2 : ROWS - 1;
    run own = *r;
    own.rng = r->seed + 77 * (r->unit[i] + 1);
    s->first = 1 + below(&own, l->answers ? 2 : ROWS - MT_LIMIT_MEMO_ROWS);
    s->guesses = below(&own, 2) ? below(&own, MT_LIMIT_MEMO_ROWS + 1) : 0;
    s->taken = s->guesses ? below(&own, s->guesses + 1) : 0;
    s->second = 1 + below(&own, most);
    s->cut = s->second > 1 && below(&own, 2) ? 1 + below(&own, s->second - 1) : 0;
}

/* What follows the convolution. */
static void run_delta(run *r, layer *l, const mt_columns qkv[3], mt_tensor *x, mt_tensor *y, mt_tensor *gates,
                      mt_tensor *a, mt_tensor *b, mt_tensor *z, size_t rows)
{
    const mt_state_shape *s = &l->shape;
    const size_t share = s->value_heads / s->key_heads, step = l->together ? 2 * share : share;
    if (s->plain)
        mt_op_time_steps(r->dev, gates, b, l->rate, l->bias, 0.01f, 4, rows);
    else
        mt_op_gates(r->dev, gates, (mt_columns){a, 0, step},
                    (mt_columns){l->together ? a : b, l->together ? share : 0, step}, s->key_heads, l->rate, l->bias,
                    rows);
    mt_op_delta(r->dev, y, l->states, 1, x, gates);
    mt_op_remember(r->dev, l->states, 1, qkv, x, gates);
    mt_op_gated_norm(r->dev, y, (mt_columns){z, 0, share * s->value_dim}, s->key_heads, l->norm, 1e-6f, rows);
}

/* One step over all sequences: rows [from, from + n) of each. Gives them. */
static void step(run *r, layer *l, const mt_span *spans, const size_t *from)
{
    const mt_state_shape *s = &l->shape;
    mt_batch batch = {.spans = r->units, .span = spans};
    for (size_t i = 0; i < r->units; i++)
        batch.rows += spans[i].rows;
    mt_tensor *in = mt_tensor_new(r->set, batch.rows, l->columns), *z = mt_tensor_new(r->set, batch.rows, l->values);
    const size_t heads = (l->together ? 2 : 1) * s->value_heads;
    mt_tensor *h = mt_tensor_new(r->set, batch.rows, l->hidden ? l->hidden : 1);
    mt_tensor *a = mt_tensor_new(r->set, batch.rows, heads);
    mt_tensor *b = mt_tensor_new(r->set, batch.rows, s->value_heads);
    mt_tensor *x = mt_tensor_new(r->set, batch.rows, l->columns), *y = mt_tensor_new(r->set, batch.rows, l->values);
    mt_tensor *gates = mt_tensor_new(r->set, batch.rows, 3 * s->value_heads);
    for (size_t i = 0; i < r->units; i++) {
        write_positions(r, in, spans[i].row, 1, r->unit[i], from[i], spans[i].rows, l->columns);
        write_positions(r, z, spans[i].row, 2, r->unit[i], from[i], spans[i].rows, l->values);
        write_positions(r, a, spans[i].row, 3, r->unit[i], from[i], spans[i].rows, heads);
        write_positions(r, b, spans[i].row, 4, r->unit[i], from[i], spans[i].rows, s->value_heads);
        if (l->hidden)
            write_positions(r, h, spans[i].row, 5, r->unit[i], from[i], spans[i].rows, l->hidden);
    }
    const size_t share = s->value_heads / s->key_heads;
    const mt_columns qkv[3] = {{in, 0, s->key_dim}, {in, l->keys, s->key_dim}, {in, 2 * l->keys, share * s->value_dim}};
    mt_step_begin(r->dev, &batch);
    if (l->hidden)
        mt_op_matmul(r->dev, (mt_tensor *[]){a, b}, (const mt_weight *[]){l->small[0], l->small[1]},
                     l->together ? 1 : 2, h, batch.rows);
    mt_op_conv(r->dev, x, l->states, 1, qkv, l->conv);
    if (s->key_dim == 0) { /* a convolution alone */
        mt_op_remember(r->dev, l->states, 1, qkv, x, gates);
        y = x;
    } else {
        run_delta(r, l, qkv, x, y, gates, a, b, z, batch.rows);
    }
    if (l->out) {
        mt_tensor *product = mt_tensor_new(r->set, batch.rows, l->values);
        mt_op_matmul(r->dev, &product, (const mt_weight *[]){l->out}, 1, y, batch.rows);
        y = product;
    }
    mt_reading *reading = mt_reading_new(r->set, l->values * sizeof(float));
    float *none = mt_alloc_array(l->values, sizeof(*none));
    for (size_t i = 0; i < r->units; i++)
        for (size_t row = 0; row < ROWS; row++) {
            mt_read_rows(r->dev, reading, y, row < spans[i].rows ? spans[i].row + row : 0, 1);
            memcpy(r->out + (i * 2 + (from[i] > 0)) * ROWS * l->values + row * l->values,
                   row < spans[i].rows ? mt_reading_row(r->dev, reading, 0) : none, l->values * sizeof(float));
        }
    mt_free(none);
}

static void open_layer(run *r, layer *l, bool plain)
{
    static const size_t dims[] = {8, 16, 32, 48, 128, 128, 128}, states[] = {128, 48, 264, 256, 13, 64};
    mt_error err;
    l->shape = (mt_state_shape){.layers = 2,
                                .key_heads = 1 + below(r, 3),
                                .key_dim = pick(r, dims, MT_COUNT(dims)),
                                .value_dim = pick(r, dims, MT_COUNT(dims)),
                                .taps = below(r, 2) ? 4 : 2 + below(r, MT_LIMIT_CONV_TAPS - 1)};
    const bool usual = below(r, 2) && !plain; /* heads as models have them */
    if (plain)                                /* as models have them, too, and states that a warp has no room for */
        l->shape.key_dim = in_turn(r, states, MT_COUNT(states));
    if (usual) {
        l->shape.key_dim = l->shape.value_dim = 128;
        l->shape.taps = 4;
    }
    if (!usual && !plain && below(r, 4) == 0) { /* a convolution alone */
        l->shape.key_heads = 1;
        l->shape.key_dim = 0;
    }
    l->shape.plain = plain;
    l->shape.value_heads = l->shape.key_heads * (usual ? 2 : 1 + below(r, 3));
    l->keys = l->shape.key_heads * l->shape.key_dim;
    l->values = l->shape.value_heads * l->shape.value_dim;
    l->columns = 2 * l->keys + l->values;
    l->states = mt_state_new(r->set, &l->shape, SEQUENCES);
    const bool held = mt_state_reserve(r->set, l->states, 3 * SEQUENCES, &err);
    (void)held;
    l->conv = mt_tensor_new(r->set, l->shape.taps + l->shape.plain, l->columns);
    write_positions(r, l->conv, 0, 9, 1000, 0, l->shape.taps + l->shape.plain, l->columns);
    float *rate = mt_alloc_array(l->shape.value_heads, sizeof(*rate));
    fill(r, 10, 0, rate, l->shape.value_heads);
    for (size_t i = 0; i < l->shape.value_heads; i++)
        rate[i] = rate[i] < 0 ? -rate[i] : rate[i];
    l->rate = mt_tensor_of(r->set, rate, 1, l->shape.value_heads);
    l->bias = row_of(r, 11, l->shape.value_heads);
    l->norm = row_of(r, 12, l->shape.value_dim);
    mt_free(rate);
}

/* Products before and behind the recurrence. Formats are those whose products have the definition's bits. */
static void open_products(run *r, layer *l)
{
    static const size_t widths[] = {96, 128, 256, 640, 1024};
    static const mt_format formats[] = {MT_FORMAT_AFFINE, MT_FORMAT_SIGNED, MT_FORMAT_IQ4, MT_FORMAT_MXFP4,
                                        MT_FORMAT_F32};
    const size_t heads = l->shape.value_heads;
    l->answers = below(r, 4);
    if (below(r, 4)) {
        l->hidden = pick(r, widths, MT_COUNT(widths));
        l->together = below(r, 3) == 0;
        const mt_mat mat = matrix(r, formats[below(r, MT_COUNT(formats))], (l->together ? 2 : 1) * heads, l->hidden);
        for (size_t i = 0; i < 2; i++)
            l->small[i] = mt_weight_new(r->set, &mat, NULL, true);
    }
    if (l->values % 32 == 0 && below(r, 2)) {
        const mt_mat mat = matrix(r, below(r, 3) ? MT_FORMAT_AFFINE : MT_FORMAT_MXFP4, l->values, l->values);
        l->out = mt_weight_new(r->set, &mat, NULL, false);
    }
}

static void recur(run *r, bool plain)
{
    layer l = {0};
    sequence s[SEQUENCES];
    mt_span spans[SEQUENCES];
    mt_piece pieces[SEQUENCES][2];
    size_t from[SEQUENCES] = {0};
    uint32_t row = 0;
    open_layer(r, &l, plain);
    open_products(r, &l);
    say(r, "%zu/%zu heads of %zu/%zu, %zu taps, from %zu%s%s%s", l.shape.key_heads, l.shape.value_heads,
        l.shape.key_dim, l.shape.value_dim, l.shape.taps, l.hidden, l.together ? " together" : "",
        l.answers ? ", answers" : "", l.out ? ", multiplied" : "");
    plan(r, SEQUENCES * ROWS);
    for (size_t i = 0; i < r->units; i++) {
        draw_sequence(r, i, &l, &s[i]);
        pieces[i][0] = (mt_piece){.rows = (uint32_t)s[i].first, .slot = (uint32_t)(3 * i)};
        spans[i] = (mt_span){.row = row,
                             .rows = (uint32_t)(s[i].first + s[i].guesses),
                             .state = MT_NO_PAGE,
                             .pieces = 1,
                             .piece = pieces[i],
                             .guesses = (uint32_t)s[i].guesses,
                             .memo = (uint32_t)i};
        row += spans[i].rows;
    }
    step(r, &l, spans, from);
    row = 0;
    for (size_t i = 0; i < r->units; i++) {
        from[i] = s[i].first + s[i].taken;
        pieces[i][0] = (mt_piece){.rows = (uint32_t)(s[i].cut ? s[i].cut : s[i].second), .slot = (uint32_t)(3 * i + 1)};
        pieces[i][1] = (mt_piece){.rows = (uint32_t)(s[i].second - s[i].cut), .slot = (uint32_t)(3 * i)};
        spans[i] = (mt_span){.row = row,
                             .rows = (uint32_t)s[i].second,
                             .position = (uint32_t)from[i],
                             .state = (uint32_t)(3 * i),
                             .pieces = s[i].cut ? 2 : 1,
                             .piece = pieces[i],
                             .memo = (uint32_t)i,
                             .replay = (uint32_t)s[i].taken};
        row += spans[i].rows;
    }
    step(r, &l, spans, from);
    r->filled = r->units * 2 * ROWS * l.values;
}

static void recurrence(run *r)
{
    recur(r, false);
}

static void plain_recurrence(run *r)
{
    recur(r, true);
}

const device_check recurrent_checks[] = {
    {.name = "op_conv op_gates op_delta op_remember op_gated_norm", .fn = recurrence, .units = SEQUENCES},
    {.name = "op_conv op_time_steps op_delta op_remember", .fn = plain_recurrence, .units = SEQUENCES, .plain = true},
    {0}};
