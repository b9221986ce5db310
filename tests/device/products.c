/* Operations with weights. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "check.h"
#include "sample/chain.h"
#include "sample/settings.h"

static const size_t depths[] = {1, 7, 32, 40, 64, 96, 128, 160, 256, 384, 640};

/* Floats that live as long as the trial. */
static const float *vector(run *r, unsigned thing, size_t n)
{
    float *x = check_alloc(r->memory, n * sizeof(*x), 4);
    fill(r, thing, 0, x, n);
    return x;
}

/* A NaN in an FP8 weight shows in its column and nowhere else. */
static bool spoil(run *r, const mt_mat *mat)
{
    if (mat->format != MT_FORMAT_FP8 || below(r, 4))
        return false;
    ((uint8_t *)(uintptr_t)mat->w)[below(r, mat->n * mat->k)] = 0x7f;
    return true;
}

/* Few columns as a rule; now and then more than all processors of a device take at once. */
static size_t draw_columns(run *r)
{
    return below(r, 40) == 0 ? 8500 + below(r, 100) : 1 + below(r, 150);
}

static void matmul(run *r)
{
    const size_t k = pick(r, depths, MT_COUNT(depths)), count = 1 + below(r, 3);
    mt_tensor *x = unit_rows(r, 1, k), *y[3];
    const mt_weight *w[3];
    size_t n[3];
    char names[100] = "";
    for (size_t j = 0; j < count; j++) {
        n[j] = draw_columns(r);
        const mt_mat mat = matrix(r, draw_format(r, k), n[j], k);
        float *kept = below(r, 2) ? check_alloc(r->memory, n[j] * sizeof(*kept), 4) : NULL;
        if (kept)
            fill(r, 5 + (unsigned)j, 0, kept, n[j]);
        const bool exact = below(r, 5) == 0, spoiled = spoil(r, &mat);
        w[j] = mt_weight_new(r->set, &mat, kept, exact);
        y[j] = mt_tensor_new(r->set, r->units, n[j]);
        snprintf(names + strlen(names), sizeof(names) - strlen(names), " [%s %zu%s%s%s]", check_matrix_name(&mat), n[j],
                 kept ? " bias" : "", exact ? " exact" : "", spoiled ? " with a NaN" : "");
    }
    say(r, "k %zu,%s", k, names);
    plan(r, MOST_UNITS);
    mt_op_matmul(r->dev, y, w, count, x, r->units);
    mt_reading *reading = mt_reading_new(r->set, 9000 * sizeof(float));
    for (size_t i = 0; i < r->units; i++)
        for (size_t j = 0; j < count; j++) { /* of many columns every so manyth */
            const size_t every = (n[j] + 149) / 150;
            mt_read_rows(r->dev, reading, y[j], i, 1);
            for (size_t c = 0; c < n[j]; c += every)
                give_floats(r, mt_reading_row(r->dev, reading, 0) + c, 1);
        }
}

/* Each head with rows of its own, with others before, between and behind them, or with their transpose. */
static void heads_matmul(run *r)
{
    const bool codes = r->seed % 2; /* as models have them */
    const size_t k = codes ? (size_t)128 << below(r, 3) : pick(r, depths, MT_COUNT(depths));
    const mt_format format = codes ? MT_FORMAT_AFFINE : draw_format(r, k);
    mt_head_rows how = {.heads = 1 + below(r, 6), .first = below(r, 50), .rows = 1 + below(r, 150)};
    how.step = how.rows + below(r, 60);
    how.across = below(r, 3) == 0;
    const size_t in = how.across ? how.rows : k, out = how.across ? k : how.rows;
    const size_t x_dim = in + below(r, 10), y_dim = out + below(r, 10);
    const mt_mat mat = matrix(r, format, how.first + how.heads * how.step + below(r, 20), k);
    mt_tensor *x = unit_rows(r, 1, how.heads * x_dim), *y = unit_rows(r, 2, how.heads * y_dim);
    const mt_weight *w = mt_weight_new(r->set, &mat, NULL, false);
    say(r, "%s, %zu heads of %zu rows%s, k %zu", check_matrix_name(&mat), how.heads, how.rows,
        how.across ? ", transposed" : "", k);
    plan(r, MOST_UNITS);
    mt_op_matmul_heads(r->dev, y, y_dim, w, how, x, x_dim, r->units);
    give(r, y, 1, how.heads * y_dim);
}

/* As few rows as answers side by side, against codes of the kinds that models have, and some that are so deep that rows
   do not fit where they are kept otherwise. */
static void few_rows(run *r)
{
    static const size_t deep[] = {256, 2048, 28672};
    const bool wide = below(r, 8) == 0; /* more columns than all processors of a device take at once */
    const size_t k = wide ? deep[0] : pick(r, deep, MT_COUNT(deep)),
                 n = wide ? 17000 + below(r, 100) : 1 + below(r, 40);
    const mt_mat shape = {.format = MT_FORMAT_AFFINE,
                          .bits = wide || below(r, 2) ? 4 : 8,
                          .group = below(r, 2) ? 64 : 32,
                          .scale_type = MT_SCALE_BF16,
                          .n = n,
                          .k = k};
    mt_mat mat;
    check_matrix(r->memory, &mat, &shape, CHECK_NORMAL);
    mt_tensor *x = unit_rows(r, 1, k), *y = mt_tensor_new(r->set, r->units, n);
    const mt_weight *w = mt_weight_new(r->set, &mat, NULL, false);
    say(r, "%s, %zu to %zu", check_matrix_name(&mat), k, n);
    plan(r, 8);
    mt_op_matmul(r->dev, &y, &w, 1, x, r->units);
    give(r, y, 1, n);
}

/* As many rows as answers side by side may be, against codes that most models have, and columns from few to many: how
   a device shares out the work depends on both. */
static void some_rows(run *r)
{
    static const size_t columns[] = {20, 20, 150, 5000, 17000};
    const size_t n = pick(r, columns, MT_COUNT(columns)) + below(r, 100), every = (n + 149) / 150;
    const size_t k = 128 * (n < 5000 ? 1 + below(r, 12) : below(r, 12) ? 1 : 10);
    const mt_mat shape = {
        .format = MT_FORMAT_AFFINE, .bits = 4, .group = 64, .scale_type = MT_SCALE_BF16, .n = n, .k = k};
    mt_mat mat;
    check_matrix(r->memory, &mat, &shape, CHECK_NORMAL);
    mt_tensor *x = unit_rows(r, 1, k), *y = mt_tensor_new(r->set, r->units, n);
    const mt_weight *w = mt_weight_new(r->set, &mat, NULL, false);
    mt_reading *reading = mt_reading_new(r->set, n * sizeof(float));
    say(r, "%s, %zu to %zu", check_matrix_name(&mat), k, n);
    plan(r, 64);
    mt_op_matmul(r->dev, &y, &w, 1, x, r->units);
    for (size_t i = 0; i < r->units; i++) { /* of many columns every so manyth */
        mt_read_rows(r->dev, reading, y, i, 1);
        for (size_t c = 0; c < n; c += every)
            give_floats(r, mt_reading_row(r->dev, reading, 0) + c, 1);
    }
}

/* Rows of prompts against codes that most models have, one weight or two, and more columns as a rule than all
   processors of a device take at once: what is left over then, they share. */
static void many_rows(run *r)
{
    const size_t count = 1 + below(r, 2), group = below(r, 4) ? 64 : 128, k = group * (1 + below(r, 768 / group));
    const bool slow =
        mt_device_precision(r->dev) != MT_PRECISION_FAST || mt_device_numerics(r->dev) == MT_NUMERICS_NATIVE;
    const size_t most = slow ? 300 : 12000; /* columns */
    const bool biased = below(r, 4) == 0;
    mt_tensor *x = unit_rows(r, 1, k), *y[2];
    const mt_weight *w[2];
    size_t n[2], all = 0;
    for (size_t j = 0; j < count; j++) {
        const mt_mat shape = {.format = MT_FORMAT_AFFINE,
                              .bits = 4,
                              .group = (uint16_t)group,
                              .scale_type = MT_SCALE_BF16,
                              .n = (most / 2 + below(r, most / 2)) / count / 4 * 4,
                              .k = k};
        mt_mat mat;
        check_matrix(r->memory, &mat, &shape, CHECK_NORMAL);
        n[j] = mat.n;
        w[j] = mt_weight_new(r->set, &mat, biased ? vector(r, 5 + (unsigned)j, n[j]) : NULL, false);
        y[j] = mt_tensor_new(r->set, r->units, n[j]);
        all += n[j];
    }
    say(r, "groups of %zu, k %zu, %zu weights of %zu columns%s", group, k, count, all, biased ? ", biases" : "");
    plan(r, MOST_UNITS);
    mt_op_matmul(r->dev, y, w, count, x, r->units);
    mt_reading *reading = mt_reading_new(r->set, most * sizeof(float));
    for (size_t i = 0; i < r->units; i++)
        for (size_t j = 0; j < count; j++) { /* some columns, others of each row */
            mt_read_rows(r->dev, reading, y[j], i, 1);
            for (size_t c = 0; c < 400; c++)
                give_floats(r, mt_reading_row(r->dev, reading, 0) + (r->unit[i] + c * 31) % n[j], 1);
        }
}

/* Multiplies scales and biases by powers of two, of the matrix and of each of them, so that some are tiny. */
static void resize(run *r, const mt_mat *mat)
{
    static const int least[] = {[MT_SCALE_F32] = -60, [MT_SCALE_F16] = -7, [MT_SCALE_BF16] = -60};
    const size_t count = mat->n * (mat->k / mat->group), bytes = mat->scale_type == MT_SCALE_F32 ? 4 : 2;
    const int shift = mat->scale_type == MT_SCALE_F32 ? 23 : mat->scale_type == MT_SCALE_F16 ? 10 : 7;
    const int all = -(int)below(r, 8) * (mat->scale_type == MT_SCALE_F16 ? 1 : 2);
    for (size_t i = 0; i < 2 * count; i++) {
        uint8_t *at = (uint8_t *)(uintptr_t)(i < count ? mat->scales : mat->biases) + i % count * bytes;
        const int own = below(r, 40) == 0 ? -(int)below(r, 40) : 0, e = all + own;
        uint32_t bits = 0;
        memcpy(&bits, at, bytes);
        bits -= (uint32_t) - (e < least[mat->scale_type] ? least[mat->scale_type] : e) << shift;
        memcpy(at, &bits, bytes);
    }
}

/* Rows whose segments of 256 differ in size, with weights of up to 4 bits and scales of all sizes that models have. */
static void uneven_rows(run *r)
{
    static const mt_scale_type types[] = {MT_SCALE_BF16, MT_SCALE_BF16, MT_SCALE_F16, MT_SCALE_F32};
    static const size_t deep[] = {64, 192, 256, 320, 512, 1024, 2048, 2304, 3072, 4096, 6144, 9728, 16384};
    static const float sizes[] = {0, 0x1p-30f, 1, 1, 1, 0x1p-3f, 0x1p9f, 0x1p-70f, 0x1p31f};
    const size_t usual = mt_device_numerics(r->dev) == MT_NUMERICS_NATIVE ? MT_COUNT(sizes) : MT_COUNT(sizes) - 2;
    const size_t k = pick(r, deep, MT_COUNT(deep)), count = 1 + below(r, 3), most = k > 1024 ? 24 : 200;
    const size_t group = k % 128 == 0 && below(r, 3) == 0 ? 128 : 64;
    mt_tensor *x = mt_tensor_new(r->set, r->units, k), *y[3];
    const mt_weight *w[3];
    size_t n[3];
    float *row = mt_alloc_array(k, sizeof(*row));
    for (size_t i = 0; i < r->units; i++) {
        fill(r, 1, 1 + r->unit[i], row, k);
        for (size_t j = 0; j < k; j++)
            row[j] *= sizes[(r->seed + r->unit[i] * 31 + j / 256 * 7) % 1009 % usual];
        mt_tensor_write(r->dev, x, i, 1, row);
    }
    mt_free(row);
    for (size_t j = 0; j < count; j++) {
        const mt_mat shape = {.format = MT_FORMAT_AFFINE,
                              .bits = (uint8_t)(4 - below(r, 6) % 3),
                              .group = (uint16_t)group,
                              .scale_type = types[below(r, MT_COUNT(types))],
                              .n = 1 + below(r, most),
                              .k = k};
        mt_mat mat;
        check_matrix(r->memory, &mat, &shape, CHECK_NORMAL);
        resize(r, &mat);
        n[j] = mat.n;
        w[j] = mt_weight_new(r->set, &mat, below(r, 3) ? NULL : vector(r, 5 + (unsigned)j, n[j]), false);
        y[j] = mt_tensor_new(r->set, r->units, n[j]);
    }
    say(r, "k %zu, groups of %zu, %zu weights", k, group, count);
    plan(r, MOST_UNITS);
    mt_op_matmul(r->dev, y, w, count, x, r->units);
    mt_reading *reading = mt_reading_new(r->set, most * sizeof(float));
    for (size_t i = 0; i < r->units; i++)
        for (size_t j = 0; j < count; j++) {
            mt_read_rows(r->dev, reading, y[j], i, 1);
            give_floats(r, mt_reading_row(r->dev, reading, 0), n[j]);
        }
}

/* Codes of any format, some rows at a time: every kind of codes and groups that kernels tell apart, and every number of
   rows. */
static void rows_of_codes(run *r)
{
    static const struct {
        mt_format format;
        uint8_t bits;
        uint16_t group;
        mt_scale_type scale_type;
    } kinds[] = {{MT_FORMAT_AFFINE, 4, 64, MT_SCALE_BF16}, {MT_FORMAT_AFFINE, 4, 32, MT_SCALE_F16},
                 {MT_FORMAT_SIGNED, 4, 16, MT_SCALE_F16},  {MT_FORMAT_AFFINE, 8, 64, MT_SCALE_BF16},
                 {MT_FORMAT_SIGNED, 8, 32, MT_SCALE_F16},  {MT_FORMAT_NVFP4, 4, 16, MT_SCALE_E4M3},
                 {MT_FORMAT_AFFINE, 6, 128, MT_SCALE_F32}, {MT_FORMAT_MXFP4, 4, 32, MT_SCALE_E8M0},
                 {MT_FORMAT_AFFINE, 3, 16, MT_SCALE_F32},  {MT_FORMAT_IQ4, 4, 32, MT_SCALE_F16},
                 {MT_FORMAT_AFFINE, 5, 32, MT_SCALE_BF16}, {MT_FORMAT_SIGNED, 8, 16, MT_SCALE_F32}};
    static const size_t at_once[] = {3, 12, 24, 64, MOST_UNITS};
    const size_t which = r->seed % 256 % MT_COUNT(kinds), group = kinds[which].group;
    const size_t each = at_once[r->seed % 256 / MT_COUNT(kinds) % MT_COUNT(at_once)];
    const size_t deep = below(r, 4) ? 640 : 4500, k = group * (1 + below(r, deep / group)), most = k > 700 ? 24 : 200;
    const mt_mat shape = {.format = kinds[which].format,
                          .bits = kinds[which].bits,
                          .group = kinds[which].group,
                          .scale_type = kinds[which].scale_type,
                          .n = 1 + below(r, most),
                          .k = k < 32 ? 32 : k / 32 * 32};
    mt_mat mat;
    check_matrix(r->memory, &mat, &shape, CHECK_NORMAL);
    if (mat.format == MT_FORMAT_NVFP4)
        for (size_t i = 0; i < mat.n * mat.scale_stride; i++) /* no NaN */
            ((uint8_t *)(uintptr_t)mat.scales)[i] &= 0x7b;
    const mt_weight *w = mt_weight_new(r->set, &mat, below(r, 2) ? vector(r, 5, mat.n) : NULL, false);
    float *row = mt_alloc_array(mat.k, sizeof(*row));
    mt_tensor *x[MOST_UNITS], *y[MOST_UNITS];
    size_t parts = 0;
    for (size_t i = 0; i < r->units; i += each, parts++) {
        x[parts] = mt_tensor_new(r->set, each, mat.k);
        y[parts] = mt_tensor_new(r->set, each, mat.n);
        for (size_t j = 0; j < each && i + j < r->units; j++) {
            fill(r, 1, 1 + r->unit[i + j], row, mat.k);
            mt_tensor_write(r->dev, x[parts], j, 1, row);
        }
    }
    mt_free(row);
    say(r, "%s, k %zu, n %zu, %zu rows at once", check_matrix_name(&mat), mat.k, mat.n, each);
    plan(r, MOST_UNITS);
    for (size_t i = 0; i < parts; i++)
        mt_op_matmul(r->dev, &y[i], &w, 1, x[i], r->units - i * each < each ? r->units - i * each : each);
    mt_reading *reading = mt_reading_new(r->set, mat.n * sizeof(float));
    for (size_t i = 0; i < r->units; i++) {
        mt_read_rows(r->dev, reading, y[i / each], i % each, 1);
        give_floats(r, mt_reading_row(r->dev, reading, 0), mat.n);
    }
}

#define MOST_WEIGHTS 4 /* of one mt_op_matmul */

/* At most so many weights, of one kind or of two, so that a device can take neighbours of a kind together; `each` rows
   of a unit. Their products are exact whatever the kind. */
static void multiply_exactly(run *r, size_t k, size_t most, const size_t *columns, size_t choices, size_t each)
{
    const size_t count = 1 + below(r, most), rows = r->units * each;
    const size_t second = 1 + below(r, 2 * count); /* the first weight of the second kind; beyond count: none */
    mt_format format[2];
    for (size_t i = 0; i < 2; i++)
        format[i] = draw_format(r, k);
    const uint64_t before = r->rng;
    const bool biased = below(r, 2);
    mt_tensor *x = mt_tensor_new(r->set, rows, k), *y[MOST_WEIGHTS];
    const mt_weight *w[MOST_WEIGHTS];
    size_t n[MOST_WEIGHTS], all = 0;
    float *row = mt_alloc_array(k, sizeof(*row));
    for (size_t i = 0; i < rows; i++) {
        fill(r, 1, 1 + r->unit[i / each] * each + i % each, row, k);
        mt_tensor_write(r->dev, x, i, 1, row);
    }
    mt_free(row);
    for (size_t j = 0; j < count; j++)
        n[j] = pick(r, columns, choices);
    const uint64_t behind = r->rng;
    for (size_t j = 0; j < count; j++) {
        r->rng = before; /* bits and group */
        const mt_mat mat = matrix(r, format[j >= second], n[j], k);
        w[j] = mt_weight_new(r->set, &mat, biased ? vector(r, 5 + (unsigned)j, n[j]) : NULL, true);
        y[j] = mt_tensor_new(r->set, rows, n[j]);
        all += n[j];
        say(r, "%s, k %zu, %zu weights of %zu columns%s", check_matrix_name(&mat), k, count, all,
            biased ? ", biases" : "");
    }
    r->rng = behind;
    r->rule = BITS;
    plan(r, rows);
    mt_op_matmul(r->dev, y, w, count, x, rows);
    mt_reading *reading = mt_reading_new(r->set, all * sizeof(float));
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < count; j++) {
            mt_read_rows(r->dev, reading, y[j], i, 1);
            give_floats(r, mt_reading_row(r->dev, reading, 0), n[j]);
        }
}

/* Routers and small projections of answers side by side. */
static void exact_rows(run *r)
{
    static const size_t deep[] = {1, 7, 16, 40, 96, 128, 130, 511, 512, 513, 544, 1030, 2048, 4192};
    static const size_t columns[] = {1, 2, 3, 4, 5, 32, 64, 131};
    multiply_exactly(r, pick(r, deep, MT_COUNT(deep)), MOST_WEIGHTS, columns, MT_COUNT(columns), 1);
}

/* One weight, more rows than answers as a rule. */
static void exact_slice(run *r)
{
    static const size_t deep[] = {7, 32, 130, 384}, columns[] = {9, 20, 32};
    multiply_exactly(r, pick(r, deep, MT_COUNT(deep)), 1, columns, MT_COUNT(columns), 1);
}

/* The same with the rows of prompts. */
static void exact_prompt(run *r)
{
    static const size_t deep[] = {1, 9, 32, 100, 128, 129, 160, 384}, columns[] = {1, 2, 5, 33, 64, 100, 250};
    multiply_exactly(r, pick(r, deep, MT_COUNT(deep)), MOST_WEIGHTS, columns, MT_COUNT(columns), 4);
}

/* ---- what others meet by chance: every kind of weight, with all rows at once and in parts ---- */

typedef struct kind {
    mt_format format;
    uint8_t bits;
    uint16_t group;
    mt_scale_type scale;
} kind;

static const kind integers[] = {{MT_FORMAT_AFFINE, 4, 32, MT_SCALE_BF16},  {MT_FORMAT_AFFINE, 4, 64, MT_SCALE_BF16},
                                {MT_FORMAT_AFFINE, 4, 128, MT_SCALE_BF16}, {MT_FORMAT_AFFINE, 8, 32, MT_SCALE_BF16},
                                {MT_FORMAT_AFFINE, 8, 64, MT_SCALE_BF16},  {MT_FORMAT_AFFINE, 8, 128, MT_SCALE_BF16},
                                {MT_FORMAT_AFFINE, 4, 32, MT_SCALE_F16},   {MT_FORMAT_AFFINE, 4, 64, MT_SCALE_F16},
                                {MT_FORMAT_AFFINE, 4, 128, MT_SCALE_F16},  {MT_FORMAT_AFFINE, 8, 32, MT_SCALE_F16},
                                {MT_FORMAT_AFFINE, 8, 64, MT_SCALE_F16},   {MT_FORMAT_AFFINE, 8, 128, MT_SCALE_F16},
                                {MT_FORMAT_MXFP4, 4, 32, MT_SCALE_E8M0}};
static const kind halves[] = {{MT_FORMAT_BF16, 16, 0, MT_SCALE_NONE}, {MT_FORMAT_FP8, 8, 128, MT_SCALE_F32}};

static mt_mat matrix_of(run *r, kind k, size_t rows, size_t columns)
{
    const mt_mat shape = {.format = k.format,
                          .scale_type = k.scale,
                          .bits = k.bits,
                          .group = k.group,
                          .scale_rows = 128,
                          .n = rows,
                          .k = columns};
    mt_mat w;
    check_matrix(r->memory, &w, &shape, CHECK_NORMAL);
    for (size_t i = 0; k.format == MT_FORMAT_FP8 && i < rows * columns; i++)
        ((uint8_t *)(uintptr_t)w.w)[i] &= 0xbf; /* no NaN */
    return w;
}

enum { EACH_DEPTH = 128, EACH_COLUMNS = 20, EACH_PARTS = 6, MOST_PARTS = 8 };

/* Room for so many rows, their product and its way back. */
typedef struct part {
    size_t rows;
    mt_tensor *x, *y;
    mt_reading *reading;
} part;

/* Rows of m units, which: their places, times w, to where each unit's numbers are. */
static void multiply_part(run *r, const part *p, const mt_weight *w, const size_t *which, size_t m, float *to,
                          size_t stride)
{
    static float rows[MOST_UNITS][EACH_DEPTH];
    for (size_t i = 0; i < m; i++)
        fill(r, 1, 1 + r->unit[which[i]], rows[i], EACH_DEPTH);
    mt_tensor_write(r->dev, p->x, 0, m, rows[0]);
    mt_op_matmul(r->dev, (mt_tensor *const[]){p->y}, &w, 1, p->x, m);
    mt_read_rows(r->dev, p->reading, p->y, 0, m);
    for (size_t i = 0; i < m; i++)
        memcpy(to + which[i] * stride, mt_reading_row(r->dev, p->reading, i), EACH_COLUMNS * sizeof(float));
}

/* All units by so many rows at a time; only those of the first numbers where that would be many times. */
static void multiply_parts(run *r, const part *p, const mt_weight *w, float *to, size_t stride)
{
    size_t which[MOST_UNITS], count = 0;
    for (size_t i = 0; i < r->units; i++)
        if (r->unit[i] < MOST_PARTS * p->rows)
            which[count++] = i;
    for (size_t first = 0; first < count; first += p->rows)
        multiply_part(r, p, w, which + first, count - first < p->rows ? count - first : p->rows, to, stride);
}

static void multiply_kinds(run *r, const kind *kinds, size_t count)
{
    static const size_t sizes[EACH_PARTS] = {MOST_UNITS, 64, 32, 16, 8, 1};
    const mt_weight *w[MT_COUNT(integers)];
    const size_t stride = count * EACH_PARTS * EACH_COLUMNS;
    float *all = mt_alloc_array(r->units * stride, sizeof(*all));
    part parts[EACH_PARTS];
    for (size_t c = 0; c < count; c++) {
        const mt_mat mat = matrix_of(r, kinds[c], EACH_COLUMNS, EACH_DEPTH);
        w[c] = mt_weight_new(r->set, &mat, NULL, false);
    }
    for (size_t p = 0; p < EACH_PARTS; p++)
        parts[p] = (part){.rows = sizes[p],
                          .x = mt_tensor_new(r->set, sizes[p], EACH_DEPTH),
                          .y = mt_tensor_new(r->set, sizes[p], EACH_COLUMNS),
                          .reading = mt_reading_new(r->set, sizes[p] * EACH_COLUMNS * sizeof(float))};
    plan(r, MOST_UNITS);
    for (size_t c = 0; c < count; c++)
        for (size_t p = 0; p < EACH_PARTS; p++)
            multiply_parts(r, &parts[p], w[c], all + (c * EACH_PARTS + p) * EACH_COLUMNS, stride);
    say(r, "every kind");
    for (size_t i = 0; i < r->units; i++)
        give_floats(r, all + i * stride, stride);
    mt_free(all);
}

static void matmul_integers(run *r)
{
    multiply_kinds(r, integers, MT_COUNT(integers));
}

static void matmul_halves(run *r)
{
    if (adds_freely(r, halves[0].format))
        r->rule = NEAR;
    multiply_kinds(r, halves, MT_COUNT(halves));
}

/* Rows of prompts against up to three of bf16; now and then more columns than wide tiles take to occupy all processors
   of a device. */
static void many_halves(run *r)
{
    static const size_t columns[] = {100, 256, 500, 768, 1030, 1536};
    const bool many = below(r, 8) == 0;
    const size_t k = many ? 64 : 64 * (1 + below(r, 8)), count = many ? 1 : 1 + below(r, 3);
    const bool biased = below(r, 2);
    mt_tensor *x = unit_rows(r, 1, k), *y[3];
    const mt_weight *w[3];
    size_t n[3], all = 0;
    for (size_t j = 0; j < count; j++) {
        n[j] = many ? 34000 + below(r, 100) : pick(r, columns, MT_COUNT(columns));
        const mt_mat mat = matrix_of(r, halves[0], n[j], k);
        w[j] = mt_weight_new(r->set, &mat, biased ? vector(r, 5 + (unsigned)j, n[j]) : NULL, false);
        y[j] = mt_tensor_new(r->set, r->units, n[j]);
        all += n[j];
    }
    if (adds_freely(r, halves[0].format))
        r->rule = NEAR;
    say(r, "k %zu, %zu weights of %zu columns%s", k, count, all, biased ? ", biases" : "");
    plan(r, MOST_UNITS);
    mt_op_matmul(r->dev, y, w, count, x, r->units);
    mt_reading *reading = mt_reading_new(r->set, 34100 * sizeof(float));
    for (size_t i = 0; i < r->units; i++)
        for (size_t j = 0; j < count; j++) { /* of many columns every so manyth */
            mt_read_rows(r->dev, reading, y[j], i, 1);
            for (size_t c = 0; c < n[j]; c += 1 + n[j] / 400)
                give_floats(r, mt_reading_row(r->dev, reading, 0) + c, 1);
        }
}

/* Two experts of each kind of integers; half of the time gate, up and down are of three kinds. */
static void moe_integers(run *r)
{
    const size_t count = 6; /* of the kinds: all bits and groups */
    const mt_experts *all[6];
    mt_tensor *x = unit_rows(r, 1, EACH_DEPTH), *router = mt_tensor_new(r->set, r->units, 2), *y[6];
    const size_t apart = below(r, 2); /* from the kind of a part to the next one's */
    for (size_t c = 0; c < count; c++) {
        mt_mat mats[6];
        for (size_t i = 0; i < 6; i++)
            mats[i] = matrix_of(r, integers[c + i / 2 * apart], EACH_DEPTH, EACH_DEPTH);
        all[c] = mt_experts_new(
            r->set,
            &(mt_experts_params){
                .count = 2, .top_k = 1, .gate = mats, .up = mats + 2, .down = mats + 4, .glu = {.act = MT_ACT_SILU}});
        y[c] = mt_tensor_new(r->set, r->units, EACH_DEPTH);
    }
    plan(r, MOST_UNITS);
    for (size_t c = 0; c < count; c++) {
        for (size_t i = 0; i < r->units; i++) {
            float row[2];
            fill(r, 2, 1 + r->unit[i], row, 2);
            mt_tensor_write(r->dev, router, i, 1, row);
        }
        mt_op_moe(r->dev, y[c], x, router, r->units, all[c]);
    }
    say(r, "every kind");
    mt_reading *reading = mt_reading_new(r->set, EACH_DEPTH * sizeof(float));
    for (size_t i = 0; i < r->units; i++)
        for (size_t c = 0; c < count; c++) {
            mt_read_rows(r->dev, reading, y[c], i, 1);
            give_floats(r, mt_reading_row(r->dev, reading, 0), EACH_DEPTH);
        }
}

/* The token of a unit is its number. */
static void embed(run *r)
{
    const size_t k = pick(r, depths, MT_COUNT(depths));
    const mt_mat mat = matrix(r, draw_format(r, k), MOST_UNITS, k);
    mt_tensor *x = mt_tensor_new(r->set, r->units, k);
    const mt_weight *w = mt_weight_new(r->set, &mat, NULL, true);
    mt_batch batch;
    r->rule = BITS; /* a row of a matrix is what it is */
    begin_rows(r, &batch);
    mt_step_begin(r->dev, &batch);
    say(r, "%s, %zu columns", check_matrix_name(&mat), k);
    mt_op_embed(r->dev, x, w, below(r, 2) ? 1 : real(r, 0.1f, 40));
    give(r, x, 1, k);
}

/* The token of a unit is what was chosen from a row of logits, unless the host says which. */
static void embed_chosen(run *r)
{
    enum { CHOICES = 24 };
    const size_t k = pick(r, depths, MT_COUNT(depths)), vocab = MOST_UNITS + below(r, 3000);
    const mt_mat mat = matrix(r, draw_format(r, k), vocab, k);
    mt_tensor *x = mt_tensor_new(r->set, r->units, k), *logits = mt_tensor_new(r->set, CHOICES, vocab);
    const mt_weight *w = mt_weight_new(r->set, &mat, NULL, true);
    mt_chooser *chooser = mt_chooser_new(r->set, vocab);
    float *row = mt_alloc_array(vocab, sizeof(*row));
    uint32_t chosen[MOST_UNITS];
    mt_chain chains[CHOICES], *list[CHOICES];
    mt_sample_settings greedy;
    mt_batch batch;
    r->rule = BITS;
    mt_sample_settings_init(&greedy);
    greedy.temperature = 0;
    for (size_t i = 0; i < CHOICES; i++) {
        fill(r, 7, (uint32_t)i, row, vocab);
        mt_tensor_write(r->dev, logits, i, 1, row);
        chains[i] = (mt_chain){.first = i, .settings = &greedy};
        list[i] = &chains[i];
    }
    begin_rows(r, &batch);
    for (size_t i = 0; i < r->units; i++)
        chosen[i] = r->unit[i] % 4 == 3 ? MT_NO_PAGE : r->unit[i] % CHOICES;
    batch.chooser = chooser;
    batch.chosen = chosen;
    plan(r, MOST_UNITS);
    say(r, "%s, %zu columns, %zu tokens", check_matrix_name(&mat), k, vocab);
    mt_step_choose(r->dev, chooser, logits, list, CHOICES);
    mt_step_begin(r->dev, &batch);
    mt_op_embed(r->dev, x, w, 1);
    mt_step_chosen(r->dev, chooser, logits, list, CHOICES);
    give(r, x, 1, k);
    mt_free(row);
}

static void add_rows(run *r)
{
    const size_t k = pick(r, depths, MT_COUNT(depths)), count = 1 + below(r, 4), rows = 20;
    const mt_mat mat = matrix(r, draw_format(r, k), rows, k);
    mt_tensor *x = unit_rows(r, 1, k), *factor = below(r, 2) ? unit_rows(r, 2, count) : NULL;
    uint32_t which[4 * MOST_UNITS];
    r->rule = BITS;
    for (size_t i = 0; i < r->units * count; i++)
        which[i] = (uint32_t)((r->unit[i / count] * 7 + i % count * 3) % rows);
    const mt_weight *w = mt_weight_new(r->set, &mat, NULL, true);
    say(r, "%s, %zu rows of %zu columns%s", check_matrix_name(&mat), count, k, factor ? " with factors" : "");
    plan(r, MOST_UNITS);
    mt_op_add_rows(r->dev, x, w, mt_index_of(r->set, which, r->units * count), factor, count, r->units);
    give(r, x, 1, k);
}

static void draw_routing(run *r, mt_experts_params *p)
{
    p->routing = (mt_routing){
        .kind = (mt_route)below(r, 3), .renormalise = below(r, 2), .scaling = below(r, 2) ? real(r, 0.5f, 3) : 0};
    if (below(r, 2)) { /* as many groups as leave enough experts */
        const uint32_t groups = (uint32_t)(1 + below(r, 4)), open = (uint32_t)(1 + below(r, groups));
        if (p->count % groups == 0 && open * (p->count / groups) >= p->top_k) {
            p->routing.groups = groups;
            p->routing.top_groups = open;
        }
    }
    p->correction = below(r, 3) == 0 ? vector(r, 6, p->count) : NULL;
    p->scale = below(r, 3) == 0 ? vector(r, 7, p->count) : NULL;
}

#define MOST_EXPERTS 200

/* Some routers have equal numbers: the lower expert comes first (R9). Half of the time the result is added to
   something, as layers do. routed: the router is a product with x, which half of the time is normed first. as: what
   weights are; NULL: any kind. */
static void moe_of(run *r, size_t experts, size_t top_k, size_t hidden, size_t inner, bool routed, const kind *as)
{
    mt_mat *mats = mt_alloc_array(3 * experts, sizeof(*mats));
    const mt_format format = as ? as->format : draw_format(r, 32);
    if (adds_freely(r, format))
        r->rule = NEXT;
    const uint64_t before = r->rng;
    for (size_t e = 0; e < 3 * experts; e++) { /* all of one format, bits and group */
        const size_t n = e < 2 * experts ? inner : hidden, k = e < 2 * experts ? hidden : inner;
        r->rng = before;
        mats[e] = as ? matrix_of(r, *as, n, k) : matrix(r, format, n, k);
    }
    mt_tensor *x = unit_rows(r, 1, hidden), *y = mt_tensor_new(r->set, r->units, hidden);
    mt_tensor *router = mt_tensor_new(r->set, r->units, experts);
    for (size_t i = 0; i < r->units; i++) {
        float row[MOST_EXPERTS];
        fill(r, 2, 1 + r->unit[i], row, experts);
        for (size_t e = 0; r->unit[i] % 3 == 0 && e < experts; e++)
            row[e] = (float)(int)row[e];
        mt_tensor_write(r->dev, router, i, 1, row);
    }
    mt_experts_params params = {.count = experts,
                                .top_k = top_k,
                                .gate = mats,
                                .up = mats + experts,
                                .down = mats + 2 * experts,
                                .glu = draw_glu(r)};
    draw_routing(r, &params);
    if (below(r, 3) == 0) {
        params.gate_bias = vector(r, 3, experts * inner);
        params.up_bias = vector(r, 4, experts * inner);
        params.down_bias = vector(r, 5, experts * hidden);
    }
    const mt_experts *all = mt_experts_new(r->set, &params);
    static const mt_format exact[] = {MT_FORMAT_AFFINE, MT_FORMAT_SIGNED, MT_FORMAT_IQ4, MT_FORMAT_MXFP4,
                                      MT_FORMAT_F32};
    mt_mat router_mat;
    if (routed)
        router_mat = matrix(r, exact[below(r, MT_COUNT(exact))], experts, hidden);
    const mt_weight *product = routed ? mt_weight_new(r->set, &router_mat, NULL, true) : NULL;
    const mt_tensor *norm = routed && below(r, 2) ? row_of(r, 9, hidden) : NULL;
    mt_tensor *h = norm ? mt_tensor_new(r->set, r->units, hidden) : x;
    say(r, "%s, %zu of %zu experts, %zu to %zu, activation %d, routing %d%s, %u of %u groups%s%s%s",
        check_matrix_name(&mats[0]), top_k, experts, hidden, inner, (int)params.glu.act, (int)params.routing.kind,
        params.routing.renormalise ? " renormalised" : "", params.routing.top_groups, params.routing.groups,
        params.gate_bias ? ", biases" : "", params.correction ? ", corrected" : "", params.scale ? ", scaled" : "");
    plan(r, MOST_UNITS);
    const bool added = below(r, 2);
    mt_tensor *sum = unit_rows(r, 8, hidden);
    if (norm)
        mt_op_norm(r->dev, h, x, r->units, norm, 1e-6f, 0);
    if (routed)
        mt_op_matmul(r->dev, &router, &product, 1, h, r->units);
    mt_op_moe(r->dev, y, h, router, r->units, all);
    if (added)
        mt_op_add(r->dev, sum, y, r->units);
    mt_reading *reading = mt_reading_new(r->set, hidden * sizeof(float));
    for (size_t i = 0; i < r->units; i++) {
        mt_read_rows(r->dev, reading, y, i, 1);
        give_floats(r, mt_reading_row(r->dev, reading, 0), hidden);
        mt_read_rows(r->dev, reading, sum, i, 1);
        give_floats(r, mt_reading_row(r->dev, reading, 0), hidden);
        mt_read_rows(r->dev, reading, h, i, 1);
        give_floats(r, mt_reading_row(r->dev, reading, 0), hidden);
    }
    mt_free(mats);
}

static void moe(run *r)
{
    static const size_t hiddens[] = {32, 64, 128, 192}, inners[] = {32, 64, 96};
    const size_t hidden = pick(r, hiddens, MT_COUNT(hiddens)), inner = pick(r, inners, MT_COUNT(inners));
    const size_t experts = 2 + below(r, 15);
    moe_of(r, experts, 1 + below(r, experts < 8 ? experts : 8), hidden, inner, false, below(r, 4) ? NULL : &halves[0]);
}

/* Answers side by side that choose many of very many experts. */
static void moe_routes(run *r)
{
    static const size_t hiddens[] = {32, 96, 544}, counts[] = {2, 5, 8, 16, 33, 40, 64};
    const size_t hidden = pick(r, hiddens, MT_COUNT(hiddens));
    const size_t experts = below(r, 16) ? pick(r, counts, MT_COUNT(counts)) : MOST_EXPERTS; /* these take long */
    moe_of(r, experts, 1 + below(r, experts < 40 ? experts : 40), hidden, 32, false, NULL);
}

/* Answers whose experts have kernels of their own: one, or few. */
static void moe_answers(run *r)
{
    static const size_t widths[] = {128, 128, 256, 640}, counts[] = {2, 5, 9, 20};
    static const size_t kinds[] = {1, 1, 4, 4, 7}; /* groups of 64 */
    const bool deep = below(r, 16) == 0;           /* these take long */
    const size_t experts = deep ? 2 : pick(r, counts, MT_COUNT(counts));
    const size_t hidden = deep ? 2304 : pick(r, widths, MT_COUNT(widths));
    moe_of(r, experts, 1 + below(r, experts < 18 ? experts : 18), hidden, 128 * (1 + below(r, 2)), below(r, 4),
           &integers[in_turn(r, kinds, MT_COUNT(kinds))]);
}

const device_check product_checks[] = {
    {.name = "op_matmul", .fn = matmul, .units = MOST_UNITS},
    {.name = "op_matmul_heads", .fn = heads_matmul, .units = MOST_UNITS, .quick = 20, .latent = true},
    {.name = "op_matmul_heads", .fn = heads_matmul, .units = 7, .quick = 20, .latent = true},
    {.name = "a row", .fn = few_rows, .units = 1},
    {.name = "few rows", .fn = few_rows, .units = 8},
    {.name = "some rows", .fn = some_rows, .units = 64},
    {.name = "many rows", .fn = many_rows, .units = MOST_UNITS, .quick = 4},
    {.name = "uneven rows", .fn = uneven_rows, .units = 70},
    {.name = "uneven rows", .fn = uneven_rows, .units = MOST_UNITS},
    {.name = "rows of codes", .fn = rows_of_codes, .units = MOST_UNITS, .quick = 120},
    {.name = "exact rows", .fn = exact_rows, .units = 65},
    {.name = "exact rows", .fn = exact_slice, .units = 96},
    {.name = "exact rows", .fn = exact_prompt, .units = 150},
    {.name = "op_matmul", .fn = matmul_integers},
    {.name = "op_matmul", .fn = matmul_halves},
    {.name = "op_matmul", .fn = many_halves, .units = MOST_UNITS},
    {.name = "op_embed", .fn = embed},
    {.name = "op_embed chosen", .fn = embed_chosen},
    {.name = "op_add_rows", .fn = add_rows},
    {.name = "op_moe", .fn = moe, .units = MOST_UNITS},
    {.name = "op_moe", .fn = moe_routes, .units = 40},
    {.name = "a row's experts", .fn = moe_answers, .units = 1},
    {.name = "experts of few rows", .fn = moe_answers, .units = 40},
    {.name = "op_moe", .fn = moe_integers},
    {0}};
