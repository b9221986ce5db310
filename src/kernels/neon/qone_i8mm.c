/* One row against AFFINE weights of 8 bits with bf16 scales: they need no unpacking, so the row is put back in its own
   order instead. Four columns at a time, a quarter of the range apart, so that each is read as one stream. */
#include "kernels/neon/qone.h"

#include "kernels/neon/qload.h"
#include "kernels/neon/qscale.h"

typedef struct columns {
    const uint8_t *w[4], *scales[4], *biases[4];
} columns;

/* a = fma(ws * xs, dot of the next group, a) */
MT_INLINE float32x4_t next_group(float32x4_t a, columns *at, const int8_t *x, float32x4_t ws, float xs, size_t group)
{
    int32x4_t acc[4];
    MT_UNROLL
    for (int c = 0; c < 4; c++)
        acc[c] = mt_zero();
    MT_UNROLL
    for (size_t k = 0; k < group; k += 16) {
        const int8x16_t v = vld1q_s8(x + k);
        MT_UNROLL
        for (int c = 0; c < 4; c++)
            acc[c] = vusdotq_s32(acc[c], vld1q_u8(at->w[c] + k), v);
    }
    MT_UNROLL
    for (int c = 0; c < 4; c++)
        at->w[c] += group;
    const int32x4_t dot = vpaddq_s32(vpaddq_s32(acc[0], acc[1]), vpaddq_s32(acc[2], acc[3]));
    return vfmaq_f32(a, vmulq_n_f32(ws, xs), vcvtq_f32_s32(dot));
}

MT_INLINE float32x4_t one_group(const uint8_t *const row[4], size_t g)
{
    const mt_scale_rows s = {.row = {row[0], row[1], row[2], row[3]}, .type = MT_SCALE_BF16};
    return mt_scale_one(&s, g);
}

MT_INLINE float32x4_t four_columns(columns at, const mt_one *p, const int8_t *x, size_t group)
{
    float32x4_t a = vdupq_n_f32(0.0f), b = vdupq_n_f32(0.0f);
    size_t g = 0;
    for (; g + 4 <= p->groups; g += 4) {
        const mt_f32x4x4 ws = mt_scale_block_bf16(at.scales, g), wb = mt_scale_block_bf16(at.biases, g);
        MT_UNROLL
        for (size_t u = 0; u < 4; u++, x += group) {
            a = next_group(a, &at, x, ws.v[u], p->xs[g + u], group);
            b = vfmaq_n_f32(b, wb.v[u], p->sx[g + u]);
        }
    }
    for (; g < p->groups; g++, x += group) {
        a = next_group(a, &at, x, one_group(at.scales, g), p->xs[g], group);
        b = vfmaq_n_f32(b, one_group(at.biases, g), p->sx[g]);
    }
    return vaddq_f32(a, b);
}

MT_INLINE void multiply(const mt_one *p, const int8_t *x, size_t group)
{
    const mt_mat *w = p->w;
    for (size_t j = p->n0; j < p->n0 + p->step; j++) {
        columns at;
        MT_UNROLL
        for (size_t c = 0; c < 4; c++) {
            const size_t row = j + c * p->step;
            at.w[c] = w->w + row * w->stride;
            at.scales[c] = w->scales + row * w->scale_stride;
            at.biases[c] = w->biases + row * w->scale_stride;
        }
        const float32x4_t v = four_columns(at, p, x, group);
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
    return w->format == MT_FORMAT_AFFINE && w->bits == 8 && w->scale_type == MT_SCALE_BF16;
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
