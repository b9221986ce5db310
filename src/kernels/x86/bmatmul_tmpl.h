/* Products with bf16 rows (R5 of docs/numerics.md) without BFMMLA: activations are rounded to bf16, everything is
   widened to fp32, products by R6. Packed rows are fp32, padded with zeros to whole lanes and a cache line apart, so
   that they do not compete for the same cache sets. */
#include "kernels/levels.h"
#include "kernels/x86/fproduct.h"

enum { FP8_BLOCK = 128, FP8_COLUMNS = 2 * TILE_W, FP8_LDW = FP8_BLOCK + MT_LANES };

static size_t row_stride(size_t k)
{
    return mt_round_up(k, MT_LANES) + MT_LANES;
}

size_t MT_LEVEL(b_rows_bytes)(size_t m, size_t k)
{
    return m * row_stride(k) * sizeof(float);
}

void MT_LEVEL(b_pack)(mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1)
{
    const size_t k = rows->k, stride = row_stride(k);
    for (size_t i = i0; i < i1; i++) {
        const float *row = x + (index ? index[i] : i) * ldx;
        float *out = (float *)(void *)rows->data + i * stride;
        for (size_t c = 0; c < k; c += VL)
            vf_put(out, c, stride, vf_from_bits(vf_round_bf16(vf_get(row, c, k))));
        memset(out + k, 0, (stride - k) * sizeof(*out));
    }
}

size_t MT_LEVEL(b_scratch_bytes)(size_t k)
{
    (void)k;
    return mt_fproduct_scratch();
}

/* The block's codes without their scale; columns j .. j+count, the last repeated to fill a tile. */
static void fp8_widen(float *wide, const mt_mat *w, size_t j, size_t count, size_t k, size_t n)
{
    for (size_t r = 0; r < mt_round_up(count, TILE_W); r++) {
        const uint8_t *p = w->w + (j + (r < count ? r : count - 1)) * w->stride + k;
        mt_widen_bytes(wide + r * FP8_LDW, p, n, 1.0f, true);
        memset(wide + r * FP8_LDW + n, 0, (mt_round_up(n, MT_LANES) - n) * sizeof(*wide));
    }
}

static __m128 fp8_scales(const mt_mat *w, size_t j, size_t count, size_t block)
{
    float s[TILE_W];
    for (size_t r = 0; r < TILE_W; r++) {
        size_t column = j + (r < count ? r : count - 1);
        s[r] = mt_scale_f32(w->scales + column / w->scale_rows * w->scale_stride, w->scale_type, block);
    }
    return _mm_loadu_ps(s);
}

/* sums[i][r] = fma(scale, dot of one block of k, sums[i][r]) for rows [i0, i1) and columns j .. j+count */
static void fp8_block(float *sums, const float *wide, const mt_mat *w, const float *x, size_t stride, size_t i0,
                      size_t i1, size_t j, size_t count, size_t k)
{
    const size_t n = mt_round_up(w->k - k < FP8_BLOCK ? w->k - k : FP8_BLOCK, MT_LANES);
    for (size_t r = 0; r < count; r += TILE_W) {
        const __m128 scales = fp8_scales(w, j + r, count - r, k / FP8_BLOCK);
        for (size_t i = i0; i < i1; i += TILE_X) {
            const size_t nc = i1 - i < TILE_X ? i1 - i : TILE_X;
            const float *rows[TILE_X];
            float out[TILE_X][TILE_W];
            for (size_t c = 0; c < nc; c++)
                rows[c] = x + (i + c) * stride + k;
            mt_tile_dot(out, wide + r * FP8_LDW, FP8_LDW, rows, n, nc);
            for (size_t c = 0; c < nc; c++) {
                float *to = sums + (i - i0 + c) * FP8_COLUMNS + r;
                _mm_storeu_ps(to, _mm_fmadd_ps(scales, _mm_loadu_ps(out[c]), _mm_loadu_ps(to)));
            }
        }
    }
}

static void fp8_matmul(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows,
                       uint8_t *scratch)
{
    const size_t stride = row_stride(w->k);
    const float *x = (const float *)(const void *)rows->data;
    float *wide = (float *)(void *)scratch, *sums = wide + FP8_COLUMNS * FP8_LDW;
    for (size_t i0 = 0; i0 < rows->m; i0 += MT_F_ROWS) {
        const size_t i1 = rows->m - i0 < MT_F_ROWS ? rows->m : i0 + MT_F_ROWS;
        for (size_t j = n0; j < n1; j += FP8_COLUMNS) {
            const size_t count = n1 - j < FP8_COLUMNS ? n1 - j : FP8_COLUMNS;
            memset(sums, 0, (i1 - i0) * FP8_COLUMNS * sizeof(*sums));
            for (size_t k = 0; k < w->k; k += FP8_BLOCK) {
                fp8_widen(wide, w, j, count, k, w->k - k < FP8_BLOCK ? w->k - k : FP8_BLOCK);
                fp8_block(sums, wide, w, x, stride, i0, i1, j, count, k);
            }
            for (size_t i = i0; i < i1; i++)
                memcpy(y + i * ldy + j, sums + (i - i0) * FP8_COLUMNS, count * sizeof(*y));
        }
    }
}

void MT_LEVEL(b_matmul)(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows,
                        uint8_t *scratch)
{
    if (w->format == MT_FORMAT_FP8) {
        fp8_matmul(y, ldy, w, n0, n1, rows, scratch);
        return;
    }
    const float *x = (const float *)(const void *)rows->data;
    mt_fproduct p = {.y = y, .ldy = ldy, .w = w, .x = x, .ldx = row_stride(w->k), .padded = true};
    mt_fproduct_run(&p, rows->m, n0, n1, scratch);
}
