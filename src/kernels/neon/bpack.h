/* Packs rows of BF16, FP8 and MXFP8 weights into panels of bf16 pairs (btile.h). For *_bf16.c only. */
#ifndef MT_KERNELS_NEON_BPACK_H
#define MT_KERNELS_NEON_BPACK_H

#include "kernels/convert.h"
#include "kernels/neon/btile.h"

enum { MT_PANEL_ROWS = 12 };

typedef struct mt_panel_row {
    const uint8_t *w, *scales;
} mt_panel_row;

/* Sixteen k of two rows: four steps of a panel */
typedef struct mt_pair_steps {
    uint8x16_t v[4];
} mt_pair_steps;

typedef struct mt_bf16x16 {
    uint8x16_t v[2];
} mt_bf16x16;

/* E4M3 without NaN (0x7f is 480): exponent and mantissa are moved; subnormals and the first normals come from a
   table. */
MT_INLINE mt_bf16x16 mt_e4m3_bf16(uint8x16_t b, uint8x16_t magnitude)
{
    static const uint8_t low_table[16] = {0x00, 0x00, 0x80, 0xc0, 0x00, 0x20, 0x40, 0x60,
                                          0x80, 0x90, 0xa0, 0xb0, 0xc0, 0xd0, 0xe0, 0xf0};
    static const uint8_t high_table[16] = {0x00, 0x3b, 0x3b, 0x3b, 0x3c, 0x3c, 0x3c, 0x3c,
                                           0x3c, 0x3c, 0x3c, 0x3c, 0x3c, 0x3c, 0x3c, 0x3c};
    uint8x16_t low = vqtbx1q_u8(vshlq_n_u8(b, 4), vld1q_u8(low_table), magnitude);
    uint8x16_t high = vqtbx1q_u8(vsraq_n_u8(vdupq_n_u8(0x3c), magnitude, 4), vld1q_u8(high_table), magnitude);
    high = vbslq_u8(vdupq_n_u8(0x80), b, high);
    return (mt_bf16x16){{vzip1q_u8(low, high), vzip2q_u8(low, high)}};
}

MT_INLINE uint8x16_t mt_e4m3_magnitude(uint8x16_t b)
{
    return vandq_u8(b, vdupq_n_u8(0x7f));
}

/* Four bytes of one row, four of the other, and so on. */
MT_INLINE void mt_interleave(uint8x16_t out[2], uint8x16_t a, uint8x16_t b)
{
    out[0] = vreinterpretq_u8_u32(vzip1q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
    out[1] = vreinterpretq_u8_u32(vzip2q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
}

/* Without NaN; the largest magnitude goes to *top: where that is 0x7f, mt_fp8_nan must follow. */
MT_INLINE mt_pair_steps mt_fp8_steps(uint8x16_t a, uint8x16_t b, uint8x16_t *top)
{
    mt_pair_steps y;
    uint8x16_t mixed[2];
    mt_interleave(mixed, a, b);
    MT_UNROLL
    for (int i = 0; i < 2; i++) {
        uint8x16_t magnitude = mt_e4m3_magnitude(mixed[i]);
        mt_bf16x16 x = mt_e4m3_bf16(mixed[i], magnitude);
        *top = vmaxq_u8(*top, magnitude);
        y.v[2 * i] = x.v[0];
        y.v[2 * i + 1] = x.v[1];
    }
    return y;
}

/* Replaces 480 by NaN in `bytes` bytes of a panel. */
static inline void mt_fp8_nan(uint8_t *panel, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 16) {
        uint16x8_t h = vreinterpretq_u16_u8(vld1q_u8(panel + i)), magnitude = vandq_u16(h, vdupq_n_u16(0x7fff));
        vst1q_u8(panel + i, vreinterpretq_u8_u16(vorrq_u16(h, vceqq_u16(magnitude, vdupq_n_u16(0x43f0)))));
    }
}

/* Multiplies by 2^(scale - 127), for each row: exact while exponents stay normal; BFMMLA treats subnormals as zero. */
MT_INLINE mt_pair_steps mt_mxfp8_steps(uint8x16_t a, uint8x16_t b, uint8_t scale_a, uint8_t scale_b)
{
    mt_pair_steps y;
    uint8x16_t mixed[2];
    mt_interleave(mixed, a, b);
    bool normal = scale_a >= 10 && scale_a <= 246 && scale_b >= 10 && scale_b <= 246;
    uint16x8_t shift =
        vcombine_u16(vdup_n_u16((uint16_t)((scale_a - 127) * 128)), vdup_n_u16((uint16_t)((scale_b - 127) * 128)));
    float factor_a = mt_f32_from_e8m0(scale_a), factor_b = mt_f32_from_e8m0(scale_b);
    MT_UNROLL
    for (int i = 0; i < 4; i++) {
        uint16x8_t h = vreinterpretq_u16_u8(mt_e4m3_bf16(mixed[i / 2], mt_e4m3_magnitude(mixed[i / 2])).v[i % 2]);
        if (normal) {
            uint16x8_t nonzero = vtstq_u16(h, vdupq_n_u16(0x7fff));
            y.v[i] = vreinterpretq_u8_u16(vaddq_u16(h, vandq_u16(shift, nonzero)));
            continue;
        }
        float32x4_t first = vmulq_n_f32(vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(h), 16)), factor_a);
        float32x4_t second = vmulq_n_f32(vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(h), 16)), factor_b);
        y.v[i] = vreinterpretq_u8_bf16(vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(first), second));
    }
    return y;
}

MT_INLINE mt_pair_steps mt_bf16_steps(const uint8_t *a, const uint8_t *b)
{
    mt_pair_steps y;
    MT_UNROLL
    for (int i = 0; i < 2; i++) {
        uint8x16_t first = vld1q_u8(a + 16 * i), second = vld1q_u8(b + 16 * i);
        y.v[2 * i] = vreinterpretq_u8_bf16(mt_pair_low(first, second));
        y.v[2 * i + 1] = vreinterpretq_u8_bf16(mt_pair_high(first, second));
    }
    return y;
}

/* Columns k .. k + 15 of two rows; where `left` is less, only so many exist. */
MT_INLINE mt_pair_steps mt_weight_steps(mt_panel_row a, mt_panel_row b, size_t k, size_t left, mt_format format,
                                        uint8x16_t *top)
{
    size_t size = format == MT_FORMAT_BF16 ? 2 : 1;
    const uint8_t *x = a.w + size * k, *y = b.w + size * k;
    uint8_t padded[2][32];
    if (left < 16) {
        memset(padded, 0, sizeof(padded));
        x = memcpy(padded[0], x, size * left);
        y = memcpy(padded[1], y, size * left);
    }
    if (format == MT_FORMAT_BF16)
        return mt_bf16_steps(x, y);
    if (format == MT_FORMAT_FP8)
        return mt_fp8_steps(vld1q_u8(x), vld1q_u8(y), top);
    return mt_mxfp8_steps(vld1q_u8(x), vld1q_u8(y), a.scales[k / 32], b.scales[k / 32]);
}

MT_INLINE void mt_panel_block(uint8_t *panel, const mt_panel_row *row, size_t pairs, size_t k, size_t left,
                              mt_format format, uint8x16_t *top)
{
    MT_UNROLL
    for (size_t p = 0; p < pairs; p++, panel += 16) {
        mt_pair_steps x = mt_weight_steps(row[2 * p], row[2 * p + 1], k, left, format, top);
        MT_UNROLL
        for (size_t i = 0; i < 4; i++)
            vst1q_u8(panel + i * 16 * pairs, x.v[i]);
    }
}

MT_INLINE void mt_panel_format(uint8_t *panel, const mt_panel_row *row, size_t pairs, size_t k0, size_t k1, size_t k,
                               mt_format format)
{
    size_t whole = k / 16 * 16 < k1 ? k / 16 * 16 : k1;
    uint8x16_t top = vdupq_n_u8(0);
    uint8_t *out = panel;
    for (size_t i = k0; i < whole; i += 16, out += 64 * pairs)
        mt_panel_block(out, row, pairs, i, 16, format, &top);
    if (whole < k1)
        mt_panel_block(out, row, pairs, whole, k - whole, format, &top);
    if (format == MT_FORMAT_FP8 && vmaxvq_u8(top) == 0x7f)
        mt_fp8_nan(panel, (k1 - k0) * 4 * pairs);
}

/* Packs rows j .. j + count - 1, columns k0 .. k1 - 1 (a multiple of 16), as a panel of 4 or 6 pairs; missing rows
   repeat the last, missing columns are zero. */
static inline void mt_panel(uint8_t *panel, const mt_mat *w, size_t j, size_t count, size_t pairs, size_t k0, size_t k1)
{
    mt_panel_row row[MT_PANEL_ROWS];
    for (size_t i = 0; i < 2 * pairs; i++) {
        size_t r = j + (i < count ? i : count - 1);
        row[i] = (mt_panel_row){w->w + r * w->stride, w->scales ? w->scales + r * w->scale_stride : NULL};
    }
    switch (w->format) {
#define MT_PANEL(f)                                      \
    if (pairs == 6)                                      \
        mt_panel_format(panel, row, 6, k0, k1, w->k, f); \
    else                                                 \
        mt_panel_format(panel, row, 4, k0, k1, w->k, f); \
    break
    case MT_FORMAT_FP8: MT_PANEL(MT_FORMAT_FP8);
    case MT_FORMAT_MXFP8: MT_PANEL(MT_FORMAT_MXFP8);
    default: MT_PANEL(MT_FORMAT_BF16);
#undef MT_PANEL
    }
}

#endif
