/* q_pack and q_matmul: every format, M, tile position and tail; equal bits for every level, M and column range. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "kernels/unpack.h"

void check_qmatmul(check *c);

enum { MAX_M = 35 };
#define UNTOUCHED 0x7fd23456u /* a NaN, so that adding to what was there shows */

typedef struct problem {
    mt_mat w;
    size_t m, ldx, ldy;
    float *x, *want;
    uint32_t *index; /* row i of the product is row index[i] of x; or NULL */
    check_data kind;
} problem;

static void run(check *c, const mt_kernels *k, const problem *p, float *y, size_t n0, size_t n1)
{
    mt_rows rows = {.m = p->m, .k = p->w.k, .group = p->w.group, .wide = p->w.bits == 8};
    rows.data = check_alloc(c, k->q_rows_bytes(p->m, p->w.k, p->w.group), 64);
    uint8_t *scratch = check_alloc(c, k->q_scratch_bytes(p->w.k), 64);
    size_t half = p->m / 2 / MT_ROW_TILE * MT_ROW_TILE;
    k->q_pack(&rows, p->x, p->ldx, p->index, half, p->m);
    k->q_pack(&rows, p->x, p->ldx, p->index, 0, half);
    k->q_matmul(y, p->ldy, &p->w, n0, n1, &rows, scratch);
}

static void compare(check *c, const problem *p, const float *y, size_t n0, size_t n1, const char *how)
{
    check_f32(c, p->want + n0, y + n0, p->m, n1 - n0, p->ldy, "%s: %s m=%zu n=%zu k=%zu n0=%zu n1=%zu data=%s index=%d",
              how, check_matrix_name(&p->w), p->m, p->w.n, p->w.k, n0, n1, check_data_name(p->kind), p->index != NULL);
    bool intact = true;
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->ldy; j++)
            intact = intact && ((j >= n0 && j < n1) || mt_f32_bits(y[i * p->ldy + j]) == UNTOUCHED);
    check_that(c, intact, "%s: wrote outside columns: %s m=%zu n0=%zu n1=%zu", how, check_matrix_name(&p->w), p->m, n0,
               n1);
}

static float *outputs(check *c, const problem *p)
{
    float *y = check_alloc(c, p->m * p->ldy * sizeof(*y), 4);
    for (size_t i = 0; i < p->m * p->ldy; i++)
        y[i] = mt_f32_from_bits(UNTOUCHED);
    return y;
}

/* Scales near the extremes meet activations near 1, so that not every output is NaN. */
static void setup(check *c, problem *p, mt_mat shape, size_t m, check_data kind)
{
    check_data scales = kind == CHECK_HUGE || kind == CHECK_SPECIAL ? (check_below(c, 2) ? CHECK_NORMAL : kind) : kind;
    *p = (problem){.m = m, .kind = kind};
    check_matrix(c, &p->w, &shape, scales);
    p->ldx = shape.k + check_below(c, 3);
    p->ldy = shape.n + check_below(c, 3);
    size_t source = m + 3;
    p->x = check_alloc(c, ((source - 1) * p->ldx + shape.k) * sizeof(float), 4);
    check_fill_f32(c, p->x, (source - 1) * p->ldx + shape.k, kind);
    if (check_below(c, 2)) {
        p->index = check_alloc(c, m * sizeof(*p->index), 4);
        for (size_t i = 0; i < m; i++)
            p->index[i] = (uint32_t)check_below(c, source);
    }
    p->want = outputs(c, p);
    run(c, c->ref, p, p->want, 0, shape.n);
}

/* All rows at once, and each row alone. */
static void every_row(check *c, mt_mat shape, size_t m, check_data kind)
{
    problem p;
    setup(c, &p, shape, m, kind);
    float *y = outputs(c, &p);
    run(c, c->k, &p, y, 0, shape.n);
    compare(c, &p, y, 0, shape.n, "all");
    problem one = p;
    size_t i = check_below(c, m);
    one.m = 1;
    one.x = p.x + (p.index ? p.index[i] : i) * p.ldx;
    one.index = NULL;
    one.want = p.want + i * p.ldy;
    float *alone = outputs(c, &one);
    run(c, c->k, &one, alone, 0, shape.n);
    compare(c, &one, alone, 0, shape.n, "alone");
    check_release(c);
}

static void column_ranges(check *c, mt_mat shape, size_t m)
{
    problem p;
    setup(c, &p, shape, m, CHECK_NORMAL);
    for (size_t n0 = 0; n0 <= shape.n; n0++) {
        for (size_t n1 = n0; n1 <= shape.n; n1 += 1 + check_below(c, c->quick ? 9 : 3)) {
            float *y = outputs(c, &p);
            run(c, c->k, &p, y, n0, n1);
            compare(c, &p, y, n0, n1, "range");
        }
    }
    check_release(c);
}

/* The largest weights meet rows whose every other block is `part` of the one before: sums must stay in their range. */
static void large_sums(check *c, mt_mat shape, float part)
{
    problem p;
    setup(c, &p, shape, 1, CHECK_NORMAL);
    memset((uint8_t *)(uintptr_t)p.w.w, 0xff, shape.n * p.w.stride);
    float *row = p.x + (p.index ? p.index[0] : 0) * p.ldx, *w = check_alloc(c, shape.k * sizeof(*w), 4);
    for (size_t i = 0; i < shape.k; i++)
        row[i] = i / 32 % 2 ? part : 1.0f;
    float *y = outputs(c, &p);
    run(c, c->k, &p, y, 0, shape.n);
    for (size_t j = 0; j < shape.n; j++) {
        double sum = 0, size = 0;
        c->ref->row_f32(w, &p.w, j);
        for (size_t i = 0; i < shape.k; i++) {
            sum += (double)w[i] * row[i];
            size += fabs((double)w[i] * row[i]);
        }
        check_that(c, fabs(y[j] - sum) <= 0.01 * size + 1e-6, "large sums: %s part=%g: %g, wanted %g",
                   check_matrix_name(&p.w), (double)part, (double)y[j], sum);
    }
    check_release(c);
}

/* Rows whose elements are nearly too small to be told from 0, or too large for numbers. */
static void far_from_one(check *c, mt_mat shape, int power)
{
    problem p;
    setup(c, &p, shape, 1, CHECK_NORMAL);
    float *row = p.x + (p.index ? p.index[0] : 0) * p.ldx;
    for (size_t i = 0; i < shape.k; i++)
        row[i] = ldexpf(row[i], power);
    float *y = outputs(c, &p);
    p.want = outputs(c, &p);
    run(c, c->ref, &p, p.want, 0, shape.n);
    run(c, c->k, &p, y, 0, shape.n);
    compare(c, &p, y, 0, shape.n, "far from one");
    check_release(c);
}

static const mt_mat shapes[] = {
#define AFFINE(b, g, s)                                                               \
    {                                                                                 \
        .format = MT_FORMAT_AFFINE, .bits = b, .group = g, .scale_type = MT_SCALE_##s \
    }
#define AFFINE_ALL(b) AFFINE(b, 32, BF16), AFFINE(b, 64, F16), AFFINE(b, 128, F32), AFFINE(b, 64, BF16)
    AFFINE_ALL(4),
    AFFINE_ALL(8),
    AFFINE_ALL(2),
    AFFINE_ALL(3),
    AFFINE_ALL(5),
    AFFINE_ALL(6),
    {.format = MT_FORMAT_MXFP4, .bits = 4, .group = 32, .scale_type = MT_SCALE_E8M0},
    {.format = MT_FORMAT_NVFP4, .bits = 4, .group = 16, .scale_type = MT_SCALE_E4M3},
    {.format = MT_FORMAT_NVFP4, .bits = 4, .group = 16, .scale_type = MT_SCALE_E4M3, .global = 0.3f},
#define CODES(f, b, g, s, ...)                                                                  \
    {                                                                                           \
        .format = MT_FORMAT_##f, .bits = b, .group = g, .scale_type = MT_SCALE_##s, __VA_ARGS__ \
    }
    CODES(SIGNED, 4, 32, F16),
    CODES(SIGNED, 8, 32, F16),
    CODES(SIGNED, 5, 32, F16, .split = true),
    CODES(SIGNED, 3, 16, 16_OF_F16),
    CODES(SIGNED, 6, 16, 16_OF_F16, .split = true),
    CODES(IQ4, 4, 32, F16),
    CODES(IQ4, 4, 32, 8_OF_F16),
    CODES(AFFINE, 4, 32, F16),
    CODES(AFFINE, 4, 32, 8_OF_F16),
    CODES(AFFINE, 5, 32, F16, .split = true),
    CODES(AFFINE, 5, 32, 8_OF_F16, .split = true),
    CODES(AFFINE, 2, 16, 16_OF_F16),
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static mt_mat sized(size_t s, size_t n, size_t groups)
{
    mt_mat w = shapes[s];
    w.n = n;
    /* scales that share an f16 are those of 256 elements */
    w.k = mt_scale_together(w.scale_type) > 1 ? (groups + 3) / 4 * 256 : groups * w.group;
    return w;
}

/* Depths of several pieces of those that levels take at once, the last one shorter than the others, with each type of
   scales and each group: one row, a few, and more than are multiplied together. In quick runs another number of rows
   for each depth. */
static void pieces(check *c, mt_mat shape, size_t turn)
{
    static const size_t depths[] = {640, 768, 1280, 2688}, rows[] = {1, 2, 4, 9};
    const size_t multiple = mt_scale_together(shape.scale_type) > 1 ? 256 : shape.group;
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
        shape.k = depths[i];
        shape.n = 30 + check_below(c, 40);
        for (size_t m = 0; shape.k % multiple == 0 && m < sizeof(rows) / sizeof(rows[0]); m++)
            if (!c->quick || m == (i + turn) % (sizeof(rows) / sizeof(rows[0])))
                every_row(c, shape, rows[m], CHECK_NORMAL);
    }
}

static void all_pieces(check *c)
{
    static const mt_scale_type scales[] = {MT_SCALE_BF16, MT_SCALE_F16, MT_SCALE_F32};
    static const uint8_t bits[] = {2, 3, 4, 5, 6, 8};
    for (size_t i = 0; i < 3 * sizeof(scales) / sizeof(scales[0]) * sizeof(bits); i++)
        pieces(c,
               (mt_mat){.format = MT_FORMAT_AFFINE,
                        .bits = bits[i / 9],
                        .group = (uint16_t)(32u << i % 3),
                        .scale_type = scales[i / 3 % 3]},
               i);
    for (size_t s = 0; s < SHAPES; s++)
        if (shapes[s].format != MT_FORMAT_AFFINE || mt_scale_together(shapes[s].scale_type) > 1)
            pieces(c, shapes[s], s);
}

void check_qmatmul(check *c)
{
    if (!check_begin(c, CHECK_NEW(c, q_matmul) || CHECK_NEW(c, q_pack), "q_matmul"))
        return;
    for (size_t s = 0; s < SHAPES; s++) {
        for (size_t m = 1; m <= MAX_M; m++) {
            every_row(c, sized(s, 1 + check_below(c, 40), 1 + check_below(c, 12)), m, CHECK_NORMAL);
            if (!c->quick || m % 3 == s % 3)
                every_row(c, sized(s, 1 + check_below(c, 19), 1 + check_below(c, 5)), m,
                          (check_data)check_below(c, CHECK_DATA_KINDS));
        }
        for (size_t n = 1; n <= 20; n++)
            every_row(c, sized(s, n, 3), 1 + check_below(c, 9), CHECK_WIDE);
        for (size_t groups = 1; groups <= 34; groups++)
            every_row(c, sized(s, 9, groups), 1 + check_below(c, 9), CHECK_NORMAL);
        every_row(c, sized(s, 24, 8192u / shapes[s].group + 1), 70 + check_below(c, 30), CHECK_NORMAL);
        static const float parts[] = {0.0f, 1e-6f, 0.01f, 0.06f, 0.07f, 0.3f, 0.34f,
                                      1.0f, 3.0f,  1e3f,  1e6f,  -0.1f, -1.0f};
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
            large_sums(c, sized(s, 5, 4), parts[i]);
        for (int power = -148; power <= 124; power += c->quick ? 16 : 4)
            far_from_one(c, sized(s, 8, 4 + check_below(c, 5)), power);
        column_ranges(c, sized(s, 19, 3), 1 + check_below(c, 3));
        column_ranges(c, sized(s, 19, 3), 4 + check_below(c, 12));
    }
    all_pieces(c);
    every_row(c, sized(0, 16, 16), 1100, CHECK_NORMAL);
    for (size_t m = 287; m <= 300; m++) /* around the end of a block of rows */
        every_row(c, sized(0, 16, 16), m, CHECK_NORMAL);
    static const size_t many[] = {295, 296, 871};
    for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++)
        for (size_t s = 0; s < SHAPES; s++)
            if (!c->quick || s % 3 == i)
                every_row(c, sized(s, 17 + check_below(c, 32), 1 + check_below(c, 6)), many[i], CHECK_NORMAL);
    check_end(c);
}
