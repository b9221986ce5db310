/* BFMMLA on packed pairs of rows (R5). A panel of 2 P rows holds [k / 4][P][2][4] bf16: 16 bytes are four consecutive k of two
   rows. For *_bf16.c only. */
#ifndef MT_KERNELS_NEON_BTILE_H
#define MT_KERNELS_NEON_BTILE_H

#include "kernels/neon/lanes.h"

MT_INLINE bfloat16x8_t mt_load_bf16(const void *p)
{
    return vreinterpretq_bf16_u8(vld1q_u8(p));
}

/* Keeps gcc from hoisting all loads of a step above its products, which then spills accumulators. */
#define MT_LOADS_STAY __asm__ volatile("" ::: "memory")

/* k 0..3 and k 4..7 of two rows, from eight k of each */
MT_INLINE bfloat16x8_t mt_pair_low(uint8x16_t a, uint8x16_t b)
{
    return vreinterpretq_bf16_u64(vzip1q_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b)));
}

MT_INLINE bfloat16x8_t mt_pair_high(uint8x16_t a, uint8x16_t b)
{
    return vreinterpretq_bf16_u64(vzip2q_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b)));
}

/* y[2 R][2 C] = (more ? y : 0) + x . w over `steps` fours of k; x is a panel of R pairs, w one of C pairs. */
MT_INLINE void mt_btile(float *y, size_t ldy, const uint8_t *x, const uint8_t *w, size_t steps, bool more, size_t R, size_t C)
{
    float32x4_t acc[6][6];
    MT_UNROLL
    for (size_t r = 0; r < R; r++) {
        MT_UNROLL
        for (size_t c = 0; c < C; c++) {
            const float *at = y + 2 * r * ldy + 2 * c;
            acc[r][c] = more ? vcombine_f32(vld1_f32(at), vld1_f32(at + ldy)) : vdupq_n_f32(0.0f);
        }
    }
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
    MT_UNROLL
    for (size_t r = 0; r < R; r++) {
        MT_UNROLL
        for (size_t c = 0; c < C; c++) {
            float *at = y + 2 * r * ldy + 2 * c;
            vst1_f32(at, vget_low_f32(acc[r][c]));
            vst1_f32(at + ldy, vget_high_f32(acc[r][c]));
        }
    }
}

#endif
