/* Operations that treat each row by itself. */
#include <math.h>
#include <string.h>

#include "check.h"

static const size_t widths[] = {1, 3, 16, 31, 32, 33, 64, 96, 100, 256, 1000};

/* Rows that have parts for several warps, or for several turns of one. */
static const size_t broad_widths[] = {100, 1000, 1024, 1160, 2048, 4096, 5000, 8320};

static size_t width(run *r)
{
    return pick(r, widths, MT_COUNT(widths));
}

static void norm(run *r)
{
    const size_t n = below(r, 3) ? width(r) : pick(r, broad_widths, MT_COUNT(broad_widths));
    mt_tensor *x = unit_rows(r, 1, n), *y = below(r, 2) ? x : mt_tensor_new(r->set, r->units, n);
    const float offset = (float)below(r, 2);
    say(r, "%zu columns, offset %g", n, (double)offset);
    mt_op_norm(r->dev, y, x, r->units, row_of(r, 2, n), 1e-6f, offset);
    give(r, y, 1, n);
}

static void layer_norm(run *r)
{
    const size_t n = below(r, 3) ? width(r) : pick(r, broad_widths, MT_COUNT(broad_widths));
    mt_tensor *x = unit_rows(r, 1, n), *y = below(r, 2) ? x : mt_tensor_new(r->set, r->units, n);
    say(r, "%zu columns", n);
    mt_op_layer_norm(r->dev, y, x, r->units, row_of(r, 2, n), row_of(r, 3, n), 1e-6f);
    give(r, y, 1, n);
}

/* What takes two tensors of one width. */
static void two(run *r, void (*op)(mt_device *, mt_tensor *, const mt_tensor *, size_t))
{
    const size_t n = width(r);
    mt_tensor *y = unit_rows(r, 1, n), *x = unit_rows(r, 2, n);
    say(r, "%zu columns", n);
    op(r->dev, y, x, r->units);
    give(r, y, 1, n);
}

static void add(run *r)
{
    two(r, mt_op_add);
}

static void gate(run *r)
{
    two(r, mt_op_gate);
}

mt_glu draw_glu(run *r)
{
    mt_glu glu = {.act = (mt_activation)below(r, 5)};
    if (below(r, 2)) {
        glu.limit = real(r, 0.3f, 1.5f);
        glu.offset = (float)below(r, 2);
    }
    return glu;
}

static void glu(run *r)
{
    const size_t n = width(r);
    const mt_glu how = draw_glu(r);
    mt_tensor *g = unit_rows(r, 1, n), *up = unit_rows(r, 2, n), *y = below(r, 2) ? g : up;
    say(r, "%zu columns, activation %d, limit %g, offset %g", n, (int)how.act, (double)how.limit, (double)how.offset);
    mt_op_glu(r->dev, y, g, up, r->units, how);
    give(r, y, 1, n);
}

static void scale(run *r)
{
    const size_t n = width(r);
    mt_tensor *x = unit_rows(r, 1, n);
    say(r, "%zu columns", n);
    mt_op_scale(r->dev, x, r->units, real(r, -3, 3));
    give(r, x, 1, n);
}

/* A device that is alone has all columns; tests/unit/engine_ranks.c has others. */
static void share(run *r)
{
    const size_t n = width(r);
    mt_tensor *x = unit_rows(r, 1, n);
    say(r, "%zu columns", n);
    mt_op_share(r->dev, x, 1, r->units, true);
    give(r, x, 1, n);
}

static void add_gated(run *r)
{
    const size_t n = width(r);
    mt_tensor *y = unit_rows(r, 1, n);
    say(r, "%zu columns", n);
    mt_op_add_gated(r->dev, y, unit_rows(r, 2, n), unit_rows(r, 3, 1), r->units);
    give(r, y, 1, n);
}

static void adjust(run *r)
{
    const size_t n = width(r);
    mt_tensor *x = unit_rows(r, 1, n), *bias = below(r, 2) ? row_of(r, 2, n) : NULL;
    mt_tensor *w = below(r, 2) ? row_of(r, 3, n) : NULL;
    const float high = below(r, 3) ? real(r, -0.5f, 2) : INFINITY;
    say(r, "%zu columns%s%s, up to %g", n, bias ? ", taken from" : "", w ? ", multiplied" : "", (double)high);
    mt_op_adjust(r->dev, x, r->units, bias, w, below(r, 3) ? -1 : -INFINITY, high);
    give(r, x, 1, n);
}

static void softcap(run *r)
{
    const size_t n = below(r, 4) ? width(r) : 8000 + below(r, 5000); /* long rows are cut into pieces */
    mt_tensor *x = unit_rows(r, 1, n);
    say(r, "%zu columns", n);
    mt_op_softcap(r->dev, x, r->units, real(r, 0.5f, 50));
    give(r, x, 1, n);
}

static void act(run *r)
{
    const size_t n = width(r);
    const mt_activation which = (mt_activation)below(r, 5);
    mt_tensor *x = unit_rows(r, 1, n);
    say(r, "%zu columns, activation %d", n, (int)which);
    mt_op_act(r->dev, x, r->units, which);
    give(r, x, 1, n);
}

static void split_heads(run *r)
{
    const size_t heads = 1 + below(r, 5), dim = 1 + below(r, 40), n = heads * dim;
    mt_tensor *q = mt_tensor_new(r->set, r->units, n), *g = mt_tensor_new(r->set, r->units, n);
    say(r, "%zu heads of %zu", heads, dim);
    mt_op_split_heads(r->dev, q, g, unit_rows(r, 1, 2 * n), dim, r->units);
    mt_op_gate(r->dev, q, g, r->units);
    give(r, q, 1, n);
}

static void rope(run *r)
{
    const size_t heads = 1 + below(r, 4), half = 1 + below(r, 40), dim = 2 * half + 2 * below(r, 9);
    mt_tensor *table = mt_tensor_new(r->set, r->units, 2 * half), *x = unit_rows(r, 1, heads * dim);
    mt_tensor *inv_freq = row_of(r, 2, half);
    uint32_t axes[64];
    mt_batch batch;
    for (size_t i = 0; i < half; i++)
        axes[i] = (uint32_t)below(r, 3);
    mt_index *axis = below(r, 2) ? mt_index_of(r->set, axes, half) : NULL;
    const bool normed = below(r, 2), pairs = below(r, 3) == 0;
    mt_tensor *y = below(r, 2) ? x : mt_tensor_new(r->set, r->units, heads * dim);
    begin_rows(r, &batch);
    mt_step_begin(r->dev, &batch);
    say(r, "%zu heads of %zu, %zu pairs%s%s%s", heads, dim, half, axis ? ", axes" : "", normed ? ", norm" : "",
        pairs ? ", of neighbours" : "");
    mt_op_rope_table(r->dev, table, inv_freq, axis, below(r, 2) ? 1 : real(r, 0.5f, 2));
    mt_op_heads(r->dev, y, x, r->units, dim, normed ? row_of(r, 3, dim) : NULL, 1e-6f, (float)below(r, 2), table,
                pairs);
    give(r, y, 1, heads * dim);
}

static void turn_ends(run *r)
{
    const size_t half = 1 + below(r, 40), count = 2 * half + 2 * below(r, 3), heads = 1 + below(r, 20);
    const size_t x_dim = count + below(r, 40), y_dim = count + below(r, 40);
    mt_tensor *x = unit_rows(r, 1, heads * x_dim), *y = unit_rows(r, 2, heads * y_dim);
    const mt_tensor *table = below(r, 4) ? unit_rows(r, 3, 2 * half) : NULL;
    const bool pairs = below(r, 2);
    say(r, "%zu heads of %zu and %zu, %zu at the end%s%s", heads, x_dim, y_dim, count, table ? ", turned" : "",
        pairs ? " by pairs" : "");
    mt_op_turn_ends(r->dev, y, y_dim, x, x_dim, count, r->units, table, pairs);
    give(r, y, 1, heads * y_dim);
}

static void stretch(run *r)
{
    const size_t n = width(r), count = 1 + below(r, 6), every = 1 + below(r, 40);
    mt_tensor *x = unit_rows(r, 1, n);
    mt_batch batch;
    begin_rows(r, &batch);
    mt_step_begin(r->dev, &batch);
    say(r, "%zu columns, %zu factors for %zu positions each", n, count, every);
    mt_op_stretch(r->dev, x, row_of(r, 2, count), every);
    give(r, x, 1, n);
}

/* Row i of the features is that of unit i; every third unit has none. */
static void features(run *r)
{
    const size_t n = width(r), extra = below(r, 50);
    mt_tensor *x = unit_rows(r, 1, n), *all = mt_tensor_new(r->set, MOST_UNITS, n + extra);
    float row[2000];
    uint32_t from[MOST_UNITS];
    mt_batch batch;
    begin_rows(r, &batch);
    for (size_t i = 0; i < MOST_UNITS; i++) {
        fill(r, 2, i, row, n + extra);
        mt_tensor_write(r->dev, all, i, 1, row);
    }
    for (size_t i = 0; i < r->units; i++)
        from[i] = r->unit[i] % 3 == 0 ? MT_NO_PAGE : (r->unit[i] * 37 + 5) % MOST_UNITS;
    batch.features = from;
    mt_step_begin(r->dev, &batch);
    const bool adds = below(r, 2);
    say(r, "%zu columns from %zu on%s", n, extra, adds ? ", added" : "");
    mt_op_features(r->dev, x, all, extra, adds);
    give(r, x, 1, n);
}

/* A row that is not finite is a unit like any other. */
static void finite_rows(run *r)
{
    const size_t n = width(r);
    mt_tensor *x = unit_rows(r, 1, n), *ok = mt_tensor_new(r->set, r->units, 1);
    float row[1000];
    for (size_t i = 0; i < r->units; i++) {
        fill(r, 1, 1 + r->unit[i], row, n);
        if (r->unit[i] % 4 == 1)
            row[r->unit[i] * 7 % n] = r->unit[i] % 8 == 1 ? NAN : -INFINITY;
        mt_tensor_write(r->dev, x, i, 1, row);
    }
    say(r, "%zu columns", n);
    mt_op_finite(r->dev, ok, x, r->units);
    give(r, ok, 1, 1);
}

/* Equal numbers stand in many rows. */
static void argmax(run *r)
{
    const size_t n = width(r);
    mt_tensor *x = mt_tensor_new(r->set, r->units, n);
    mt_index *y = mt_index_new(r->set, r->units);
    mt_reading *reading = mt_reading_new(r->set, r->units * sizeof(uint32_t));
    float row[1000];
    for (size_t i = 0; i < r->units; i++) {
        fill(r, 1, 1 + r->unit[i], row, n);
        for (size_t k = 0; r->unit[i] % 2 && k < n; k++)
            row[k] = roundf(2 * row[k]);
        mt_tensor_write(r->dev, x, i, 1, row);
    }
    say(r, "%zu columns", n);
    mt_op_argmax(r->dev, y, x, r->units);
    mt_read_index(r->dev, reading, y, r->units);
    const uint32_t *at = mt_reading_data(r->dev, reading);
    for (size_t i = 0; i < r->units; i++)
        give_floats(r, &(float){(float)at[i]}, 1);
}

static void moving(run *r)
{
    const size_t n = width(r), column = below(r, 20);
    mt_tensor *x = unit_rows(r, 1, n), *wide = mt_tensor_new(r->set, MOST_UNITS, column + n);
    mt_tensor *back = mt_tensor_new(r->set, r->units, column + n), *y = mt_tensor_new(r->set, r->units, column + n);
    uint32_t to[MOST_UNITS];
    for (size_t i = 0; i < r->units; i++)
        to[i] = (uint32_t)((i * 37 + 11) % MOST_UNITS);
    mt_index *index = mt_index_of(r->set, to, r->units), *nowhere;
    say(r, "%zu columns from %zu on", n, column);
    mt_op_scatter(r->dev, wide, index, column, x, r->units);
    for (size_t i = 0; i < r->units; i++)
        to[i] = r->unit[i] % 3 == 0 ? to[i] : MT_NO_PAGE;
    nowhere = mt_index_of(r->set, to, r->units);
    mt_op_scale(r->dev, x, r->units, 2);
    mt_op_scatter(r->dev, wide, nowhere, column, x, r->units);
    mt_op_gather(r->dev, back, wide, index, r->units);
    for (size_t i = 0; i < r->units; i++)
        mt_op_copy_row(r->dev, y, i, back, i);
    for (size_t i = 0; i < r->units; i++)
        if (r->unit[i] % 5 == 0)
            mt_op_clear(r->dev, y, i, 1);
    give(r, y, 1, column + n);
}

/* Each unit is the sum of three rows that lie between others'. */
static void sum_rows(run *r)
{
    const size_t n = width(r), m = 4 * r->units;
    mt_tensor *x = mt_tensor_new(r->set, m, n), *y = unit_rows(r, 1, n);
    uint32_t to[4 * MOST_UNITS];
    float row[1000];
    for (size_t i = 0; i < m; i++) {
        const uint32_t unit = (uint32_t)(i % r->units);
        to[i] = i / r->units == 2 ? MT_NO_PAGE : unit;
        fill(r, 2 + (unsigned)(i / r->units), 1 + r->unit[unit], row, n);
        mt_tensor_write(r->dev, x, i, 1, row);
    }
    say(r, "%zu columns", n);
    mt_op_sum_rows(r->dev, y, mt_index_of(r->set, to, m), x, m);
    give(r, y, 1, n);
}

static void join_and_mean(run *r)
{
    const size_t n = width(r), count = 1 + below(r, 6);
    mt_tensor *x = mt_tensor_new(r->set, r->units * count, n), *wide = mt_tensor_new(r->set, r->units, count * n);
    mt_tensor *mean = mt_tensor_new(r->set, r->units, n);
    float row[1000];
    for (size_t i = 0; i < r->units * count; i++) {
        fill(r, (unsigned)(i % count), 1 + r->unit[i / count], row, n);
        mt_tensor_write(r->dev, x, i, 1, row);
    }
    const bool interleaved = below(r, 2);
    say(r, "%zu rows of %zu columns%s", count, n, interleaved ? ", interleaved" : "");
    mt_op_join(r->dev, wide, x, count, r->units, interleaved);
    mt_op_mean(r->dev, mean, x, count, r->units);
    mt_reading *reading = mt_reading_new(r->set, sizeof(float) * count * n);
    for (size_t i = 0; i < r->units; i++) {
        mt_read_rows(r->dev, reading, wide, i, 1);
        give_floats(r, mt_reading_row(r->dev, reading, 0), count * n);
        mt_read_rows(r->dev, reading, mean, i, 1);
        give_floats(r, mt_reading_row(r->dev, reading, 0), n);
    }
}

static void pixels(run *r)
{
    const size_t frames = 1 + below(r, 2), area = 1 + below(r, 200);
    static uint8_t bytes[MOST_UNITS][3 * 2 * 200];
    static float levels[2][3][256];
    mt_pixels patch[MOST_UNITS];
    fill(r, 1, 0, &levels[0][0][0], 2 * 3 * 256);
    for (size_t i = 0; i < r->units; i++) {
        for (size_t k = 0; k < sizeof(bytes[i]); k++)
            bytes[i][k] = (uint8_t)((r->unit[i] + 1) * 2654435761u * (k + 1) >> 13);
        patch[i] = (mt_pixels){.bytes = bytes[i],
                               .levels = (const float(*)[256])levels[r->unit[i] % 3 == 0],
                               .still = frames == 2 && r->unit[i] % 2};
    }
    mt_patches *patches = mt_patches_new(r->set, r->units, frames, area);
    mt_tensor *x = mt_tensor_new(r->set, r->units, 3 * frames * area);
    say(r, "%zu frames of %zu pixels", frames, area);
    mt_patches_write(r->dev, patches, patch, r->units);
    mt_op_pixels(r->dev, x, patches, r->units);
    give(r, x, 1, 3 * frames * area);
}

const device_check row_checks[] = {{.name = "op_norm", .fn = norm},
                                   {.name = "op_layer_norm", .fn = layer_norm},
                                   {.name = "op_add", .fn = add},
                                   {.name = "op_gate", .fn = gate},
                                   {.name = "op_glu", .fn = glu},
                                   {.name = "op_scale", .fn = scale},
                                   {.name = "op_share", .fn = share},
                                   {.name = "op_add_gated", .fn = add_gated},
                                   {.name = "op_adjust", .fn = adjust},
                                   {.name = "op_softcap", .fn = softcap},
                                   {.name = "op_act", .fn = act},
                                   {.name = "op_split_heads", .fn = split_heads},
                                   {.name = "op_rope_table op_heads", .fn = rope},
                                   {.name = "op_turn_ends", .fn = turn_ends, .latent = true},
                                   {.name = "op_stretch", .fn = stretch},
                                   {.name = "op_features", .fn = features},
                                   {.name = "op_finite", .fn = finite_rows},
                                   {.name = "op_argmax", .fn = argmax},
                                   {.name = "op_scatter op_gather op_copy_row op_clear", .fn = moving},
                                   {.name = "op_sum_rows", .fn = sum_rows},
                                   {.name = "op_join op_mean", .fn = join_and_mean},
                                   {.name = "op_pixels", .fn = pixels},
                                   {0}};
