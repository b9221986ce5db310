/* Products of one row with AFFINE weights of 8 bits with bf16 scales, or SIGNED ones with f16 scales (qone.h): these
   need no unpacking, so the row is put back in plain order instead. SIGNED codes are multiplied as they are: what they
   are too large by, times the sum of x, is subtracted where sums of products begin. Four columns at a time, a quarter
   of the range apart, so that each is one stream of reads. */
#include "kernels/neon/qone.h"

#include "kernels/block.h"
#include "kernels/neon/qload.h"
#include "kernels/neon/qscale.h"

typedef struct columns {
    const uint8_t *w[4], *scales[4], *biases[4];
} columns;

/* The turned sums (block.h) of a block, which continue from `sum`. */
MT_INLINE float32x4_t next_block(float32x4_t sum, const columns *at, const mt_one *p, const int8_t *x, size_t k,
                                 size_t u)
{
    const int8x16_t low = vld1q_s8(x + k), high = vld1q_s8(x + k + 16);
    int32x4_t acc[4];
    MT_UNROLL
    for (int c = 0; c < 4; c++) {
        acc[c] = vusdotq_s32(mt_zero(), vld1q_u8(at->w[c] + k), low);
        acc[c] = vusdotq_s32(acc[c], vld1q_u8(at->w[c] + k + 16), high);
    }
    const int32x4_t dot = vpaddq_s32(vpaddq_s32(acc[0], acc[1]), vpaddq_s32(acc[2], acc[3]));
    const float32x4_t all = vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(sum), dot));
    return vfmaq_n_f32(vdupq_n_f32(p->add[u]), all, p->mul[u]);
}

/* a = fma(ws, sum, a) for the links of the next group, whose first block is u */
MT_INLINE float32x4_t next_group(float32x4_t a, columns *at, const mt_one *p, const int8_t *x, float32x4_t ws, size_t u,
                                 size_t group, bool is_signed)
{
    const size_t link = group > MT_BLOCK ? 2 * MT_BLOCK : MT_BLOCK;
    MT_UNROLL
    for (size_t k = 0; k < group; k += link) {
        const int32_t less = is_signed ? 128 * p->sum[u + k / MT_BLOCK] : 0;
        const float32x4_t start = vreinterpretq_f32_s32(vdupq_n_s32(MT_DOT_BITS - less));
        float32x4_t sum = next_block(start, at, p, x, k, u + k / MT_BLOCK);
        if (link > MT_BLOCK)
            sum = next_block(sum, at, p, x, k + MT_BLOCK, u + k / MT_BLOCK + 1);
        a = vfmaq_f32(a, ws, sum);
    }
    MT_UNROLL
    for (int c = 0; c < 4; c++)
        at->w[c] += group;
    return a;
}

MT_INLINE float32x4_t one_group(const uint8_t *const row[4], size_t g)
{
    const mt_scale_rows s = {.row = {row[0], row[1], row[2], row[3]}, .type = MT_SCALE_BF16};
    return mt_scale_one(&s, g);
}

/* SIGNED weights in groups of 32 */
MT_INLINE float32x4_t four_signed(columns at, const mt_one *p, const int8_t *x)
{
    const mt_scale_rows s = {.row = {at.scales[0], at.scales[1], at.scales[2], at.scales[3]}, .type = MT_SCALE_F16};
    float32x4_t a = vdupq_n_f32(0.0f);
    size_t g = 0;
    for (; g + 4 <= p->groups; g += 4) {
        const mt_f32x4x4 ws = mt_scale_block(&s, g, MT_SCALE_F16);
        MT_UNROLL
        for (size_t u = 0; u < 4; u++, x += MT_BLOCK)
            a = next_group(a, &at, p, x, ws.v[u], g + u, MT_BLOCK, true);
    }
    for (; g < p->groups; g++, x += MT_BLOCK)
        a = next_group(a, &at, p, x, mt_scale_one(&s, g), g, MT_BLOCK, true);
    return a;
}

MT_INLINE float32x4_t four_columns(columns at, const mt_one *p, const int8_t *x, size_t group)
{
    float32x4_t a = vdupq_n_f32(0.0f), b = vdupq_n_f32(0.0f);
    size_t g = 0;
    for (; g + 4 <= p->groups; g += 4) {
        const mt_f32x4x4 ws = mt_scale_block_bf16(at.scales, g), wb = mt_scale_block_bf16(at.biases, g);
        MT_UNROLL
        for (size_t u = 0; u < 4; u++, x += group) {
            a = next_group(a, &at, p, x, ws.v[u], (g + u) * group / MT_BLOCK, group, false);
            b = vfmaq_n_f32(b, wb.v[u], p->sx[g + u]);
        }
    }
    for (; g < p->groups; g++, x += group) {
        a = next_group(a, &at, p, x, one_group(at.scales, g), g * group / MT_BLOCK, group, false);
        b = vfmaq_n_f32(b, one_group(at.biases, g), p->sx[g]);
    }
    return vaddq_f32(a, b);
}

MT_INLINE void multiply(const mt_one *p, const int8_t *x, size_t group)
{
    const mt_mat *w = p->w;
    const bool is_signed = w->format == MT_FORMAT_SIGNED;
    for (size_t j = p->n0; j < p->n0 + p->step; j++) {
        columns at;
        MT_UNROLL
        for (size_t c = 0; c < 4; c++) {
            const size_t row = j + c * p->step;
            at.w[c] = w->w + row * w->stride;
            at.scales[c] = w->scales + row * w->scale_stride;
            at.biases[c] = w->biases ? w->biases + row * w->scale_stride : NULL;
        }
        const float32x4_t v = group == MT_BLOCK && is_signed ? four_signed(at, p, x) : four_columns(at, p, x, group);
        vst1q_lane_f32(p->y + j, v, 0);
        vst1q_lane_f32(p->y + j + p->step, v, 1);
        vst1q_lane_f32(p->y + j + 2 * p->step, v, 2);
        vst1q_lane_f32(p->y + j + 3 * p->step, v, 3);
    }
}

static void unpair(int8_t *x, const int8_t *paired, size_t k)
{
    for (size_t i = 0; i < k; i += 32) {
        const int8x16_t even = vld1q_s8(paired + i), odd = vld1q_s8(paired + i + 16);
        vst1q_s8(x + i, vzip1q_s8(even, odd));
        vst1q_s8(x + i + 16, vzip2q_s8(even, odd));
    }
}

bool mt_q_one_handles_i8mm(const mt_mat *w)
{
    const bool is_signed = w->format == MT_FORMAT_SIGNED && w->scale_type == MT_SCALE_F16 && w->group == MT_BLOCK;
    return w->bits == 8 && (is_signed || (w->format == MT_FORMAT_AFFINE && w->scale_type == MT_SCALE_BF16));
}

void mt_q_one_i8mm(const mt_one *p, uint8_t *scratch)
{
    int8_t *x = (int8_t *)scratch;
    unpair(x, p->x, p->w->k);
    switch (p->w->group) {
    case 32: multiply(p, x, 32); break;
    case 64: multiply(p, x, 64); break;
    default: multiply(p, x, 128); break;
    }
}
