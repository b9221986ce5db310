/* R6 products of a few rows of W with a few rows of x, four registers a pair. */
#ifndef MT_KERNELS_NEON_FTILE_H
#define MT_KERNELS_NEON_FTILE_H

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

/* row_f32, with the format that matters most in vectors */
static inline void mt_ftile_row(float *y, const mt_mat *w, size_t j)
{
    const uint8_t *p = w->w + j * w->stride;
    if (w->format != MT_FORMAT_BF16 || w->k < 8) {
        mt_row_f32_portable(y, w, j);
        return;
    }
    for (size_t i = 0, at = 0; i < w->k; i += 8) {
        at = i + 8 <= w->k ? i : w->k - 8; /* the last vector overlaps */
        uint16x8_t h = vreinterpretq_u16_u8(vld1q_u8(p + at * sizeof(mt_bf16)));
        vst1q_f32(y + at, vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(h), 16)));
        vst1q_f32(y + at + 4, vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(h), 16)));
    }
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
