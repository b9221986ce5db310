/* Operations as a model has them one after the other. A device may make one of neighbours, and may replay a row of them
   that comes again: what comes out is what each by itself would give. */
#include <stdlib.h>

#include "base/alloc.h"
#include "check.h"

#define TIMES 3 /* the same operations: seen, remembered, replayed */

/* The MLP of a layer, whose residual stream goes round. Formats are those whose products have the
   definition's bits. */
static void mlp(run *r)
{
    static const size_t widths[] = {32, 64, 96, 128, 192, 384, 1152, 1344};
    static const mt_format formats[] = {MT_FORMAT_AFFINE, MT_FORMAT_AFFINE, MT_FORMAT_MXFP4, MT_FORMAT_F32};
    const size_t hidden = pick(r, widths, MT_COUNT(widths)), inner = pick(r, widths, MT_COUNT(widths));
    const mt_format format = formats[below(r, MT_COUNT(formats))];
    const mt_glu how = draw_glu(r);
    const mt_mat in = matrix(r, format, inner, hidden), out = matrix(r, format, hidden, inner);
    mt_tensor *x = unit_rows(r, 1, hidden), *h = mt_tensor_new(r->set, r->units, hidden),
              *y = mt_tensor_new(r->set, r->units, hidden);
    mt_tensor *both[2] = {mt_tensor_new(r->set, r->units, inner), mt_tensor_new(r->set, r->units, inner)};
    const mt_tensor *norm = row_of(r, 2, hidden);
    const mt_weight *gate = mt_weight_new(r->set, &in, NULL, false), *up = mt_weight_new(r->set, &in, NULL, false),
                    *down = mt_weight_new(r->set, &out, NULL, false);
    mt_batch batch;
    say(r, "%s, %zu to %zu, activation %d", check_matrix_name(&in), hidden, inner, (int)how.act);
    plan(r, MOST_UNITS);
    begin_rows(r, &batch);
    for (size_t i = 0; i < TIMES; i++) {
        mt_step_begin(r->dev, &batch);
        mt_op_norm(r->dev, h, x, r->units, norm, 1e-6f, 0);
        mt_op_matmul(r->dev, both, (const mt_weight *[]){gate, up}, 2, h, r->units);
        mt_op_glu(r->dev, both[0], both[0], both[1], r->units, how);
        mt_op_matmul(r->dev, &y, &down, 1, both[0], r->units);
        mt_op_add(r->dev, x, y, r->units);
        mt_device_wait(r->dev);
    }
    mt_reading *reading = mt_reading_new(r->set, (hidden > inner ? hidden : inner) * sizeof(float));
    const struct {
        const mt_tensor *t;
        size_t cols;
    } made[] = {{x, hidden}, {h, hidden}, {both[0], inner}, {both[1], inner}, {y, hidden}};
    for (size_t i = 0; i < r->units; i++)
        for (size_t t = 0; t < MT_COUNT(made); t++) {
            mt_read_rows(r->dev, reading, made[t].t, i, 1);
            give_floats(r, mt_reading_row(r->dev, reading, 0), made[t].cols);
        }
}

/* The MLP of a tower's layer: rows that are packed while they are made, whatever their number. */
static void tower_mlp(run *r)
{
    static const size_t widths[] = {64, 72, 100, 128, 200, 264};
    const size_t hidden = pick(r, widths, MT_COUNT(widths)), inner = pick(r, widths, MT_COUNT(widths));
    const mt_format format = below(r, 4) ? MT_FORMAT_BF16 : MT_FORMAT_F32;
    const mt_activation act = (mt_activation)below(r, 4);
    const mt_mat in = matrix(r, format, inner, hidden), out = matrix(r, format, hidden, inner);
    mt_tensor *x = unit_rows(r, 1, hidden), *h = mt_tensor_new(r->set, r->units, hidden),
              *middle = mt_tensor_new(r->set, r->units, inner), *y = mt_tensor_new(r->set, r->units, hidden);
    const mt_tensor *norm = row_of(r, 2, hidden), *bias = row_of(r, 3, hidden);
    const mt_weight *up = mt_weight_new(r->set, &in, NULL, false), *down = mt_weight_new(r->set, &out, NULL, false);
    mt_batch batch;
    if (format == MT_FORMAT_BF16 && mt_device_precision(r->dev) == MT_PRECISION_FAST)
        r->rule = NEAR;
    say(r, "%s, %zu to %zu, activation %d", check_matrix_name(&in), hidden, inner, (int)act);
    plan(r, MOST_UNITS);
    begin_rows(r, &batch);
    for (size_t i = 0; i < TIMES; i++) {
        mt_step_begin(r->dev, &batch);
        mt_op_layer_norm(r->dev, h, x, r->units, norm, bias, 1e-6f);
        mt_op_matmul(r->dev, &middle, &up, 1, h, r->units);
        mt_op_act(r->dev, middle, r->units, act);
        mt_op_matmul(r->dev, &y, &down, 1, middle, r->units);
        mt_device_wait(r->dev);
    }
    give(r, y, 1, hidden);
}

#define ROWS 2 /* of a sequence: the second one sees both */
#define SEQUENCES 20

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

/* A layer's attention: heads of queries and keys, keys and values into pages, and what queries see of them. */
static void attend(run *r)
{
    static const size_t dims[] = {16, 64, 80, 128}, groups[] = {1, 2, 4};
    mt_kv_shape shape = {.layers = 2,
                         .heads = 1 + below(r, 3),
                         .head_dim = pick(r, dims, MT_COUNT(dims)),
                         .page_tokens = MT_PAGE_TOKENS,
                         .type = below(r, 2) ? MT_KV_BF16 : MT_KV_F32};
    shape.query_heads = shape.heads * pick(r, groups, MT_COUNT(groups));
    const size_t dim = shape.head_dim, cols = shape.query_heads * dim, layer = below(r, 2);
    mt_error err;
    mt_kv *kv = mt_kv_new(r->set, &shape, &err);
    if (!kv || !mt_kv_reserve(r->set, kv, SEQUENCES, &err))
        abort();
    mt_tensor *q = pairs(r, 1, cols), *k = pairs(r, 2, shape.heads * dim), *v = pairs(r, 3, shape.heads * dim),
              *y = mt_tensor_new(r->set, ROWS * r->units, cols), *table = mt_tensor_new(r->set, ROWS * r->units, dim);
    const mt_tensor *norm = row_of(r, 4, dim), *frequencies = row_of(r, 5, dim / 2);
    uint32_t tokens[ROWS * SEQUENCES] = {0}, pages[SEQUENCES];
    mt_position positions[ROWS * SEQUENCES];
    mt_span spans[SEQUENCES];
    for (uint32_t i = 0; i < r->units; i++) {
        pages[i] = (i * 7 + 3) % SEQUENCES;
        spans[i] = (mt_span){.row = ROWS * i, .rows = ROWS, .pages = {&pages[i]}};
        for (uint32_t j = 0; j < ROWS; j++)
            positions[ROWS * i + j] = (mt_position){{j, j, j}};
    }
    const mt_batch batch = {
        .rows = ROWS * r->units, .tokens = tokens, .positions = positions, .spans = r->units, .span = spans};
    const bool normed = below(r, 2);
    if (shape.type == MT_KV_BF16)
        r->rule = NEAR;
    say(r, "%zu of %zu heads of %zu%s", shape.heads, shape.query_heads, dim, normed ? ", normed" : "");
    plan(r, ROWS * SEQUENCES);
    for (size_t i = 0; i < TIMES; i++) {
        mt_step_begin(r->dev, &batch);
        mt_op_rope_table(r->dev, table, frequencies, NULL, 1);
        mt_op_heads(r->dev, q, q, batch.rows, dim, normed ? norm : NULL, 1e-6f, 0, table, false);
        mt_op_heads(r->dev, k, k, batch.rows, dim, normed ? norm : NULL, 1e-6f, 0, table, false);
        mt_op_kv_write(r->dev, kv, layer, k, v);
        mt_op_attention(r->dev, y, q, kv, layer, (mt_attention){.causal = true, .scale = 0.1f});
        mt_device_wait(r->dev);
    }
    give(r, y, ROWS, cols);
}

const device_check together_checks[] = {{.name = "an MLP", .fn = mlp},
                                        {.name = "a tower's MLP", .fn = tower_mlp, .units = 150},
                                        {.name = "a layer's heads", .fn = attend, .units = SEQUENCES},
                                        {0}};
