/* Products in fp32 (R6 of docs/numerics.md) of a few rows of W with a few rows of x, four registers a pair. */
#ifndef MT_KERNELS_NEON_FTILE_H
#define MT_KERNELS_NEON_FTILE_H

#include "kernels/convert.h"
#include "kernels/levels.h"
#include "kernels/neon/lanes.h"

enum { MT_FTILE_W = 2, MT_FTILE_X = 3 };

/* out[c][r] = w[r] . x[c] over k elements, r < nr, c < nc */
typedef struct mt_ftile {
    float v[MT_FTILE_X][MT_FTILE_W];
} mt_ftile;

MT_INLINE void mt_ftile_step(mt_lanes4 acc[MT_FTILE_X][MT_FTILE_W], const float *const *w, const float *const *x,
                             size_t i, size_t nr, size_t nc)
{
    MT_UNROLL
    for (size_t q = 0; q < 4; q++) {
        float32x4_t a[MT_FTILE_W];
        MT_UNROLL
        for (size_t r = 0; r < nr; r++)
            a[r] = vld1q_f32(w[r] + i + 4 * q);
        MT_UNROLL
        for (size_t c = 0; c < nc; c++) {
            float32x4_t b = vld1q_f32(x[c] + i + 4 * q);
            MT_UNROLL
            for (size_t r = 0; r < nr; r++)
                acc[c][r].v[q] = vfmaq_f32(acc[c][r].v[q], a[r], b);
        }
    }
}

MT_INLINE void mt_ftile_fixed(mt_ftile *out, const float *const *w, const float *const *x, size_t k, size_t nr,
                              size_t nc)
{
    mt_lanes4 acc[MT_FTILE_X][MT_FTILE_W];
    float tail[MT_FTILE_W + MT_FTILE_X][MT_LANES] = {{0}};
    const float *wt[MT_FTILE_W], *xt[MT_FTILE_X];
    size_t whole = k / MT_LANES * MT_LANES, rest = (k - whole) * sizeof(float);
    for (size_t r = 0; rest && r < nr; r++)
        wt[r] = memcpy(tail[r], w[r] + whole, rest);
    for (size_t c = 0; rest && c < nc; c++)
        xt[c] = memcpy(tail[MT_FTILE_W + c], x[c] + whole, rest);
    MT_UNROLL
    for (size_t c = 0; c < nc; c++) {
        MT_UNROLL
        for (size_t r = 0; r < nr; r++)
            acc[c][r] = mt_lanes4_zero();
    }
    for (size_t i = 0; i < whole; i += MT_LANES)
        mt_ftile_step(acc, w, x, i, nr, nc);
    if (rest)
        mt_ftile_step(acc, wt, xt, 0, nr, nc);
    MT_UNROLL
    for (size_t c = 0; c < nc; c++) {
        MT_UNROLL
        for (size_t r = 0; r < nr; r++)
            out->v[c][r] = mt_lanes4_fold(acc[c][r]);
    }
}

MT_INLINE void mt_ftile_put(float *y, uint8x16_t q, float32x4_t s, float32x4_t b)
{
    const uint16x8_t low = vmovl_u8(vget_low_u8(q)), high = vmovl_u8(vget_high_u8(q));
    vst1q_f32(y, vfmaq_f32(b, s, vcvtq_f32_u32(vmovl_u16(vget_low_u16(low)))));
    vst1q_f32(y + 4, vfmaq_f32(b, s, vcvtq_f32_u32(vmovl_u16(vget_high_u16(low)))));
    vst1q_f32(y + 8, vfmaq_f32(b, s, vcvtq_f32_u32(vmovl_u16(vget_low_u16(high)))));
    vst1q_f32(y + 12, vfmaq_f32(b, s, vcvtq_f32_u32(vmovl_u16(vget_high_u16(high)))));
}

/* AFFINE weights of 4 and 8 bits; all their groups are multiples of 32. */
MT_INLINE void mt_ftile_codes(float *y, const mt_mat *w, size_t j)
{
    const uint8_t *p = w->w + j * w->stride;
    const uint8_t *scales = w->scales + j * w->scale_stride, *biases = w->biases + j * w->scale_stride;
    for (size_t i = 0; i < w->k; i += 32) {
        const float32x4_t s = vdupq_n_f32(mt_scale_f32(scales, w->scale_type, i / w->group));
        const float32x4_t b = vdupq_n_f32(mt_scale_f32(biases, w->scale_type, i / w->group));
        uint8x16_t q[2];
        if (w->bits == 8) {
            q[0] = vld1q_u8(p + i);
            q[1] = vld1q_u8(p + i + 16);
        } else {
            const uint8x16_t both = vld1q_u8(p + i / 2);
            const uint8x16_t even = vandq_u8(both, vdupq_n_u8(15)), odd = vshrq_n_u8(both, 4);
            q[0] = vzip1q_u8(even, odd);
            q[1] = vzip2q_u8(even, odd);
        }
        mt_ftile_put(y + i, q[0], s, b);
        mt_ftile_put(y + i + 16, q[1], s, b);
    }
}

MT_INLINE void mt_ftile_bf16(float *y, const mt_mat *w, size_t j)
{
    const uint8_t *p = w->w + j * w->stride;
    for (size_t i = 0, at = 0; i < w->k; i += 8) {
        at = i + 8 <= w->k ? i : w->k - 8; /* the last vector overlaps */
        uint16x8_t h = vreinterpretq_u16_u8(vld1q_u8(p + at * sizeof(mt_bf16)));
        vst1q_f32(y + at, vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(h), 16)));
        vst1q_f32(y + at + 4, vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(h), 16)));
    }
}

/* Like row_f32, with vectors for the most frequent formats, which routers have. */
static inline void mt_ftile_row(float *y, const mt_mat *w, size_t j)
{
    const bool codes = w->format == MT_FORMAT_AFFINE && (w->bits == 8 || w->bits == 4) && w->group % 32 == 0;
    if (w->format == MT_FORMAT_BF16 && w->k >= 8)
        mt_ftile_bf16(y, w, j);
    else if (codes && w->biases && w->k % w->group == 0)
        mt_ftile_codes(y, w, j);
    else
        mt_row_f32_portable(y, w, j);
}

static inline void mt_ftile_dot(mt_ftile *out, const float *const *w, const float *const *x, size_t k, size_t nr,
                                size_t nc)
{
    switch (nr * 4 + nc) {
    case 2 * 4 + 3: mt_ftile_fixed(out, w, x, k, 2, 3); break;
    case 2 * 4 + 2: mt_ftile_fixed(out, w, x, k, 2, 2); break;
    case 2 * 4 + 1: mt_ftile_fixed(out, w, x, k, 2, 1); break;
    case 1 * 4 + 3: mt_ftile_fixed(out, w, x, k, 1, 3); break;
    case 1 * 4 + 2: mt_ftile_fixed(out, w, x, k, 1, 2); break;
    default: mt_ftile_fixed(out, w, x, k, 1, 1); break;
    }
}

#endif
