/* R3: activations to int8, 32 at a time, in the order of qload.h. */
#ifndef MT_KERNELS_NEON_QQUANT_H
#define MT_KERNELS_NEON_QQUANT_H

#include <float.h>

#include "kernels/neon/qload.h"

/* FMAX and FMAXV carry NaN */
static inline float mt_max_abs(const float *x, size_t n)
{
    float32x4_t m[4];
    for (int i = 0; i < 4; i++)
        m[i] = vdupq_n_f32(0.0f);
    for (size_t i = 0; i < n; i += 16)
        MT_UNROLL
    for (size_t j = 0; j < 4; j++)
        m[j] = vmaxq_f32(m[j], vabsq_f32(vld1q_f32(x + i + 4 * j)));
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(m[0], m[1]), vmaxq_f32(m[2], m[3])));
}

/* FCVTNS makes 0 of NaN, which is what infinity times a factor of 0 gives */
MT_INLINE int8x16_t mt_quantise16(const float *x, float factor)
{
    int16x4_t h[4];
    MT_UNROLL
    for (size_t j = 0; j < 4; j++)
        h[j] = vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * j), factor)));
    return vcombine_s8(vmovn_s16(vcombine_s16(h[0], h[1])), vmovn_s16(vcombine_s16(h[2], h[3])));
}

/* Where a row's numbers per group go: the scale (`step` floats apart; twice, two floats apart, where a matrix
   product wants it so), the scale times the sum of q, and the sum itself unless it is NULL. */
typedef struct mt_qsums {
    float *xs, *sx;
    int32_t *sum;
    size_t step;
    bool twice;
} mt_qsums;

static inline void mt_qsums_put(const mt_qsums *s, size_t g, float xs, int32_t sum)
{
    s->xs[g * s->step] = xs;
    if (s->twice)
        s->xs[g * s->step + 2] = xs;
    s->sx[g] = xs * (float)sum;
    if (s->sum)
        s->sum[g] = sum;
}

typedef void mt_qemit(int8_t *at, size_t stride, mt_paired p);

/* Quantises k elements (a multiple of 16). Each 32 are handed to emit at q, q + block, ... */
MT_INLINE void mt_quantise_row(const float *x, size_t k, size_t group, const mt_qsums *sums, int8_t *q, size_t block,
                               size_t stride, mt_qemit *emit)
{
    size_t span = group < 32 ? 32 : group;
    for (size_t i = 0; i < k; i += span) {
        float padded[32] = {0};
        const float *from = x + i;
        if (k - i < span) { /* half a block of two groups of 16 */
            memcpy(padded, from, 16 * sizeof *from);
            from = padded;
        }
        float amax = mt_max_abs(from, span), xs = amax / 127.0f, factor = 127.0f / amax;
        factor = factor <= FLT_MAX ? factor : 0.0f;
        int32_t sum = 0;
        for (size_t j = 0; j < span; j += 32, q += block) {
            int8x16_t a = mt_quantise16(from + j, factor), b = mt_quantise16(from + j + 16, factor);
            emit(q, stride, (mt_paired){vuzp1q_s8(a, b), vuzp2q_s8(a, b)});
            int32_t sum_a = vaddlvq_s8(a), sum_b = vaddlvq_s8(b);
            sum += sum_a + sum_b;
            if (group == 16) {
                mt_qsums_put(sums, i / 16, xs, sum_a);
                if (k - i > 16)
                    mt_qsums_put(sums, i / 16 + 1, xs, sum_b);
            }
        }
        if (group >= 32)
            mt_qsums_put(sums, i / group, xs, sum);
    }
}

#endif
