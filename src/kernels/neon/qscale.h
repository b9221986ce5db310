/* Scales and biases of quantised weights, widened and transposed to [group][column]. */
#ifndef MT_KERNELS_NEON_QSCALE_H
#define MT_KERNELS_NEON_QSCALE_H

#include "kernels/neon/lanes.h"
#include "kernels/unpack.h"

/* Four scales of a row; bf16 is handled below. */
MT_INLINE float32x4_t mt_scale_load4(const uint8_t *p, mt_scale_type type)
{
    if (type == MT_SCALE_F32)
        return vreinterpretq_f32_u8(vld1q_u8(p));
    if (type == MT_SCALE_F16)
        return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
    uint32_t word;
    memcpy(&word, p, sizeof(word));
    uint32x4_t b = vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(word)))));
    if (type == MT_SCALE_E8M0)
        return vreinterpretq_f32_u32(vmaxq_u32(vshlq_n_u32(b, 23), vdupq_n_u32(0x00400000u)));
    float32x4_t x = vreinterpretq_f32_u32(vshlq_n_u32(vandq_u32(b, vdupq_n_u32(0x7f)), 20));
    uint32x4_t sign = vshlq_n_u32(vshrq_n_u32(b, 7), 31);
    return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(vmulq_n_f32(x, 0x1p120f)), sign));
}

/* Scales g .. g+3 of a row that share an f16; g % 4 == 0 */
MT_INLINE float32x4_t mt_scale_shared4(const uint8_t *row, size_t g, mt_scale_type type)
{
    const size_t together = mt_scale_together(type);
    const uint8_t *record = row + g / together * mt_scale_size(type);
    mt_f16 half;
    uint32_t word;
    memcpy(&half, record, sizeof(half));
    memcpy(&word, record + 2 + g % together, sizeof(word));
    const int16x8_t wide = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(word)));
    return vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide))), mt_f32_from_f16(half));
}

typedef struct mt_f32x4x4 {
    float32x4_t v[4];
} mt_f32x4x4;

MT_INLINE mt_f32x4x4 mt_transpose4(mt_f32x4x4 m)
{
    float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(m.v[0], m.v[1])),
                b = vreinterpretq_f64_f32(vtrn2q_f32(m.v[0], m.v[1]));
    float64x2_t c = vreinterpretq_f64_f32(vtrn1q_f32(m.v[2], m.v[3])),
                d = vreinterpretq_f64_f32(vtrn2q_f32(m.v[2], m.v[3]));
    return (mt_f32x4x4){{vreinterpretq_f32_f64(vtrn1q_f64(a, c)), vreinterpretq_f32_f64(vtrn1q_f64(b, d)),
                         vreinterpretq_f32_f64(vtrn2q_f64(a, c)), vreinterpretq_f32_f64(vtrn2q_f64(b, d))}};
}

/* The scales (or biases) of four columns */
typedef struct mt_scale_rows {
    const uint8_t *row[4];
    mt_scale_type type;
    bool e2m1;
    float global;
} mt_scale_rows;

/* Columns from j on; beyond the last, the last one is repeated. */
MT_INLINE mt_scale_rows mt_scale_rows_of(const mt_mat *w, const uint8_t *base, size_t j, size_t last)
{
#define MT_ROW(c) base + (j + (c) < last ? j + (c) : last) * w->scale_stride
    return (mt_scale_rows){.row = {MT_ROW(0), MT_ROW(1), MT_ROW(2), MT_ROW(3)},
                           .type = w->scale_type,
                           .e2m1 = mt_formats[w->format].halved,
                           .global = mt_formats[w->format].global ? w->global : 1.0f};
#undef MT_ROW
}

/* bf16 values are transposed before they are widened. */
MT_INLINE mt_f32x4x4 mt_scale_block_bf16(const uint8_t *const row[4], size_t g)
{
    uint16x8_t v[4];
    const uint16x8_t zero = vdupq_n_u16(0);
    MT_UNROLL
    for (int c = 0; c < 4; c++)
        v[c] = vcombine_u16(vreinterpret_u16_u8(vld1_u8(row[c] + 2 * g)), vdup_n_u16(0));
    uint16x8_t even = vzip1q_u16(v[0], v[2]), odd = vzip1q_u16(v[1], v[3]);
    uint16x8_t low = vzip1q_u16(even, odd), high = vzip2q_u16(even, odd);
    return (mt_f32x4x4){{vreinterpretq_f32_u16(vzip1q_u16(zero, low)), vreinterpretq_f32_u16(vzip2q_u16(zero, low)),
                         vreinterpretq_f32_u16(vzip1q_u16(zero, high)), vreinterpretq_f32_u16(vzip2q_u16(zero, high))}};
}

/* Groups g .. g+3 as [group][column] */
MT_INLINE mt_f32x4x4 mt_scale_block(const mt_scale_rows *s, size_t g, mt_scale_type type)
{
    mt_f32x4x4 m;
    if (type == MT_SCALE_BF16)
        return mt_scale_block_bf16(s->row, g);
    MT_UNROLL
    for (int c = 0; c < 4; c++) {
        if (mt_scale_together(type) > 1)
            m.v[c] = mt_scale_shared4(s->row[c], g, type);
        else
            m.v[c] = mt_scale_load4(s->row[c] + g * mt_scale_size(type), type);
        if (type == MT_SCALE_E8M0 || type == MT_SCALE_E4M3)
            m.v[c] = vmulq_n_f32(vmulq_n_f32(m.v[c], 0.5f), s->global);
    }
    return mt_transpose4(m);
}

/* One group: [column] */
static inline float32x4_t mt_scale_one(const mt_scale_rows *s, size_t g)
{
    float v[4];
    for (int c = 0; c < 4; c++) {
        v[c] = mt_scale_f32(s->row[c], s->type, g);
        if (s->e2m1)
            v[c] = 0.5f * v[c] * s->global;
    }
    return vld1q_f32(v);
}

/* Stores one group's four columns; twice: as two pairs [0 0 1 1] [2 2 3 3]. */
MT_INLINE void mt_scale_store(float *out, float32x4_t v, bool twice)
{
    vst1q_f32(out, twice ? vzip1q_f32(v, v) : v);
    if (twice)
        vst1q_f32(out + 4, vzip2q_f32(v, v));
}

MT_INLINE void mt_scales_typed(float *out, size_t stride, const mt_scale_rows *s, size_t g0, size_t g1, bool twice,
                               mt_scale_type type)
{
    size_t g = g0;
    for (; g + 4 <= g1; g += 4) {
        mt_f32x4x4 m = mt_scale_block(s, g, type);
        MT_UNROLL
        for (size_t i = 0; i < 4; i++)
            mt_scale_store(out + (g - g0 + i) * stride, m.v[i], twice);
    }
    for (; g < g1; g++)
        mt_scale_store(out + (g - g0) * stride, mt_scale_one(s, g), twice);
}

/* Writes groups [g0, g1) to out, `stride` floats apart. */
MT_INLINE void mt_scales_write(float *out, size_t stride, const mt_scale_rows *s, size_t g0, size_t g1, bool twice)
{
    switch (s->type) {
    case MT_SCALE_F32: mt_scales_typed(out, stride, s, g0, g1, twice, MT_SCALE_F32); break;
    case MT_SCALE_F16: mt_scales_typed(out, stride, s, g0, g1, twice, MT_SCALE_F16); break;
    case MT_SCALE_BF16: mt_scales_typed(out, stride, s, g0, g1, twice, MT_SCALE_BF16); break;
    case MT_SCALE_E8M0: mt_scales_typed(out, stride, s, g0, g1, twice, MT_SCALE_E8M0); break;
    case MT_SCALE_E4M3: mt_scales_typed(out, stride, s, g0, g1, twice, MT_SCALE_E4M3); break;
    case MT_SCALE_8_OF_F16: mt_scales_typed(out, stride, s, g0, g1, twice, MT_SCALE_8_OF_F16); break;
    case MT_SCALE_16_OF_F16: mt_scales_typed(out, stride, s, g0, g1, twice, MT_SCALE_16_OF_F16); break;
    case MT_SCALE_NONE: break;
    }
}

#endif
