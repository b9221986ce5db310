/* BFMMLA on packed pairs of rows (R5 of docs/numerics.md). A panel of 2 P rows is [k / 4][P][2][4] bf16: 16 bytes are
   four consecutive k of two rows. For *_bf16.c only.

   On Neoverse V1 BFMMLA is up to twice as fast with operands that were loaded as with results of another vector
   instruction: panels that are used more than once go through memory. */
#ifndef MT_KERNELS_NEON_BTILE_H
#define MT_KERNELS_NEON_BTILE_H

#include "kernels/neon/lanes.h"

enum { MT_IN_PLACE = 4 }; /* pairs of rows read in place at once */

MT_INLINE bfloat16x8_t mt_load_bf16(const void *p)
{
    return vreinterpretq_bf16_u8(vld1q_u8(p));
}

/* Keeps gcc from moving all loads of a step before its products, which would spill accumulators. */
#define MT_LOADS_STAY __asm__ volatile("" ::: "memory")

/* k 0..3, and k 4..7, of two rows, from eight k of each. */
MT_INLINE bfloat16x8_t mt_pair_low(uint8x16_t a, uint8x16_t b)
{
    return vreinterpretq_bf16_u64(vzip1q_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b)));
}

MT_INLINE bfloat16x8_t mt_pair_high(uint8x16_t a, uint8x16_t b)
{
    return vreinterpretq_bf16_u64(vzip2q_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b)));
}

/* Multiplies eight k of a panel of R pairs with 2 MT_IN_PLACE rows read in place, `at` bytes from each row[]. */
MT_INLINE void mt_btile_eight(float32x4_t acc[][MT_IN_PLACE], const uint8_t *x, const uint8_t *const *row, size_t at,
                              size_t R)
{
    bfloat16x8_t low[4], high[4];
    MT_UNROLL
    for (size_t r = 0; r < R; r++) {
        low[r] = mt_load_bf16(x + 16 * r);
        high[r] = mt_load_bf16(x + 16 * (R + r));
    }
    MT_UNROLL
    for (size_t c = 0; c < MT_IN_PLACE; c++) {
        uint8x16_t a = vld1q_u8(row[2 * c] + at), b = vld1q_u8(row[2 * c + 1] + at);
        if (R > 1)
            MT_LOADS_STAY;
        MT_UNROLL
        for (size_t r = 0; r < R; r++)
            acc[r][c] = vbfmmlaq_f32(acc[r][c], low[r], mt_pair_low(a, b));
        MT_UNROLL
        for (size_t r = 0; r < R; r++)
            acc[r][c] = vbfmmlaq_f32(acc[r][c], high[r], mt_pair_high(a, b));
    }
}

/* y[2 R][2 C] = acc; C is even */
#define MT_BTILE_STORE(y, ldy, acc, R, C)                                                                    \
    MT_UNROLL                                                                                                \
    for (size_t r = 0; r < (R); r++) {                                                                       \
        MT_UNROLL                                                                                            \
        for (size_t c = 0; c < (C); c += 2) {                                                                \
            float *at = (y) + 2 * r * (ldy) + 2 * c;                                                         \
            vst1q_f32(at, vcombine_f32(vget_low_f32((acc)[r][c]), vget_low_f32((acc)[r][c + 1])));           \
            vst1q_f32(at + (ldy), vcombine_f32(vget_high_f32((acc)[r][c]), vget_high_f32((acc)[r][c + 1]))); \
        }                                                                                                    \
    }

/* y[2 R][2 C] = (more ? y : 0) + x . w over `steps` fours of k; x is a panel of R pairs, w one of C (even) pairs. */
MT_INLINE void mt_btile(float *y, size_t ldy, const uint8_t *x, const uint8_t *w, size_t steps, bool more, size_t R,
                        size_t C)
{
    float32x4_t acc[6][8];
    MT_UNROLL
    for (size_t r = 0; r < R; r++) {
        MT_UNROLL
        for (size_t c = 0; c < C; c += 2) {
            const float *at = y + 2 * r * ldy + 2 * c;
            float32x4_t first = more ? vld1q_f32(at) : vdupq_n_f32(0.0f), second = more ? vld1q_f32(at + ldy) : first;
            acc[r][c] = vcombine_f32(vget_low_f32(first), vget_low_f32(second));
            acc[r][c + 1] = vcombine_f32(vget_high_f32(first), vget_high_f32(second));
        }
    }
    MT_UNROLL_TWICE
    for (size_t s = 0; s < steps; s++, x += 16 * R, w += 16 * C) {
        bfloat16x8_t a[6];
        MT_UNROLL
        for (size_t r = 0; r < R; r++)
            a[r] = mt_load_bf16(x + 16 * r);
        MT_UNROLL
        for (size_t c = 0; c < C; c++) {
            bfloat16x8_t b = mt_load_bf16(w + 16 * c);
            MT_LOADS_STAY;
            MT_UNROLL
            for (size_t r = 0; r < R; r++)
                acc[r][c] = vbfmmlaq_f32(acc[r][c], a[r], b);
        }
    }
    MT_BTILE_STORE(y, ldy, acc, R, C)
}

#endif
