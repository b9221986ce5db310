/* Rows of BF16, FP8 and MXFP8 weights into panels of bf16 pairs (btile.h). For *_bf16.c only. */
#ifndef MT_KERNELS_NEON_BPACK_H
#define MT_KERNELS_NEON_BPACK_H

#include "kernels/convert.h"
#include "kernels/neon/btile.h"

enum { MT_PANEL_ROWS = 12 };

typedef struct mt_bf16x16 {
    uint8x16_t v[2];
} mt_bf16x16;

/* E4M3 without NaN (0x7f is 480): exponent and mantissa moved, subnormals and the first normals by table. */
MT_INLINE mt_bf16x16 mt_e4m3_bf16(uint8x16_t b)
{
    static const uint8_t low_table[16] = {0x00, 0x00, 0x80, 0xc0, 0x00, 0x20, 0x40, 0x60, 0x80, 0x90, 0xa0, 0xb0, 0xc0, 0xd0, 0xe0, 0xf0};
    static const uint8_t high_table[16] = {0x00, 0x3b, 0x3b, 0x3b, 0x3c, 0x3c, 0x3c, 0x3c, 0x3c, 0x3c, 0x3c, 0x3c, 0x3c, 0x3c, 0x3c, 0x3c};
    uint8x16_t magnitude = vandq_u8(b, vdupq_n_u8(0x7f));
    uint8x16_t low = vqtbx1q_u8(vshlq_n_u8(b, 4), vld1q_u8(low_table), magnitude);
    uint8x16_t high = vaddq_u8(vshrq_n_u8(magnitude, 4), vdupq_n_u8(0x3c));
    high = vqtbx1q_u8(high, vld1q_u8(high_table), magnitude);
    high = vbslq_u8(vdupq_n_u8(0x80), b, high);
    return (mt_bf16x16){{vzip1q_u8(low, high), vzip2q_u8(low, high)}};
}

/* 0x7f and 0xff are NaN */
MT_INLINE mt_bf16x16 mt_fp8_bf16(uint8x16_t b)
{
    uint8x16_t nan = vceqq_u8(vandq_u8(b, vdupq_n_u8(0x7f)), vdupq_n_u8(0x7f));
    mt_bf16x16 y = mt_e4m3_bf16(b);
    y.v[0] = vorrq_u8(y.v[0], vzip1q_u8(nan, nan));
    y.v[1] = vorrq_u8(y.v[1], vzip2q_u8(nan, nan));
    return y;
}

/* Exact while exponents stay normal; BFMMLA takes subnormals as zero. */
MT_INLINE mt_bf16x16 mt_mxfp8_bf16(uint8x16_t b, uint8_t scale)
{
    mt_bf16x16 y = mt_e4m3_bf16(b);
    if (scale >= 10 && scale <= 246) {
        uint16x8_t shift = vdupq_n_u16((uint16_t)((scale - 127) << 7));
        MT_UNROLL
        for (int i = 0; i < 2; i++) {
            uint16x8_t h = vreinterpretq_u16_u8(y.v[i]), nonzero = vtstq_u16(h, vdupq_n_u16(0x7fff));
            y.v[i] = vreinterpretq_u8_u16(vaddq_u16(h, vandq_u16(shift, nonzero)));
        }
        return y;
    }
    float factor = mt_f32_from_e8m0(scale);
    MT_UNROLL
    for (int i = 0; i < 2; i++) {
        uint16x8_t h = vreinterpretq_u16_u8(y.v[i]);
        float32x4_t low = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(h), 16));
        float32x4_t high = vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(h), 16));
        bfloat16x8_t out = vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(vmulq_n_f32(low, factor)), vmulq_n_f32(high, factor));
        y.v[i] = vreinterpretq_u8_bf16(out);
    }
    return y;
}

typedef struct mt_panel_row {
    const uint8_t *w, *scales;
} mt_panel_row;

/* 16 elements from column k; only `left` of them exist where that is less */
MT_INLINE mt_bf16x16 mt_weights_bf16(mt_panel_row row, size_t k, size_t left, mt_format format)
{
    size_t size = format == MT_FORMAT_BF16 ? 2 : 1;
    const uint8_t *p = row.w + size * k;
    uint8_t padded[32];
    if (left < 16) {
        memset(padded, 0, sizeof padded);
        p = memcpy(padded, p, size * left);
    }
    if (format == MT_FORMAT_BF16)
        return (mt_bf16x16){{vld1q_u8(p), vld1q_u8(p + 16)}};
    return format == MT_FORMAT_FP8 ? mt_fp8_bf16(vld1q_u8(p)) : mt_mxfp8_bf16(vld1q_u8(p), row.scales[k / 32]);
}

MT_INLINE void mt_panel_block(uint8_t *panel, const mt_panel_row *row, size_t pairs, size_t k, size_t left, mt_format format)
{
    for (size_t p = 0; p < pairs; p++, panel += 16) {
        mt_bf16x16 x = mt_weights_bf16(row[2 * p], k, left, format), y = mt_weights_bf16(row[2 * p + 1], k, left, format);
        MT_UNROLL
        for (size_t i = 0; i < 2; i++) {
            vst1q_u8(panel + 2 * i * 16 * pairs, vreinterpretq_u8_bf16(mt_pair_low(x.v[i], y.v[i])));
            vst1q_u8(panel + (2 * i + 1) * 16 * pairs, vreinterpretq_u8_bf16(mt_pair_high(x.v[i], y.v[i])));
        }
    }
}

MT_INLINE void mt_panel_format(uint8_t *panel, const mt_panel_row *row, size_t pairs, size_t k0, size_t k1, size_t k, mt_format format)
{
    size_t whole = k / 16 * 16 < k1 ? k / 16 * 16 : k1;
    for (; k0 < whole; k0 += 16, panel += 64 * pairs)
        mt_panel_block(panel, row, pairs, k0, 16, format);
    if (k0 < k1)
        mt_panel_block(panel, row, pairs, k0, k - k0, format);
}

/* Rows j .. j + count - 1, columns k0 .. k1 - 1 (a multiple of 16 of them), as a panel of `pairs` pairs; missing rows
   repeat the last, missing columns are zero. */
static inline void mt_panel(uint8_t *panel, const mt_mat *w, size_t j, size_t count, size_t pairs, size_t k0, size_t k1)
{
    mt_panel_row row[MT_PANEL_ROWS];
    for (size_t i = 0; i < 2 * pairs; i++) {
        size_t r = j + (i < count ? i : count - 1);
        row[i] = (mt_panel_row){w->w + r * w->stride, w->scales ? w->scales + r * w->scale_stride : NULL};
    }
    switch (w->format) {
    case MT_FORMAT_FP8: mt_panel_format(panel, row, pairs, k0, k1, w->k, MT_FORMAT_FP8); break;
    case MT_FORMAT_MXFP8: mt_panel_format(panel, row, pairs, k0, k1, w->k, MT_FORMAT_MXFP8); break;
    default: mt_panel_format(panel, row, pairs, k0, k1, w->k, MT_FORMAT_BF16); break;
    }
}

#endif
