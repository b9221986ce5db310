/* Operations as a model has them one after the other. A device may make one of neighbours, and may replay a row of them
   that comes again: what comes out is what each by itself would give. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "check.h"

#define TIMES 3 /* the same operations: seen, remembered, replayed */

/* A row of each tensor, unit by unit. */
static void give_all(run *r, const mt_tensor *const *t, size_t count)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++)
        most = mt_tensor_cols(r->dev, t[i]) > most ? mt_tensor_cols(r->dev, t[i]) : most;
    mt_reading *reading = mt_reading_new(r->set, most * sizeof(float));
    for (size_t unit = 0; unit < r->units; unit++)
        for (size_t i = 0; i < count; i++) {
            mt_read_rows(r->dev, reading, t[i], unit, 1);
            give_floats(r, mt_reading_row(r->dev, reading, 0), mt_tensor_cols(r->dev, t[i]));
        }
}

/* The MLP of a layer, whose residual stream goes round. Formats are those whose products have the definition's bits.
   What is spent is not looked at. */
static void mlp(run *r)
{
    static const size_t widths[] = {32, 64, 96, 128, 192, 256, 512, 384, 1152, 1344};
    static const mt_format formats[] = {MT_FORMAT_AFFINE, MT_FORMAT_SIGNED, MT_FORMAT_IQ4, MT_FORMAT_MXFP4,
                                        MT_FORMAT_F32};
    const size_t hidden = pick(r, widths, MT_COUNT(widths)), inner = pick(r, widths, MT_COUNT(widths) - 2 * r->quick);
    const mt_format format = formats[below(r, MT_COUNT(formats))];
    const mt_glu how = draw_glu(r);
    const mt_mat in = matrix(r, format, inner, hidden), out = matrix(r, format, hidden, inner);
    const bool spends = below(r, 2);
    mt_tensor *before = unit_rows(r, 3, hidden);
    mt_tensor *x = unit_rows(r, 1, hidden), *h = mt_tensor_new(r->set, r->units, hidden),
              *y = mt_tensor_new(r->set, r->units, hidden);
    mt_tensor *both[2] = {mt_tensor_new(r->set, r->units, inner), mt_tensor_new(r->set, r->units, inner)};
    const mt_tensor *norm = row_of(r, 2, hidden);
    const mt_weight *gate = mt_weight_new(r->set, &in, NULL, false), *up = mt_weight_new(r->set, &in, NULL, false),
                    *down = mt_weight_new(r->set, &out, NULL, false);
    mt_batch batch;
    say(r, "%s, %zu to %zu, activation %d%s", check_matrix_name(&in), hidden, inner, (int)how.act,
        spends ? ", spent" : "");
    plan(r, MOST_UNITS);
    begin_rows(r, &batch);
    for (size_t i = 0; i < TIMES; i++) {
        mt_step_begin(r->dev, &batch);
        mt_op_add(r->dev, x, before, r->units);
        mt_op_norm(r->dev, h, x, r->units, norm, 1e-6f, 0);
        mt_op_matmul(r->dev, both, (const mt_weight *[]){gate, up}, 2, h, r->units);
        if (spends)
            mt_op_spend(r->dev, h);
        mt_op_glu(r->dev, both[0], both[0], both[1], r->units, how);
        mt_op_matmul(r->dev, &y, &down, 1, both[0], r->units);
        if (spends)
            mt_op_spend(r->dev, both[0]);
        mt_op_add(r->dev, x, y, r->units);
        mt_device_wait(r->dev);
    }
    give_all(r, (const mt_tensor *[]){x, both[1], y, h, both[0]}, spends ? 3 : 5);
}

/* The MLP of a tower's layer: rows that are packed while they are made, whatever their number. */
static void tower_mlp(run *r)
{
    static const size_t widths[] = {64, 72, 100, 128, 200, 264, 1024};
    const size_t hidden = pick(r, widths, MT_COUNT(widths)), inner = pick(r, widths, MT_COUNT(widths));
    const mt_format format = below(r, 4) ? MT_FORMAT_BF16 : MT_FORMAT_F32;
    const mt_activation act = (mt_activation)below(r, 4);
    const mt_mat in = matrix(r, format, inner, hidden), out = matrix(r, format, hidden, inner);
    const bool layered = below(r, 3), spends = below(r, 2);
    mt_tensor *x = unit_rows(r, 1, hidden), *before = unit_rows(r, 4, hidden);
    mt_tensor *h = mt_tensor_new(r->set, r->units, hidden), *middle = mt_tensor_new(r->set, r->units, inner),
              *y = mt_tensor_new(r->set, r->units, hidden);
    const mt_tensor *norm = row_of(r, 2, hidden), *bias = row_of(r, 3, hidden);
    const mt_weight *up = mt_weight_new(r->set, &in, NULL, false), *down = mt_weight_new(r->set, &out, NULL, false);
    mt_batch batch;
    if (adds_freely(r, format))
        r->rule = NEXT;
    say(r, "%s, %zu to %zu, activation %d%s%s", check_matrix_name(&in), hidden, inner, (int)act,
        layered ? ", layer norm" : "", spends ? ", spent" : "");
    plan(r, MOST_UNITS);
    begin_rows(r, &batch);
    for (size_t i = 0; i < TIMES; i++) {
        mt_step_begin(r->dev, &batch);
        mt_op_add(r->dev, x, before, r->units);
        if (layered)
            mt_op_layer_norm(r->dev, h, x, r->units, norm, bias, 1e-6f);
        else
            mt_op_norm(r->dev, h, x, r->units, norm, 1e-6f, 0);
        mt_op_matmul(r->dev, &middle, &up, 1, h, r->units);
        if (spends)
            mt_op_spend(r->dev, h);
        mt_op_act(r->dev, middle, r->units, act);
        mt_op_matmul(r->dev, &y, &down, 1, middle, r->units);
        if (spends)
            mt_op_spend(r->dev, middle);
        mt_device_wait(r->dev);
    }
    give(r, y, 1, hidden);
}

/* Rows between two products, all of which are looked at: bits, whatever the products are. */
static void between(run *r)
{
    static const size_t widths[] = {64, 96, 128, 288, 1024, 1184, 4096, 4352};
    const size_t k = pick(r, widths, MT_COUNT(widths)), kind = below(r, 4);
    const mt_mat mat = matrix(r, below(r, 2) ? MT_FORMAT_BF16 : MT_FORMAT_MXFP4, 32, k);
    mt_tensor *x = unit_rows(r, 1, k), *more = unit_rows(r, 2, k), *made = mt_tensor_new(r->set, r->units, k);
    mt_tensor *y = mt_tensor_new(r->set, r->units, 32);
    const mt_tensor *norm = row_of(r, 3, k), *bias = row_of(r, 4, k);
    const mt_weight *w = mt_weight_new(r->set, &mat, NULL, false);
    const mt_glu how = draw_glu(r);
    mt_batch batch;
    say(r, "%s, %zu columns, way %zu", check_matrix_name(&mat), k, kind);
    plan(r, MOST_UNITS);
    begin_rows(r, &batch);
    mt_step_begin(r->dev, &batch);
    if (kind < 2)
        mt_op_add(r->dev, x, more, r->units);
    switch (kind) {
    case 0: mt_op_norm(r->dev, made, x, r->units, norm, 1e-6f, 1); break;
    case 1: mt_op_layer_norm(r->dev, made, x, r->units, norm, bias, 1e-6f); break;
    case 2: mt_op_glu(r->dev, made, x, more, r->units, how); break;
    default: mt_op_act(r->dev, x, r->units, how.act); made = x;
    }
    mt_op_matmul(r->dev, &y, &w, 1, made, r->units);
    give_all(r, (const mt_tensor *[]){made, x}, 2);
}

/* The MLP of a layer with weights whose products add in an order of their own; the same rows every time, so that what
   differs does not grow. */
static void mlp_halves(run *r)
{
    static const size_t widths[] = {64, 128, 224, 256, 640}, inners[] = {128, 224, 1152, 1344, 2304, 12288};
    const size_t inner = in_turn(r, inners, MT_COUNT(inners)),
                 hidden = pick(r, widths, r->quick && inner > 10000 ? 2 : MT_COUNT(widths));
    const mt_format format = below(r, 2) ? MT_FORMAT_BF16 : MT_FORMAT_FP8;
    const mt_glu how = draw_glu(r);
    const mt_mat in = matrix(r, format, inner, hidden), out = matrix(r, format, hidden, inner);
    mt_tensor *x = unit_rows(r, 1, hidden), *h = mt_tensor_new(r->set, r->units, hidden),
              *y = mt_tensor_new(r->set, r->units, hidden), *sum = unit_rows(r, 3, hidden);
    mt_tensor *both[2] = {mt_tensor_new(r->set, r->units, inner), mt_tensor_new(r->set, r->units, inner)};
    const mt_tensor *norm = row_of(r, 2, hidden);
    const mt_weight *gate = mt_weight_new(r->set, &in, NULL, false), *up = mt_weight_new(r->set, &in, NULL, false),
                    *down = mt_weight_new(r->set, &out, NULL, false);
    mt_tensor *to = below(r, 3) ? both[0] : mt_tensor_new(r->set, r->units, inner);
    mt_batch batch;
    if (adds_freely(r, format))
        r->rule = NEXT;
    say(r, "%s, %zu to %zu, activation %d", check_matrix_name(&in), hidden, inner, (int)how.act);
    plan(r, MOST_UNITS);
    begin_rows(r, &batch);
    for (size_t i = 0; i < TIMES; i++) {
        mt_step_begin(r->dev, &batch);
        mt_op_norm(r->dev, h, x, r->units, norm, 1e-6f, 0);
        mt_op_matmul(r->dev, both, (const mt_weight *[]){gate, up}, 2, h, r->units);
        mt_op_glu(r->dev, to, both[0], both[1], r->units, how);
        mt_op_matmul(r->dev, &y, &down, 1, to, r->units);
        mt_op_add(r->dev, sum, y, r->units);
        mt_device_wait(r->dev);
    }
    give(r, sum, 1, hidden);
}

/* The MLP of a layer with codes that most models have, for as many rows as answers side by side may be: gate and up may
   be gated and packed by the kernel that multiplies them, however a device shares out their columns. */
static void mlp_some(run *r)
{
    static const size_t inners[] = {128, 192, 256, 704, 1152, 1280, 4224, 6272, 16960};
    const size_t inner = in_turn(r, inners, MT_COUNT(inners) - r->quick), every = inner / 64,
                 hidden = 128 * (1 + below(r, r->quick && inner > 4000 ? 1 : 3));
    const mt_mat shape = {.format = MT_FORMAT_AFFINE,
                          .bits = below(r, 3) ? 4 : 8,
                          .group = 64,
                          .scale_type = MT_SCALE_BF16,
                          .n = inner,
                          .k = hidden};
    mt_mat in[2], back = shape, out;
    back.n = hidden;
    back.k = inner;
    check_matrix(r->memory, &in[0], &shape, CHECK_NORMAL);
    check_matrix(r->memory, &in[1], &shape, CHECK_NORMAL);
    check_matrix(r->memory, &out, &back, CHECK_NORMAL);
    const mt_glu how = draw_glu(r);
    mt_tensor *x = unit_rows(r, 1, hidden), *h = mt_tensor_new(r->set, r->units, hidden),
              *y = mt_tensor_new(r->set, r->units, hidden);
    mt_tensor *both[2] = {mt_tensor_new(r->set, r->units, inner), mt_tensor_new(r->set, r->units, inner)};
    mt_tensor *to = below(r, 3) ? both[0] : mt_tensor_new(r->set, r->units, inner);
    const mt_tensor *norm = row_of(r, 2, hidden);
    const mt_weight *gate = mt_weight_new(r->set, &in[0], NULL, false),
                    *up = mt_weight_new(r->set, &in[1], NULL, false), *down = mt_weight_new(r->set, &out, NULL, false);
    mt_batch batch;
    say(r, "%s, %zu to %zu, activation %d", check_matrix_name(&in[0]), hidden, inner, (int)how.act);
    plan(r, 64);
    begin_rows(r, &batch);
    for (size_t i = 0; i < TIMES; i++) {
        mt_step_begin(r->dev, &batch);
        mt_op_norm(r->dev, h, x, r->units, norm, 1e-6f, 0);
        mt_op_matmul(r->dev, both, (const mt_weight *[]){gate, up}, 2, h, r->units);
        mt_op_glu(r->dev, to, both[0], both[1], r->units, how);
        mt_op_matmul(r->dev, &y, &down, 1, to, r->units);
        mt_op_add(r->dev, x, y, r->units);
        mt_device_wait(r->dev);
    }
    mt_reading *reading = mt_reading_new(r->set, (inner > hidden ? inner : hidden) * sizeof(float));
    for (size_t i = 0; i < r->units; i++) {
        for (size_t t = 0; t < 2; t++) { /* of many columns every so manyth */
            mt_read_rows(r->dev, reading, t ? both[1] : to, i, 1);
            for (size_t c = 0; c < inner; c += every)
                give_floats(r, mt_reading_row(r->dev, reading, 0) + c, 1);
        }
        mt_read_rows(r->dev, reading, x, i, 1);
        give_floats(r, mt_reading_row(r->dev, reading, 0), hidden);
    }
}

#define ROWS 2 /* of a sequence: the second one sees both */
#define SEQUENCES 20
#define DEEPEST 600 /* tokens before them */
#define SEQUENCE_PAGES ((DEEPEST + ROWS) / MT_PAGE_TOKENS + 1)
#define EARLY 64 /* rows of a step that writes keys and values of tokens before */

/* Two rows for each unit. */
static mt_tensor *pairs(run *r, unsigned thing, size_t cols)
{
    mt_tensor *t = mt_tensor_new(r->set, ROWS * r->units, cols);
    float *x = mt_alloc_array(cols, sizeof(*x));
    for (size_t i = 0; i < ROWS * r->units; i++) {
        fill(r, thing, 1 + r->unit[i / ROWS] * ROWS + i % ROWS, x, cols);
        mt_tensor_write(r->dev, t, i, 1, x);
    }
    mt_free(x);
    return t;
}

/* How many tokens a unit has before its rows: none, or about as many as a page or a segment has; at most `most`. */
static uint32_t draw_depth(const run *r, uint32_t unit, uint32_t most)
{
    static const size_t depths[] = {0, 0, 1, 31, 127, 128, 250, 255, 256, 500, DEEPEST};
    run own = *r; /* it does not depend on the others */
    own.rng = r->seed + 1000 * (unit + 1);
    const uint32_t depth = (uint32_t)pick(&own, depths, MT_COUNT(depths));
    return depth < most ? depth : most;
}

/* Their keys and values. */
static void write_early(run *r, mt_kv *kv, size_t layer, const mt_span *of, uint32_t unit, size_t cols)
{
    mt_tensor *k = mt_tensor_new(r->set, EARLY, cols), *v = mt_tensor_new(r->set, EARLY, cols);
    for (uint32_t at = 0; at < of->position; at += EARLY) {
        const uint32_t left = of->position - at, rows = left < EARLY ? left : EARLY;
        const mt_span span = {.rows = rows, .position = at, .pages = {of->pages[0]}};
        write_positions(r, k, 0, 7, unit, at, rows, cols);
        write_positions(r, v, 0, 8, unit, at, rows, cols);
        mt_step_begin(r->dev, &(mt_batch){.rows = rows, .spans = 1, .span = &span});
        mt_op_kv_write(r->dev, kv, layer, k, v);
    }
}

/* What queries see: all, or less. */
static mt_attention draw_view(run *r, size_t heads)
{
    mt_attention how = {.causal = true, .scale = 0.1f};
    how.window = below(r, 4) == 0 ? (uint32_t)(1 + below(r, 300)) : 0;
    how.chunk = below(r, 4) == 0 ? (uint32_t)(1 + below(r, 300)) : 0;
    how.sinks = below(r, 4) == 0 ? row_of(r, 9, heads) : NULL;
    return how;
}

/* How many numbers of two rows are not the same bits. */
static float count_different(run *r, mt_reading *reading, const mt_tensor *a, const mt_tensor *b, size_t row)
{
    const size_t cols = mt_tensor_cols(r->dev, a);
    float *first = mt_alloc_array(cols, sizeof(*first));
    size_t count = 0;
    mt_read_rows(r->dev, reading, a, row, 1);
    memcpy(first, mt_reading_row(r->dev, reading, 0), cols * sizeof(*first));
    mt_read_rows(r->dev, reading, b, row, 1);
    for (size_t i = 0; i < cols; i++)
        count += memcmp(&first[i], mt_reading_row(r->dev, reading, 0) + i, sizeof(*first)) != 0;
    mt_free(first);
    return (float)count;
}

/* A layer's attention: heads of queries and keys, keys and values into pages, and what queries see of them; and a
   product of what comes out, which is the same if another kernel makes its rows. */
static void attend(run *r)
{
    static const size_t dims[] = {16, 64, 64, 80, 128, 128, 256}, groups[] = {1, 2, 4};
    const bool crowd = below(r, 8) == 0; /* of heads, so that a block has several */
    const uint32_t own_pages = crowd ? 2 : SEQUENCE_PAGES;
    mt_kv_shape shape = {.layers = 2,
                         .heads = crowd ? 40 : 1 + below(r, 3),
                         .head_dim = crowd ? 64 : in_turn(r, dims, MT_COUNT(dims)),
                         .page_tokens = MT_PAGE_TOKENS,
                         .type = below(r, 4) ? MT_KV_BF16 : MT_KV_F32};
    shape.query_heads = shape.heads * (crowd ? 1 : pick(r, groups, MT_COUNT(groups)));
    const size_t dim = shape.head_dim, cols = shape.query_heads * dim, layer = below(r, 2);
    mt_error err;
    mt_kv *kv = mt_kv_new(r->set, &shape, &err);
    if (!kv || !mt_kv_reserve(r->set, kv, (size_t)SEQUENCES * own_pages, &err))
        abort();
    const mt_tensor *keys = pairs(r, 2, shape.heads * dim), *queries = pairs(r, 1, cols);
    mt_tensor *q = mt_tensor_new(r->set, ROWS * r->units, cols),
              *k = mt_tensor_new(r->set, ROWS * r->units, shape.heads * dim), *v = pairs(r, 3, shape.heads * dim),
              *y = mt_tensor_new(r->set, ROWS * r->units, cols), *table = mt_tensor_new(r->set, ROWS * r->units, dim);
    const mt_tensor *norm = row_of(r, 4, dim), *frequencies = row_of(r, 5, dim / 2);
    uint32_t tokens[ROWS * SEQUENCES] = {0}, pages[SEQUENCES][SEQUENCE_PAGES], seen_from[ROWS * SEQUENCES];
    mt_position positions[ROWS * SEQUENCES];
    mt_span spans[SEQUENCES];
    const bool deep = below(r, 3) > 0, from_later = below(r, 4) == 0;
    for (uint32_t i = 0; i < r->units; i++) {
        const uint32_t depth = deep ? draw_depth(r, r->unit[i], own_pages * MT_PAGE_TOKENS - ROWS) : 0;
        for (uint32_t p = 0; p < own_pages; p++)
            pages[i][p] = (i * 7 + 3) % SEQUENCES + p * SEQUENCES;
        spans[i] = (mt_span){.row = ROWS * i, .rows = ROWS, .position = depth, .pages = {pages[i]}};
        for (uint32_t j = 0; j < ROWS; j++) {
            positions[ROWS * i + j] = (mt_position){{depth + j, depth + j, depth + j}};
            seen_from[ROWS * i + j] = (depth + j) / 3;
        }
    }
    const mt_batch batch = {.rows = ROWS * r->units,
                            .tokens = tokens,
                            .positions = positions,
                            .spans = r->units,
                            .span = spans,
                            .seen_from = from_later ? seen_from : NULL};
    const mt_attention view = draw_view(r, shape.query_heads);
    const bool normed = below(r, 2), spends = below(r, 4) > 0, gated = below(r, 3) == 0;
    const mt_tensor *both = gated ? pairs(r, 6, 2 * cols) : NULL;
    mt_tensor *gates = gated ? mt_tensor_new(r->set, ROWS * r->units, cols) : NULL;
    const bool followed = cols % 32 == 0;
    const mt_mat back = {.format = MT_FORMAT_AFFINE,
                         .bits = 4,
                         .group = cols % 64 ? 32 : 64,
                         .scale_type = MT_SCALE_BF16,
                         .n = 70,
                         .k = followed ? cols : 32};
    mt_mat mat;
    check_matrix(r->memory, &mat, &back, CHECK_NORMAL);
    const mt_weight *out = mt_weight_new(r->set, &mat, NULL, false);
    mt_tensor *copy = mt_tensor_new(r->set, ROWS * r->units, cols);
    mt_tensor *z[2] = {mt_tensor_new(r->set, ROWS * r->units, mat.n), mt_tensor_new(r->set, ROWS * r->units, mat.n)};
    if (shape.type == MT_KV_BF16)
        r->rule = NEXT;
    say(r, "%zu of %zu heads of %zu, window %u, chunk %u%s%s%s%s%s%s", shape.heads, shape.query_heads, dim, view.window,
        view.chunk, view.sinks ? ", sinks" : "", from_later ? ", from later" : "", deep ? ", deep" : "",
        normed ? ", normed" : "", spends ? ", spent" : "", gated ? ", gated" : "");
    plan(r, EARLY);
    for (size_t i = 0; i < r->units; i++)
        write_early(r, kv, layer, &spans[i], r->unit[i], shape.heads * dim);
    for (size_t i = 0; i < TIMES; i++) {
        mt_step_begin(r->dev, &batch);
        for (size_t row = 0; row < batch.rows; row++) { /* the last time's may be spent */
            mt_op_copy_row(r->dev, k, row, keys, row);
            mt_op_copy_row(r->dev, q, row, queries, row);
        }
        mt_op_rope_table(r->dev, table, frequencies, NULL, 1);
        if (gated)
            mt_op_split_heads(r->dev, q, gates, both, dim, batch.rows);
        mt_op_heads(r->dev, q, q, batch.rows, dim, normed ? norm : NULL, 1e-6f, 0, table, false);
        mt_op_heads(r->dev, k, k, batch.rows, dim, normed ? norm : NULL, 1e-6f, 0, table, false);
        mt_op_kv_write(r->dev, kv, layer, k, v);
        if (spends)
            mt_op_spend(r->dev, k);
        mt_op_attention(r->dev, y, q, kv, layer, view);
        if (spends)
            mt_op_spend(r->dev, q);
        if (gated)
            mt_op_gate(r->dev, y, gates, batch.rows);
        if (followed)
            mt_op_matmul(r->dev, &z[0], &out, 1, y, batch.rows);
        for (size_t row = 0; row < batch.rows; row++)
            mt_op_copy_row(r->dev, copy, row, y, row);
        if (followed)
            mt_op_matmul(r->dev, &z[1], &out, 1, copy, batch.rows);
        mt_device_wait(r->dev);
    }
    mt_reading *reading = mt_reading_new(r->set, (cols + mat.n) * sizeof(float));
    for (size_t i = 0; i < r->units; i++)
        for (size_t row = ROWS * i; row < ROWS * (i + 1); row++) {
            const float different = count_different(r, reading, z[0], z[1], row);
            mt_read_rows(r->dev, reading, y, row, 1);
            give_floats(r, mt_reading_row(r->dev, reading, 0), cols);
            give_floats(r, &different, 1);
        }
}

const device_check together_checks[] = {{.name = "an MLP, op_spend", .fn = mlp, .units = 200, .quick = 16},
                                        {.name = "a row's MLP", .fn = mlp, .units = 1, .quick = 100},
                                        {.name = "an MLP in halves", .fn = mlp_halves, .units = 70, .quick = 16},
                                        {.name = "an MLP of some rows", .fn = mlp_some, .units = 64, .quick = 24},
                                        {.name = "a tower's MLP", .fn = tower_mlp, .units = 150},
                                        {.name = "between products", .fn = between, .units = 100},
                                        {.name = "attention of a layer", .fn = attend, .units = SEQUENCES},
                                        {.name = "attention of a few answers", .fn = attend, .units = 4, .quick = 13},
                                        {0}};
