/* Products with bf16 rows (R5 of docs/numerics.md) without BFMMLA: activations are rounded to bf16, everything is
   widened to fp32, products by R6. Packed rows are fp32 [m][k]. */
#include <math.h>

#include "kernels/convert.h"
#include "kernels/levels.h"
#include "kernels/neon/ftile.h"

enum { BLOCK = 8, FP8_BLOCK = 128 };

size_t mt_b_scratch_bytes_neon(size_t k)
{
    return BLOCK * k * sizeof(float);
}

/* Row j without its block scales. */
static void fp8_row(float *y, const mt_mat *w, size_t j)
{
    const uint8_t *row = w->w + j * w->stride;
    size_t c = 0;
    for (; c + 8 <= w->k; c += 8) {
        uint8x8_t b = vld1_u8(row + c), nan = vceq_u8(vand_u8(b, vdup_n_u8(0x7f)), vdup_n_u8(0x7f));
        uint16x8_t wide = vshlq_n_u16(vmovl_u8(vand_u8(b, vdup_n_u8(0x7f))), 7);
        uint16x8_t half = vorrq_u16(wide, vshlq_n_u16(vmovl_u8(vand_u8(b, vdup_n_u8(0x80))), 8));
        half =
            vorrq_u16(half, vandq_u16(vreinterpretq_u16_s16(vmovl_s8(vreinterpret_s8_u8(nan))), vdupq_n_u16(0x7fff)));
        float32x4_t low = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(half)));
        float32x4_t high = vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(half)));
        vst1q_f32(y + c, vmulq_n_f32(low, 0x1p8f));
        vst1q_f32(y + c + 4, vmulq_n_f32(high, 0x1p8f));
    }
    for (; c < w->k; c++)
        y[c] = mt_f32_from_fp8(row[c]);
}

/* Blocks of 128 in k, each from zero, then acc = fma(scale, dot, acc). */
static void fp8_tile(mt_ftile *out, const mt_mat *w, size_t j, const float *const *rows, const float *const *x,
                     size_t nr, size_t nc)
{
    const float *a[MT_FTILE_W], *b[MT_FTILE_X];
    mt_ftile part;
    memset(out, 0, sizeof(*out));
    for (size_t k = 0; k < w->k; k += FP8_BLOCK) {
        for (size_t r = 0; r < nr; r++)
            a[r] = rows[r] + k;
        for (size_t c = 0; c < nc; c++)
            b[c] = x[c] + k;
        mt_ftile_dot(&part, a, b, w->k - k < FP8_BLOCK ? w->k - k : FP8_BLOCK, nr, nc);
        for (size_t r = 0; r < nr; r++) {
            const uint8_t *scales = w->scales + (j + r) / w->scale_rows * w->scale_stride;
            float scale = mt_scale_f32(scales, w->scale_type, k / FP8_BLOCK);
            for (size_t c = 0; c < nc; c++)
                out->v[c][r] = fmaf(scale, part.v[c][r], out->v[c][r]);
        }
    }
}

void mt_b_matmul_neon(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows,
                      uint8_t *scratch)
{
    const float *wide[BLOCK], *x[MT_FTILE_X];
    float *buffer = (float *)(void *)scratch;
    bool fp8 = w->format == MT_FORMAT_FP8;
    mt_ftile out;
    for (size_t j0 = n0; j0 < n1; j0 += BLOCK) {
        size_t count = n1 - j0 < BLOCK ? n1 - j0 : BLOCK;
        for (size_t j = 0; j < count; j++) {
            (fp8 ? fp8_row : mt_ftile_row)(buffer + j * w->k, w, j0 + j);
            wide[j] = buffer + j * w->k;
        }
        for (size_t i = 0; i < rows->m; i += MT_FTILE_X) {
            size_t nc = rows->m - i < MT_FTILE_X ? rows->m - i : MT_FTILE_X;
            for (size_t c = 0; c < nc; c++)
                x[c] = (const float *)(const void *)rows->data + (i + c) * w->k;
            for (size_t j = 0; j < count; j += MT_FTILE_W) {
                size_t nr = count - j < MT_FTILE_W ? count - j : MT_FTILE_W;
                if (fp8)
                    fp8_tile(&out, w, j0 + j, wide + j, x, nr, nc);
                else
                    mt_ftile_dot(&out, wide + j, x, w->k, nr, nc);
                for (size_t c = 0; c < nc; c++)
                    memcpy(y + (i + c) * ldy + j0 + j, out.v[c], nr * sizeof(float));
            }
        }
    }
}
