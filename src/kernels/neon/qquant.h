/* Quantises activations to int8 (R3 of docs/numerics.md), 32 at a time, in the order of qload.h. */
#ifndef MT_KERNELS_NEON_QQUANT_H
#define MT_KERNELS_NEON_QQUANT_H

#include "kernels/block.h"
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

/* A block as integers in plain order, and its scale. */
typedef struct mt_quantised {
    int8x16_t low, high;
    float xs;
} mt_quantised;

/* R6 over 32 products */
MT_INLINE float mt_fold32(const float32x4_t x[8], const float32x4_t y[8])
{
    float32x4_t lane[4];
    MT_UNROLL
    for (int j = 0; j < 4; j++)
        lane[j] = vfmaq_f32(vmulq_f32(x[j], y[j]), x[j + 4], y[j + 4]);
    const float32x4_t v = vaddq_f32(vaddq_f32(lane[0], lane[2]), vaddq_f32(lane[1], lane[3]));
    const float32x2_t half = vadd_f32(vget_low_f32(v), vget_high_f32(v));
    return vget_lane_f32(half, 0) + vget_lane_f32(half, 1);
}

/* FCVTNS turns NaN into 0, which also infinity times a factor of 0 gives. */
MT_INLINE mt_quantised mt_quantise32(const float *from, float least)
{
    const mt_block b = mt_block_of(mt_max_abs(from, MT_BLOCK), least);
    float32x4_t x[8], y[8];
    int16x4_t h[8];
    MT_UNROLL
    for (int j = 0; j < 8; j++) {
        x[j] = vld1q_f32(from + 4 * j);
        y[j] = vrndnq_f32(vmulq_n_f32(x[j], b.factor));
        h[j] = vmovn_s32(vcvtnq_s32_f32(y[j]));
    }
    return (mt_quantised){.low = vcombine_s8(vmovn_s16(vcombine_s16(h[0], h[1])), vmovn_s16(vcombine_s16(h[2], h[3]))),
                          .high = vcombine_s8(vmovn_s16(vcombine_s16(h[4], h[5])), vmovn_s16(vcombine_s16(h[6], h[7]))),
                          .xs = mt_block_fit(b, mt_fold32(x, y), mt_fold32(y, y))};
}

/* Where the numbers of a row go: the turn of each unit's sum (block.h), mul and add, `step` floats apart (where twice,
   each is stored twice, two floats apart, as matrix instructions want it); the sum of q, unless that is NULL; and for
   each group the sum over its units of scale times sum. */
typedef struct mt_qsums {
    float *mul, *add, *sx;
    int32_t *sum;
    size_t step;
    bool twice, wide; /* wide: as in mt_rows */
} mt_qsums;

static inline void mt_qsums_put(const mt_qsums *s, size_t u, mt_turn t)
{
    s->mul[u * s->step] = t.mul;
    s->add[u * s->step] = t.add;
    if (s->twice) {
        s->mul[u * s->step + 2] = t.mul;
        s->add[u * s->step + 2] = t.add;
    }
}

typedef void mt_qemit(int8_t *at, size_t stride, mt_paired p);

/* Half a block: of two groups of 16, or of one at the row's end. */
static inline void mt_qsums_half(const mt_qsums *s, size_t u, float xs, int32_t sum)
{
    mt_qsums_put(s, u, mt_turn_end(xs));
    s->sx[u] = xs * (float)sum;
    if (s->sum)
        s->sum[u] = sum;
}

/* Quantises k elements (a multiple of 16). Calls emit for each block with q, q + block, ... */
MT_INLINE void mt_quantise_row(const float *x, size_t k, size_t group, const mt_qsums *sums, int8_t *q, size_t block,
                               size_t stride, mt_qemit *emit)
{
    const size_t link = mt_link(group);
    float before = 0.0f, sx = 0.0f;
    for (size_t i = 0, u = 0; i < k; i += MT_BLOCK, u++, q += block) {
        float padded[MT_BLOCK] = {0};
        const float *from = x + i;
        if (k - i < MT_BLOCK)
            from = memcpy(padded, from, 16 * sizeof(*from));
        const mt_quantised is = mt_quantise32(from, u % link ? mt_block_least(before, sums->wide) : 0.0f);
        const int8x16_t a = is.low, b = is.high;
        emit(q, stride, (mt_paired){vuzp1q_s8(a, b), vuzp2q_s8(a, b)});
        const int32_t sum_a = vaddlvq_s8(a), sum_b = vaddlvq_s8(b);
        if (group == 16) {
            mt_qsums_half(sums, 2 * u, is.xs, sum_a);
            if (k - i > 16)
                mt_qsums_half(sums, 2 * u + 1, is.xs, sum_b);
            continue;
        }
        mt_qsums_put(sums, u, mt_turn_end(is.xs));
        if (u % link != 0)
            mt_qsums_put(sums, u - 1, mt_turn_on(before, is.xs));
        if (sums->sum)
            sums->sum[u] = sum_a + sum_b;
        sums->sx[i / group] = sx = fmaf(is.xs, (float)(sum_a + sum_b), i % group ? sx : 0.0f);
        before = is.xs;
    }
}

#endif
