/* Widens columns of a row of any weight matrix to fp32. */
#ifndef MT_KERNELS_X86_WIDEN_H
#define MT_KERNELS_X86_WIDEN_H

#include "kernels/unpack.h"
#include "kernels/x86/codes.h"
#include "kernels/x86/simd.h"

#if defined(MT_LEVEL)

MT_INLINE vf mt_halves(const void *p, bool f16)
{
    return f16 ? vf_load_f16(p) : vf_from_bits(vi_sll(vi_load_u16(p), 16));
}

static inline void mt_widen_halves(float *y, const uint8_t *p, size_t n, bool f16)
{
    size_t i = 0;
    for (; i + VL <= n; i += VL)
        vf_store(y + i, mt_halves(p + 2 * i, f16));
    if (i < n) {
        uint16_t padded[VL] = {0};
        memcpy(padded, p + 2 * i, 2 * (n - i));
        vf_store_part(y + i, n - i, mt_halves(padded, f16));
    }
}

/* VL bytes of E4M3; in FP8 the largest code is NaN. By way of f16, whose subnormals cost nothing. */
MT_INLINE vf mt_e4m3(const void *p, bool fp8)
{
    vf x = vf_mul(vf_load_e4m3_as_f16(p), vf_set1(0x1p8f));
    return fp8 ? vf_select(vf_eq(vf_abs(x), vf_set1(480.0f)), vf_set1(NAN), x) : x;
}

/* y = scale * e4m3 */
static inline void mt_widen_bytes(float *y, const uint8_t *p, size_t n, float scale, bool fp8)
{
    size_t i = 0;
    for (; i + VL <= n; i += VL)
        vf_store(y + i, vf_mul(vf_set1(scale), mt_e4m3(p + i, fp8)));
    if (i < n) {
        uint8_t padded[VL] = {0};
        memcpy(padded, p + i, n - i);
        vf_store_part(y + i, n - i, vf_mul(vf_set1(scale), mt_e4m3(padded, fp8)));
    }
}

static inline void mt_widen_scaled(float *y, const mt_mat *w, size_t r, size_t k0, size_t k1)
{
    const bool fp8 = w->format == MT_FORMAT_FP8;
    const uint8_t *p = w->w + r * w->stride, *scales = w->scales + (fp8 ? r / w->scale_rows : r) * w->scale_stride;
    for (size_t k = k0; k < k1; k += w->group) {
        size_t n = k1 - k < w->group ? k1 - k : w->group;
        mt_widen_bytes(y + k - k0, p + k, n, mt_scale_f32(scales, w->scale_type, k / w->group), fp8);
    }
}

/* One group of codes, at most 128, from element k of a row on. Split rows are read 32 at a time, so a group of 16
   may be the second half. */
static inline void mt_widen_group(float *y, const mt_mat *w, const uint8_t *row, size_t k, float scale,
                                  const float *bias)
{
    const bool table = w->bits == 4 && !mt_formats[w->format].biased;
    uint8_t space[128 + MT_CODES], *codes = space;
    if (w->split) {
        mt_codes_join(space, row, row + w->k / 2, k / 32 * 32, w->group < 32 ? 32 : w->group, w->bits, MT_ORDER_PLAIN);
        codes += k % 32;
    } else {
        mt_codes_unpack(codes, row + k * w->bits / 8, w->group, (w->k - k) * w->bits / 8, w->bits, MT_ORDER_PLAIN);
    }
    if (table)
        for (size_t i = 0; i < w->group; i += MT_CODES)
            vi_store(codes + i, vb_shuffle(vb_table(mt_code_table(w->format)), vi_load(codes + i)));
    const vi lift = vi_set1(table ? 0 : mt_code_lift(w));
    for (size_t i = 0; i < w->group; i += VL) {
        vf q = vi_to_f32(vi_sub(table ? vi_load_s8(codes + i) : vi_load_u8(codes + i), lift));
        vf_store(y + i, bias ? vf_fma(vf_set1(scale), q, vf_set1(*bias)) : vf_mul(vf_set1(scale), q));
    }
}

static inline void mt_widen_codes(float *y, const mt_mat *w, size_t r, size_t k0, size_t k1)
{
    const uint8_t *p = w->w + r * w->stride, *scales = w->scales + r * w->scale_stride;
    const uint8_t *biases = w->biases ? w->biases + r * w->scale_stride : NULL;
    for (size_t k = k0; k < k1; k += w->group) {
        size_t g = k / w->group;
        float scale = mt_weight_scale(w, scales, g), bias = biases ? mt_scale_f32(biases, w->scale_type, g) : 0.0f;
        mt_widen_group(y + k - k0, w, p, k, scale, biases ? &bias : NULL);
    }
}

/* y[0..k1-k0) = columns [k0, k1) of row r; k0 is a multiple of the group, k1 too or k */
static inline void mt_widen(float *y, const mt_mat *w, size_t r, size_t k0, size_t k1)
{
    const uint8_t *p = w->w + r * w->stride;
    switch (w->format) {
    case MT_FORMAT_F32: memcpy(y, p + k0 * sizeof(*y), (k1 - k0) * sizeof(*y)); return;
    case MT_FORMAT_F16: mt_widen_halves(y, p + 2 * k0, k1 - k0, true); return;
    case MT_FORMAT_BF16: mt_widen_halves(y, p + 2 * k0, k1 - k0, false); return;
    case MT_FORMAT_FP8:
    case MT_FORMAT_MXFP8: mt_widen_scaled(y, w, r, k0, k1); return;
    default: mt_widen_codes(y, w, r, k0, k1); return;
    }
}

#endif

#endif
