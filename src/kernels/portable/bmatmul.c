/* Products with bf16 rows (R5 of docs/numerics.md) without BFMMLA: activations are rounded to bf16, everything is
   widened to fp32, products by R6. Packed rows are fp32 [m][k]. */
#include "kernels/levels.h"
#include "kernels/portable/scalar.h"

enum { BLOCK = 4, FP8_BLOCK = 128 };

size_t mt_b_rows_bytes_portable(size_t m, size_t k)
{
    return m * k * sizeof(float);
}

void mt_b_pack_portable(mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1)
{
    float *out = (float *)(void *)rows->data;
    for (size_t i = i0; i < i1; i++) {
        const float *row = x + (index ? index[i] : i) * ldx;
        for (size_t c = 0; c < rows->k; c++)
            out[i * rows->k + c] = mt_bf16_rounded(row[c]);
    }
}

size_t mt_b_scratch_bytes_portable(size_t k)
{
    return BLOCK * k * sizeof(float);
}

/* Row j without its block scales. 0x7f and 0xff are NaN here, unlike in MXFP8. */
static void fp8_row(float *y, const mt_mat *w, size_t j)
{
    const uint8_t *row = w->w + j * w->stride;
    for (size_t c = 0; c < w->k; c++)
        y[c] = mt_f32_from_fp8(row[c]);
}

static float fp8_dot(const mt_mat *w, size_t j, const float *row, const float *x)
{
    const uint8_t *scales = w->scales + j / w->scale_rows * w->scale_stride;
    float acc = 0.0f;
    for (size_t c = 0; c < w->k; c += FP8_BLOCK) {
        size_t n = w->k - c < FP8_BLOCK ? w->k - c : FP8_BLOCK;
        acc = fmaf(mt_scale_f32(scales, w->scale_type, c / FP8_BLOCK), mt_dot1(row + c, x + c, n), acc);
    }
    return acc;
}

void mt_b_matmul_portable(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows,
                          uint8_t *scratch)
{
    bool fp8 = w->format == MT_FORMAT_FP8;
    const float *x = (const float *)(const void *)rows->data;
    float *wide = (float *)(void *)scratch;
    for (size_t j0 = n0; j0 < n1; j0 += BLOCK) {
        size_t count = n1 - j0 < BLOCK ? n1 - j0 : BLOCK;
        for (size_t j = 0; j < count; j++)
            (fp8 ? fp8_row : mt_row_f32_portable)(wide + j * w->k, w, j0 + j);
        for (size_t i = 0; i < rows->m; i++) {
            for (size_t j = 0; j < count; j++) {
                const float *a = wide + j * w->k, *b = x + i * w->k;
                y[i * ldy + j0 + j] = fp8 ? fp8_dot(w, j0 + j, a, b) : mt_dot1(a, b, w->k);
            }
        }
    }
}
