/* Products with bf16 rows (R5 of docs/numerics.md) with BFMMLA. Every output is one chain over groups of four of k,
   however many rows there are: few rows read BF16 weights in place; more rows share panels of weights packed into
   scratch. Packed rows are panels of up to MT_ROW_TILE rows (btile.h), k padded with zeros to PAD. */
#include "base/compiler.h"
#include "kernels/levels.h"
#include "kernels/neon/bone.h"
#include "kernels/neon/bpack.h"

enum {
    PAD = 16,
    ROW_PAIRS = MT_ROW_TILE / 2,
    COL_PAIRS = 6, /* 4 x 6 accumulators */
    IN_PLACE = MT_IN_PLACE,
    LINE = 32,    /* elements of a cache line */
    DEPTH = 8192, /* k of a panel; longer chains continue from y */
    FP8_BLOCK = 128
};

static size_t padded(size_t k)
{
    return (k + PAD - 1) / PAD * PAD;
}

size_t mt_b_rows_bytes_bf16(size_t m, size_t k)
{
    return (m + 1) / 2 * 2 * padded(k) * sizeof(mt_bf16);
}

size_t mt_b_scratch_bytes_bf16(size_t k)
{
    return 2 * COL_PAIRS * MT_MIN(padded(k), DEPTH) * sizeof(mt_bf16);
}

/* Packs one row, four k at every 16 * pairs bytes; x is NULL for an empty row. */
static void pack_row(uint8_t *out, const float *x, size_t k, size_t pairs)
{
    for (size_t c = 0; c < padded(k); c += 4, out += 16 * pairs) {
        float32x4_t v = vdupq_n_f32(0.0f);
        if (x && c + 4 <= k)
            v = vld1q_f32(x + c);
        else if (x && c < k)
            v = mt_load_part(x + c, k - c, 0.0f);
        vst1_u8(out, vreinterpret_u8_bf16(vcvt_bf16_f32(v)));
    }
}

void mt_b_pack_bf16(mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1)
{
    for (size_t t = i0; t < i1; t += MT_ROW_TILE) {
        size_t pairs = (MT_MIN(rows->m - t, MT_ROW_TILE) + 1) / 2;
        uint8_t *panel = rows->data + t * padded(rows->k) * sizeof(mt_bf16);
        for (size_t i = 0; i < 2 * pairs; i++) {
            const float *row = t + i < rows->m ? x + (index ? index[t + i] : t + i) * ldx : NULL;
            pack_row(panel + i / 2 * 16 + i % 2 * 8, row, rows->k, pairs);
        }
    }
}

/* ---- few rows, BF16 weights in place ---- */

/* y[2 R][2 IN_PLACE]; rows[]: pairs of rows of w; tail[]: what is left of them beyond a multiple of PAD, padded. What
   comes after each pair is `next` bytes on; it is prefetched in the order of memory: a few long streams use memory
   better than many short ones. */
MT_INLINE void in_place(float *y, const uint8_t *x, const uint8_t *const *rows, const uint8_t (*tail)[2 * PAD],
                        size_t next, size_t k, size_t R)
{
    const uint8_t *row[2 * IN_PLACE], *end[2 * IN_PLACE];
    float32x4_t acc[ROW_PAIRS][IN_PLACE];
    MT_UNROLL
    for (size_t c = 0; c < 2 * IN_PLACE; c++) {
        row[c] = rows[c];
        end[c] = tail[c];
    }
    MT_UNROLL
    for (size_t r = 0; r < R; r++) {
        MT_UNROLL
        for (size_t c = 0; c < IN_PLACE; c++)
            acc[r][c] = vdupq_n_f32(0.0f);
    }
    size_t i = 0;
    for (; i + LINE <= k; i += LINE) {
        MT_UNROLL
        for (size_t c = 0; c < 2 * IN_PLACE; c++)
            __builtin_prefetch(row[c / 2 * 2] + next + (i * 2 + c % 2 * LINE) * sizeof(mt_bf16), 0, 2);
        MT_UNROLL
        for (size_t l = 0; l < LINE; l += 8, x += 32 * R)
            mt_btile_eight(acc, x, row, (i + l) * sizeof(mt_bf16), R);
    }
    for (; i < k / PAD * PAD; i += 8, x += 32 * R)
        mt_btile_eight(acc, x, row, i * sizeof(mt_bf16), R);
    for (i = 0; i < padded(k) - k / PAD * PAD; i += 8, x += 32 * R)
        mt_btile_eight(acc, x, end, i * sizeof(mt_bf16), R);
    MT_BTILE_STORE(y, 2 * IN_PLACE, acc, R, IN_PLACE)
}

/* The columns are divided into IN_PLACE parts, and each step takes a pair from each part. */
static void matmul_in_place(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows)
{
    const uint8_t *row[2 * IN_PLACE];
    uint8_t tail[2 * IN_PLACE][2 * PAD] = {{0}};
    size_t whole = w->k / PAD * PAD, part = 2 * ((n1 - n0 + 2 * IN_PLACE - 1) / (2 * IN_PLACE)), next = 2 * w->stride;
    float out[MT_ROW_TILE * 2 * IN_PLACE];
    for (size_t j = n0; j < n0 + part && j < n1; j += 2) {
        for (size_t c = 0; c < 2 * IN_PLACE; c++) {
            row[c] = w->w + MT_MIN(j + c / 2 * part + c % 2, n1 - 1) * w->stride;
            memcpy(tail[c], row[c] + whole * sizeof(mt_bf16), (w->k - whole) * sizeof(mt_bf16));
        }
        switch ((rows->m + 1) / 2) {
        case 1: in_place(out, rows->data, row, tail, next, w->k, 1); break;
        case 2: in_place(out, rows->data, row, tail, next, w->k, 2); break;
        case 3: in_place(out, rows->data, row, tail, next, w->k, 3); break;
        default: in_place(out, rows->data, row, tail, next, w->k, 4); break;
        }
        for (size_t c = 0; c < 2 * IN_PLACE; c++)
            for (size_t i = 0, at = j + c / 2 * part + c % 2; at < n1 && i < rows->m; i++)
                y[i * ldy + at] = out[i * 2 * IN_PLACE + c];
    }
}

/* ---- packed panels ---- */

typedef struct tile {
    const uint8_t *x, *w; /* panels */
    size_t steps;
    size_t row_pairs, col_pairs;
    bool more;
} tile;

static void run_tile(float *y, size_t ldy, const tile *t)
{
    switch (t->row_pairs * 8 + t->col_pairs) {
#define CASE(R, C) \
    case R * 8 + C: mt_btile(y, ldy, t->x, t->w, t->steps, t->more, R, C); break;
        CASE(1, 4) CASE(2, 4) CASE(3, 4) CASE(4, 4) CASE(1, 6) CASE(2, 6) CASE(3, 6) CASE(4, 6)
#undef CASE
    }
}

/* Scales of block k / 128 for COL_PAIRS pairs of columns from j on; columns beyond the matrix repeat the last. */
static void block_scales(float *scale, const mt_mat *w, size_t j, size_t k)
{
    for (size_t c = 0; c < 2 * COL_PAIRS && w->scale_rows == 1; c++)
        scale[c] = mt_scale_f32(w->scales + MT_MIN(j + c, w->n - 1) * w->scale_stride, w->scale_type, k / FP8_BLOCK);
    if (w->scale_rows == 1)
        return;
    size_t first = j / FP8_BLOCK, split = MT_MIN((first + 1) * FP8_BLOCK - j, 2 * COL_PAIRS),
           last = MT_MIN(first + 1, (w->n - 1) / FP8_BLOCK);
    float a = mt_scale_f32(w->scales + first * w->scale_stride, w->scale_type, k / FP8_BLOCK);
    float b =
        split == 2 * COL_PAIRS ? a : mt_scale_f32(w->scales + last * w->scale_stride, w->scale_type, k / FP8_BLOCK);
    for (size_t c = 0; c < 2 * COL_PAIRS; c++)
        scale[c] = c < split ? a : b;
}

/* FP8: each block of 128 from zero, then y = fma(scale, block, y). */
static void run_fp8(float *y, size_t ldy, const tile *t, const mt_mat *w, size_t j, size_t k)
{
    float block[MT_ROW_TILE][2 * COL_PAIRS], sum[MT_ROW_TILE][2 * COL_PAIRS] = {{0}}, scale[2 * COL_PAIRS];
    size_t rows = 2 * t->row_pairs, columns = 2 * t->col_pairs;
    tile part = *t;
    part.more = false;
    for (size_t r = 0; t->more && r < rows; r++)
        memcpy(sum[r], y + r * ldy, columns * sizeof(*y));
    for (size_t s = 0; s < t->steps; s += FP8_BLOCK / 4) {
        part.x = t->x + s * 16 * t->row_pairs;
        part.w = t->w + s * 16 * t->col_pairs;
        part.steps = MT_MIN(t->steps - s, FP8_BLOCK / 4);
        run_tile(block[0], 2 * COL_PAIRS, &part);
        block_scales(scale, w, j, k + 4 * s);
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < columns; c += 4)
                vst1q_f32(sum[r] + c, vfmaq_f32(vld1q_f32(sum[r] + c), vld1q_f32(scale + c), vld1q_f32(block[r] + c)));
    }
    for (size_t r = 0; r < rows; r++)
        memcpy(y + r * ldy, sum[r], columns * sizeof(*y));
}

/* Tiles that reach beyond the matrix are computed in temporary memory. */
static void place_tile(float *y, size_t ldy, size_t m, size_t n, const tile *t, const mt_mat *w, size_t j, size_t k)
{
    float aside[MT_ROW_TILE][2 * COL_PAIRS];
    bool whole = m == 2 * t->row_pairs && n == 2 * t->col_pairs;
    float *at = whole ? y : aside[0];
    size_t ld = whole ? ldy : 2 * COL_PAIRS;
    for (size_t i = 0; !whole && t->more && i < m; i++)
        memcpy(aside[i], y + i * ldy, n * sizeof(*y));
    if (w->format == MT_FORMAT_FP8)
        run_fp8(at, ld, t, w, j, k);
    else
        run_tile(at, ld, t);
    for (size_t i = 0; !whole && i < m; i++)
        memcpy(y + i * ldy, aside[i], n * sizeof(*y));
}

/* Panels have 6 pairs, or 4 where that wastes less. */
static size_t panel_pairs(size_t columns)
{
    size_t pairs = (columns + 1) / 2, rest = pairs % 6;
    return pairs >= 6 && (rest == 0 || rest > 2 || pairs > 8) ? 6 : 4;
}

static void matmul_packed(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows,
                          uint8_t *panel)
{
    size_t width = padded(w->k);
    for (size_t k = 0; k < width; k += DEPTH) {
        size_t end = MT_MIN(width, k + DEPTH);
        for (size_t j = n0, count; j < n1; j += count) {
            tile t = {.w = panel, .steps = (end - k) / 4, .col_pairs = panel_pairs(n1 - j), .more = k > 0};
            count = MT_MIN(n1 - j, 2 * t.col_pairs);
            mt_panel(panel, w, j, count, t.col_pairs, k, end);
            for (size_t i = 0; i < rows->m; i += MT_ROW_TILE) {
                size_t m = MT_MIN(rows->m - i, MT_ROW_TILE);
                t.row_pairs = (m + 1) / 2;
                t.x = rows->data + (i * width + k * 2 * t.row_pairs) * sizeof(mt_bf16);
                place_tile(y + i * ldy + j, ldy, m, count, &t, w, j, k);
            }
        }
    }
}

void mt_b_matmul_bf16(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows,
                      uint8_t *scratch)
{
    if (w->format == MT_FORMAT_BF16 && rows->m <= MT_ROW_TILE) {
        matmul_in_place(y, ldy, w, n0, n1, rows);
        return;
    }
    if (rows->m == 1)
        n0 = mt_b_one_bf16(y, w, n0, n1, rows->data);
    if (n0 < n1)
        matmul_packed(y, ldy, w, n0, n1, rows, scratch);
}
