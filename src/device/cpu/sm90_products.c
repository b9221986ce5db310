/* Products as tensor cores of sm_90 add (docs/numerics.md): those of codes by the rule of `native`, those of bf16 and
   FP8 weights as a GPU has R5. Sixteen columns at a time meet some rows, 64 of k after the other.

   A packed row is its operands, widened for sm90_lanes.h, then the exponents of its segments, then whether all are
   finite. */
#include <math.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "device/native.h"
#include "device/sm90_lanes.h"
#include "kernels/levels.h"
#include "kernels/portable/scalar.h"

enum {
    LANES = MT_SM90_LANES,
    CHUNK = MT_NATIVE_SEGMENT, /* of k */
    ROWS = 64,                 /* that meet a panel */
    FP8_BLOCK = 128            /* of k, with one scale */
};

/* Sixteen columns of a weight, CHUNK of k. */
typedef struct panel {
    float value[CHUNK][LANES], power[CHUNK][LANES];
    bool finite;
} panel;

/* Working memory: a panel, sums that go on and totals of ROWS rows; behind it columns as halves, for `native`. */
typedef struct room {
    panel panel;
    float sum[ROWS][LANES], total[ROWS][LANES];
} room;

typedef struct packed_row {
    float *value, *power;
    int *exponents;
    uint32_t *finite;
} packed_row;

/* ---- rows ---- */

size_t mt_cpu_sm90_row_bytes(size_t k)
{
    const size_t padded = mt_native_padded(k);
    return mt_cpu_up(2 * padded * sizeof(float) + (padded / CHUNK + 1) * sizeof(int), 64);
}

static size_t rows_bytes(size_t m, size_t k)
{
    return m * mt_cpu_sm90_row_bytes(k);
}

static packed_row row_at(const mt_rows *rows, size_t i)
{
    const size_t padded = mt_native_padded(rows->k);
    float *value = (float *)(void *)(rows->data + i * mt_cpu_sm90_row_bytes(rows->k));
    int *exponents = (int *)(void *)(value + 2 * padded);
    return (packed_row){value, value + padded, exponents, (uint32_t *)(void *)(exponents + padded / CHUNK)};
}

/* Rounds a row a chunk at a time, to fp16 with an exponent for each, or to bf16. */
static void pack_row(const mt_rows *rows, size_t i, const float *x, mt_sm90_type type)
{
    const packed_row to = row_at(rows, i);
    *to.finite = true;
    for (size_t first = 0; first < mt_native_padded(rows->k); first += CHUNK) {
        const size_t left = first < rows->k ? rows->k - first : 0, n = left < CHUNK ? left : CHUNK;
        uint16_t half[CHUNK] = {0};
        if (type == MT_SM90_F16)
            to.exponents[first / CHUNK] = mt_native_pack_segment(half, x + first, n);
        else
            mt_to_bf16_portable(half, x + first, n);
        *to.finite &= mt_sm90_widen(to.value + first, to.power + first, half, CHUNK, type);
    }
}

static void pack_rows(mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1,
                      mt_sm90_type type)
{
    for (size_t i = i0; i < i1; i++)
        pack_row(rows, i, x + (index ? index[i] : i) * ldx, type);
}

void mt_cpu_native_pack(mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1)
{
    pack_rows(rows, x, ldx, index, i0, i1, MT_SM90_F16);
}

static void pack(mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1)
{
    pack_rows(rows, x, ldx, index, i0, i1, MT_SM90_BF16);
}

/* ---- columns ---- */

/* Element c of a row as bf16; of FP8 with a scale for each block of 128 without it. */
static mt_bf16 half_of(const mt_mat *w, size_t row, size_t c)
{
    const uint8_t *at = w->w + row * w->stride;
    mt_bf16 half;
    switch (w->format) {
    case MT_FORMAT_FP8: {
        const float x = mt_f32_from_fp8(at[c]);
        if (w->scale_rows != 1)
            return mt_bf16_from_f32(x);
        return mt_bf16_from_f32(mt_scale_f32(w->scales + row * w->scale_stride, w->scale_type, c / FP8_BLOCK) * x);
    }
    case MT_FORMAT_MXFP8:
        return mt_bf16_from_f32(mt_scale_f32(w->scales + row * w->scale_stride, w->scale_type, c / w->group) *
                                mt_f32_from_e4m3(at[c]));
    default: memcpy(&half, at + c * sizeof(half), sizeof(half)); return half;
    }
}

/* A column of a panel; zeros beyond n. */
static void put_column(panel *p, size_t lane, const uint16_t *half, mt_sm90_type type)
{
    float value[CHUNK], power[CHUNK];
    p->finite &= mt_sm90_widen(value, power, half, CHUNK, type);
    for (size_t i = 0; i < CHUNK; i++) {
        p->value[i][lane] = value[i];
        p->power[i][lane] = power[i];
    }
}

/* Columns [j, j + count) of k from `first` on. */
static void fill(panel *p, const mt_weight *w, size_t j, size_t count, size_t first, const mt_f16 *columns)
{
    const mt_mat *mat = &w->mat;
    p->finite = true;
    for (size_t l = 0; l < LANES; l++) {
        uint16_t half[CHUNK] = {0};
        if (columns && l < count)
            memcpy(half, columns + l * mt_native_padded(mat->k) + first, sizeof(half));
        for (size_t c = first; !columns && l < count && c < first + CHUNK && c < mat->k; c++)
            half[c - first] = half_of(mat, j + l, c);
        put_column(p, l, half, columns ? MT_SM90_F16 : MT_SM90_BF16);
    }
}

/* ---- a product ---- */

static void scale_all(float *x, float factor)
{
    for (size_t l = 0; l < LANES; l++)
        x[l] *= factor;
}

/* Adds a chunk of k to the sums of a row. */
static void add_chunk(const panel *p, float *sum, const packed_row *x, size_t first, mt_sm90_type type)
{
    for (size_t i = 0; i < CHUNK; i += MT_SM90_K)
        mt_sm90_step(sum, p->value[i], p->power[i], LANES, x->value + first + i, x->power + first + i, type,
                     p->finite && *x->finite);
}

/* The same of `native` (mt_native_dot has it for one sum). */
static void add_segment(const panel *p, float *sum, float *total, const packed_row *x, size_t first, size_t padded)
{
    const int *e = x->exponents + first / CHUNK;
    const size_t end = first + CHUNK;
    if (first % MT_NATIVE_GROUP)
        scale_all(sum, ldexpf(1, e[-1] - e[0]));
    else
        memset(sum, 0, LANES * sizeof(*sum));
    add_chunk(p, sum, x, first, MT_SM90_F16);
    for (size_t l = 0; l < LANES && (end % MT_NATIVE_GROUP == 0 || end == padded); l++)
        total[l] = fmaf(ldexpf(1, *e), sum[l], total[l]);
}

/* The same of FP8 with a scale for each 128 of k, at whose end it is counted. */
static void add_block(const panel *p, float *sum, float *total, const packed_row *x, size_t first, const mt_mat *w,
                      const float *scale)
{
    const size_t end = first + CHUNK;
    if (first % FP8_BLOCK == 0)
        memset(sum, 0, LANES * sizeof(*sum));
    add_chunk(p, sum, x, first, MT_SM90_BF16);
    for (size_t l = 0; l < LANES && (end % FP8_BLOCK == 0 || end >= w->k); l++)
        total[l] = fmaf(scale[l], sum[l], total[l]);
}

/* Rows [i0, i0 + m) of columns [j, j + count) into `room`; returns the sums. */
static float (*multiply(room *at, const mt_weight *w, size_t j, size_t count, const mt_rows *rows, size_t i0, size_t m,
                        const mt_f16 *columns))[LANES]
{
    const mt_mat *mat = &w->mat;
    const bool blocks = mat->format == MT_FORMAT_FP8 && mat->scale_rows != 1;
    const size_t padded = columns ? mt_native_padded(mat->k) : mat->k;
    memset(at->sum, 0, m * sizeof(at->sum[0]));
    memset(at->total, 0, m * sizeof(at->total[0]));
    for (size_t first = 0; first < padded; first += CHUNK) {
        float scale[LANES] = {0};
        fill(&at->panel, w, j, count, first, columns);
        for (size_t l = 0; blocks && l < count; l++)
            scale[l] = mt_scale_f32(mat->scales + (j + l) / mat->scale_rows * mat->scale_stride, mat->scale_type,
                                    first / FP8_BLOCK);
        for (size_t i = 0; i < m; i++) {
            const packed_row x = row_at(rows, i0 + i);
            if (columns)
                add_segment(&at->panel, at->sum[i], at->total[i], &x, first, padded);
            else if (blocks)
                add_block(&at->panel, at->sum[i], at->total[i], &x, first, mat, scale);
            else
                add_chunk(&at->panel, at->sum[i], &x, first, MT_SM90_BF16);
        }
    }
    return columns || blocks ? at->total : at->sum;
}

static void multiply_all(float *y, size_t ldy, const mt_weight *w, size_t n0, size_t n1, const mt_rows *rows,
                         uint8_t *scratch)
{
    const bool native = w->class == MT_CLASS_N;
    const size_t padded = mt_native_padded(w->mat.k);
    const float unit = native ? ldexpf(1, w->power) : 1;
    room *at = (room *)(void *)scratch;
    mt_f16 *columns = native ? (mt_f16 *)(void *)(at + 1) : NULL;
    for (size_t j = n0; j < n1; j += LANES) {
        const size_t count = n1 - j < LANES ? n1 - j : LANES;
        for (size_t l = 0; columns && l < count; l++)
            mt_native_weights(columns + l * padded, &w->mat, j + l, w->power);
        for (size_t i0 = 0; i0 < rows->m; i0 += ROWS) {
            const size_t m = rows->m - i0 < ROWS ? rows->m - i0 : ROWS;
            float(*sums)[LANES] = multiply(at, w, j, count, rows, i0, m, columns);
            for (size_t i = 0; i < m; i++)
                for (size_t l = 0; l < count; l++)
                    y[(i0 + i) * ldy + j + l] = native ? sums[i][l] * unit : sums[i][l];
        }
    }
}

size_t mt_cpu_sm90_scratch(size_t k)
{
    return sizeof(room) + LANES * mt_native_padded(k) * sizeof(mt_f16);
}

void mt_cpu_native_matmul(float *y, size_t ldy, const mt_weight *w, size_t n0, size_t n1, const mt_rows *rows,
                          uint8_t *scratch)
{
    multiply_all(y, ldy, w, n0, n1, rows, scratch);
}

static void matmul(float *y, size_t ldy, const mt_mat *mat, size_t n0, size_t n1, const mt_rows *rows, uint8_t *scratch)
{
    const mt_weight w = {.mat = *mat, .class = MT_CLASS_B};
    multiply_all(y, ldy, &w, n0, n1, rows, scratch);
}

void mt_cpu_sm90_overlay(mt_kernels *k)
{
    k->b_rows_bytes = rows_bytes;
    k->b_pack = pack;
    k->b_scratch_bytes = mt_cpu_sm90_scratch;
    k->b_matmul = matmul;
    k->kv_put_bf16 = mt_kv_put_bf16_portable;
    k->attn_bf16 = k->attn_plain;
}
