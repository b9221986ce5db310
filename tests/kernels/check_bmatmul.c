/* b_matmul and f_matmul: every format, M, tile edge and tail. Equal bits on every level, with two exceptions: BFMMLA
   (R5 level 1) is held to a bound against double, AMX (R5 level 2) to plain C of what its tiles do. On every level a
   row's bits do not depend on M or on the column range. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "kernels/convert.h"

void check_bmatmul(check *c);

#define UNTOUCHED 0x7fd23456u /* a NaN, so that adding to what was there shows */

typedef struct problem {
    mt_mat w;
    size_t m, ldx, ldy;
    float *x, *want;
    uint32_t *index; /* row i of the product is row index[i] of x; or NULL */
    check_data kind;
    bool fp32; /* f_matmul */
} problem;

static void run(check *c, const mt_kernels *k, const problem *p, float *y, size_t n0, size_t n1)
{
    if (p->fp32) {
        uint8_t *scratch = check_alloc(c, k->f_scratch_bytes(p->w.k), 64);
        k->f_matmul(y, p->ldy, &p->w, n0, n1, p->x, p->ldx, p->index, p->m, scratch);
        return;
    }
    mt_rows rows = {.m = p->m, .k = p->w.k, .data = check_alloc(c, k->b_rows_bytes(p->m, p->w.k), 64)};
    uint8_t *scratch = check_alloc(c, k->b_scratch_bytes(p->w.k), 64);
    size_t half = p->m / 2 / MT_ROW_TILE * MT_ROW_TILE;
    k->b_pack(&rows, p->x, p->ldx, p->index, half, p->m);
    k->b_pack(&rows, p->x, p->ldx, p->index, 0, half);
    k->b_matmul(y, p->ldy, &p->w, n0, n1, &rows, scratch);
}

static float *outputs(check *c, const problem *p)
{
    float *y = check_alloc(c, p->m * p->ldy * sizeof(*y), 4);
    for (size_t i = 0; i < p->m * p->ldy; i++)
        y[i] = mt_f32_from_bits(UNTOUCHED);
    return y;
}

static const float *row_of(const problem *p, size_t i)
{
    return p->x + (p->index ? p->index[i] : i) * p->ldx;
}

/* A NaN in every row would hide everything else. */
static void without_nan(const mt_mat *w)
{
    uint8_t *codes = (uint8_t *)(uintptr_t)w->w;
    for (size_t i = 0; i < w->n * w->stride; i++)
        codes[i] = (codes[i] & 0x7f) == 0x7f ? codes[i] & 0xfe : codes[i];
}

static void setup(check *c, problem *p, mt_mat shape, size_t m, check_data kind, bool fp32)
{
    check_data scales = kind == CHECK_HUGE || kind == CHECK_SPECIAL ? (check_below(c, 2) ? CHECK_NORMAL : kind) : kind;
    *p = (problem){.m = m, .kind = kind, .fp32 = fp32};
    check_matrix(c, &p->w, &shape, scales);
    if (shape.format == MT_FORMAT_FP8 && kind != CHECK_SPECIAL)
        without_nan(&p->w);
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
}

static void same(check *c, const problem *p, const float *y, size_t n0, size_t n1, const char *how)
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

/* Each of the k / 2 additions of BFMMLA errs by less than 2^-23 of what it adds, FP8's scales by 2^-23 again. */
static void near(check *c, const problem *p, const float *y)
{
    mt_bf16 *rounded = check_alloc(c, p->w.k * sizeof(*rounded), 2);
    float *row = check_alloc(c, p->w.k * sizeof(*row), 4);
    for (size_t j = 0; j < p->w.n; j++) {
        c->ref->row_f32(row, &p->w, j);
        for (size_t i = 0; i < p->m; i++) {
            double sum = 0, size = 0, got = (double)y[i * p->ldy + j];
            c->ref->to_bf16(rounded, row_of(p, i), p->w.k);
            for (size_t k = 0; k < p->w.k; k++) {
                double product = (double)row[k] * (double)mt_f32_from_bf16(rounded[k]);
                sum += product;
                size += fabs(product);
            }
            double bound = size * ((double)p->w.k / 2 + 8) * 0x1p-23;
            bool ok = isnan(sum) ? isnan(got) : isinf(size) || fabs(got - sum) <= bound;
            if (!check_that(c, ok, "bound: %s m=%zu k=%zu [%zu][%zu]: %g, want %g within %g", check_matrix_name(&p->w),
                            p->m, p->w.k, i, j, got, sum, bound))
                return;
        }
    }
}

/* What AMX adds to `sum` for elements [k, end) of a row, 32 at a time. Subnormal numbers, which tiles take for zero, do
   not come up. */
static float tiles(float sum, const float *w, const mt_bf16 *x, size_t k, size_t end)
{
    for (; k < end; k += 32) {
        float chain[2] = {0, 0};
        for (size_t i = k; i < k + 32 && i < end; i++)
            chain[i % 2] = fmaf(w[i], mt_f32_from_bf16(x[i]), chain[i % 2]);
        sum += chain[0] + chain[1];
    }
    return sum;
}

static float tiles_dot(const mt_mat *w, size_t j, const float *row, const mt_bf16 *x)
{
    const size_t block = w->format == MT_FORMAT_FP8 ? 128 : w->k;
    float acc = 0;
    for (size_t k = 0; k < w->k; k += block) {
        const float dot = tiles(0, row, x, k, k + block < w->k ? k + block : w->k);
        if (w->format != MT_FORMAT_FP8)
            return dot;
        acc = fmaf(mt_scale_f32(w->scales + j / w->scale_rows * w->scale_stride, w->scale_type, k / block), dot, acc);
    }
    return acc;
}

static void as_tiles(check *c, const problem *p, const float *y)
{
    const mt_mat *w = &p->w;
    problem want = *p;
    mt_bf16 *rounded = check_alloc(c, p->m * w->k * sizeof(*rounded), 2);
    float *row = check_alloc(c, w->k * sizeof(*row), 4);
    want.want = outputs(c, p);
    for (size_t i = 0; i < p->m; i++)
        c->ref->to_bf16(rounded + i * w->k, row_of(p, i), w->k);
    for (size_t j = 0; j < w->n; j++) {
        c->ref->row_f32(row, w, j);
        for (size_t k = 0; w->format == MT_FORMAT_FP8 && k < w->k; k++)
            row[k] = mt_f32_from_e4m3(w->w[j * w->stride + k]);
        for (size_t i = 0; i < p->m; i++)
            want.want[i * p->ldy + j] = tiles_dot(w, j, row, rounded + i * w->k);
    }
    same(c, &want, y, 0, w->n, "as tiles");
}

/* All rows at once: as portable or tiles have it, or within the bound; then one row alone, with the same bits. */
static void every_row(check *c, mt_mat shape, size_t m, check_data kind, bool fp32)
{
    problem p;
    setup(c, &p, shape, m, kind, fp32);
    float *y = outputs(c, &p);
    run(c, c->k, &p, y, 0, shape.n);
    if (fp32 || mt_kernels_r5_level(c->k) == 0) {
        p.want = outputs(c, &p);
        run(c, c->ref, &p, p.want, 0, shape.n);
        same(c, &p, y, 0, shape.n, "all");
    } else if (kind == CHECK_NORMAL || kind == CHECK_WIDE || kind == CHECK_ZERO) {
        if (mt_kernels_r5_level(c->k) == 2)
            as_tiles(c, &p, y);
        else
            near(c, &p, y);
    }
    problem one = p;
    size_t i = check_below(c, m);
    one.m = 1;
    one.x = p.x + (p.index ? p.index[i] : i) * p.ldx;
    one.index = NULL;
    one.want = y + i * p.ldy;
    float *alone = outputs(c, &one);
    run(c, c->k, &one, alone, 0, shape.n);
    same(c, &one, alone, 0, shape.n, "alone");
    check_release(c);
}

static void column_ranges(check *c, mt_mat shape, size_t m, bool fp32)
{
    problem p;
    setup(c, &p, shape, m, CHECK_NORMAL, fp32);
    p.want = outputs(c, &p);
    run(c, c->k, &p, p.want, 0, shape.n);
    for (size_t n0 = 0; n0 <= shape.n; n0++) {
        for (size_t n1 = n0; n1 <= shape.n; n1 += 1 + check_below(c, 5)) {
            float *y = outputs(c, &p);
            run(c, c->k, &p, y, n0, n1);
            same(c, &p, y, n0, n1, "range");
        }
    }
    check_release(c);
}

static const mt_mat b_shapes[] = {
    {.format = MT_FORMAT_BF16, .bits = 16},
    {.format = MT_FORMAT_FP8, .bits = 8, .group = 128, .scale_rows = 128, .scale_type = MT_SCALE_F32},
    {.format = MT_FORMAT_FP8, .bits = 8, .group = 128, .scale_rows = 128, .scale_type = MT_SCALE_BF16},
    {.format = MT_FORMAT_FP8, .bits = 8, .group = 128, .scale_rows = 1, .scale_type = MT_SCALE_F32},
    {.format = MT_FORMAT_MXFP8, .bits = 8, .group = 32, .scale_type = MT_SCALE_E8M0},
};

static const mt_mat f_shapes[] = {
    {.format = MT_FORMAT_F32, .bits = 32},
    {.format = MT_FORMAT_F16, .bits = 16},
    {.format = MT_FORMAT_BF16, .bits = 16},
    {.format = MT_FORMAT_FP8, .bits = 8, .group = 128, .scale_rows = 128, .scale_type = MT_SCALE_F32},
    {.format = MT_FORMAT_FP8, .bits = 8, .group = 128, .scale_rows = 1, .scale_type = MT_SCALE_BF16},
    {.format = MT_FORMAT_AFFINE, .bits = 4, .group = 64, .scale_type = MT_SCALE_BF16},
    {.format = MT_FORMAT_NVFP4, .bits = 4, .group = 16, .scale_type = MT_SCALE_E4M3},
};

/* MXFP8 and the like come in whole groups; FP8 may end inside one. */
static mt_mat sized(mt_mat w, size_t n, size_t k)
{
    w.n = n;
    w.k = w.group && w.format != MT_FORMAT_FP8 ? (k + w.group - 1) / w.group * w.group : k;
    return w;
}

static void one_shape(check *c, mt_mat w, bool fp32)
{
    for (size_t m = 1; m <= 35; m++) {
        every_row(c, sized(w, 1 + check_below(c, 60), 1 + check_below(c, 600)), m, CHECK_NORMAL, fp32);
        every_row(c, sized(w, 1 + check_below(c, 30), 1 + check_below(c, 100)), m,
                  (check_data)check_below(c, CHECK_DATA_KINDS), fp32);
    }
    for (size_t n = 1; n <= 40; n++)
        every_row(c, sized(w, n, 40), 1 + check_below(c, 20), CHECK_WIDE, fp32);
    for (size_t k = 1; k <= 70; k++)
        every_row(c, sized(w, 13, k), 1 + check_below(c, 12), CHECK_WIDE, fp32);
    for (check_data kind = 0; kind < CHECK_DATA_KINDS; kind++)
        for (size_t m = 1; m <= 20; m += 3)
            every_row(c, sized(w, 25, 300), m, kind, fp32);
    every_row(c, sized(w, 140, 300), 9, CHECK_NORMAL, fp32);
    every_row(c, sized(w, 14, 8192 + 1000), 1 + check_below(c, 30), CHECK_NORMAL, fp32);
    static const size_t many[] = {295, 296, 871};
    for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++)
        every_row(c, sized(w, 17 + check_below(c, 16), 65 + check_below(c, 100)), many[i], CHECK_NORMAL, fp32);
    column_ranges(c, sized(w, 27, 50), 1 + check_below(c, 4), fp32);
    column_ranges(c, sized(w, 27, 50), 9 + check_below(c, 12), fp32);
}

void check_bmatmul(check *c)
{
    if (check_begin(c, CHECK_NEW(c, b_matmul) || CHECK_NEW(c, b_pack), "b_matmul")) {
        for (size_t s = 0; s < sizeof(b_shapes) / sizeof(b_shapes[0]); s++)
            one_shape(c, b_shapes[s], false);
        check_end(c);
    }
    if (check_begin(c, CHECK_NEW(c, f_matmul), "f_matmul")) {
        for (size_t s = 0; s < sizeof(f_shapes) / sizeof(f_shapes[0]); s++)
            one_shape(c, f_shapes[s], true);
        check_end(c);
    }
}
