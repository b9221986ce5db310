/* Scales (or biases) of the columns of a panel, as fp32 and transposed: 16 bytes of each of VL columns become four
   registers with a column in each element, and these the scales of one group after the other. */
#ifndef MT_KERNELS_X86_QSCALES_H
#define MT_KERNELS_X86_QSCALES_H

#include "kernels/unpack.h"
#include "kernels/x86/simd.h"

#if defined(MT_LEVEL)

/* Where the scales of VL columns lie. */
typedef struct mt_qscales {
    const uint8_t *from[VL];
    size_t readable; /* bytes from each on that may be read */
} mt_qscales;

/* base: w->scales or w->biases */
static inline void mt_qscales_at(mt_qscales *s, const mt_mat *w, const uint8_t *base, const size_t column[VL])
{
    size_t last = 0;
    for (size_t i = 0; i < VL; i++) {
        s->from[i] = base + column[i] * w->scale_stride;
        last = column[i] > last ? column[i] : last;
    }
    s->readable = mt_scale_bytes(w->scale_type, w->k / w->group) + (w->n - 1 - last) * w->scale_stride;
}

/* m[i] = bytes 4 i .. 4 i + 4 from byte `at` of each row on */
static inline void mt_qscales_load(vi m[4], const mt_qscales *s, size_t at)
{
    const uint8_t *copies[VL];
    uint8_t copy[VL][16];
    const bool whole = at + 16 <= s->readable;
    for (size_t i = 0; i < VL && !whole; i++) {
        memset(copy[i], 0, sizeof(copy[i]));
        memcpy(copy[i], s->from[i] + at, s->readable - at);
        copies[i] = copy[i];
    }
    MT_UNROLL
    for (size_t i = 0; i < 4; i++)
        m[i] = whole ? vb_load_each(s->from + i, at) : vb_load_each(copies + i, 0);
    vi_transpose_quarters(m);
}

/* How many scales lie in 16 bytes. */
MT_INLINE size_t mt_qscales_together(mt_scale_type type)
{
    return mt_scale_together(type) > 1 ? mt_scale_together(type) : 16 / mt_scale_size(type);
}

/* Signed byte i of each row's bytes */
MT_INLINE vf mt_qscales_byte(const vi m[4], size_t i)
{
    return vi_to_f32(vi_sra(vi_sll(m[i / 4], 24 - i % 4 * 8), 24));
}

/* Scale i of those in m. E4M3 goes by way of f16, whose subnormals cost nothing. */
MT_INLINE vf mt_qscales_plain(const vi m[4], size_t i, mt_scale_type type)
{
    const vi byte = vi_srl(m[i / 4 % 4], i % 4 * 8), half = vi_srl(m[i / 2 % 4], i % 2 * 16);
    switch (type) {
    case MT_SCALE_F32: return vf_from_bits(m[i % 4]);
    case MT_SCALE_F16: return vf_low_f16(half);
    case MT_SCALE_BF16: return vf_from_bits(vi_sll(half, 16));
    case MT_SCALE_E8M0: return vf_from_bits(vi_max(vi_sll(vi_and(byte, vi_set1(255)), 23), vi_set1(0x00400000)));
    case MT_SCALE_E4M3:
        return vf_mul(vf_low_f16(vi_or(vi_sll(vi_and(byte, vi_set1(128)), 8), vi_sll(vi_and(byte, vi_set1(127)), 7))),
                      vf_set1(0x1p8f));
    case MT_SCALE_8_OF_F16:
    case MT_SCALE_16_OF_F16:
    case MT_SCALE_NONE: break;
    }
    return vf_set1(1.0f);
}

/* y[i * apart] = scales g0 + i of w, up to g1; where scales share an f16, g0 is a multiple of mt_scale_together. */
MT_INLINE void mt_qscales_put(float *y, size_t apart, const mt_qscales *s, const mt_mat *w, size_t g0, size_t g1,
                              mt_scale_type type)
{
    const size_t together = mt_qscales_together(type);
    for (size_t g = g0; g < g1; g += together) {
        const size_t at = mt_scale_together(type) > 1 ? g / together * mt_scale_size(type) : g * mt_scale_size(type);
        vi m[4], first[4];
        vf d = vf_set1(1.0f);
        mt_qscales_load(m, s, type == MT_SCALE_16_OF_F16 ? at + 2 : at);
        if (type == MT_SCALE_16_OF_F16)
            mt_qscales_load(first, s, at);
        if (mt_scale_together(type) > 1)
            d = vf_low_f16(type == MT_SCALE_16_OF_F16 ? first[0] : m[0]);
        MT_UNROLL
        for (size_t i = 0; i < together; i++, y += apart) {
            if (g + i >= g1)
                break;
            vf scale = type == MT_SCALE_16_OF_F16  ? vf_mul(d, mt_qscales_byte(m, i))
                       : type == MT_SCALE_8_OF_F16 ? vf_mul(d, mt_qscales_byte(m, i + 2))
                                                   : mt_qscales_plain(m, i, type);
            if (type == MT_SCALE_E8M0 || type == MT_SCALE_E4M3) /* of E2M1 codes, doubled */
                scale = vf_mul(vf_set1(0.5f), scale);
            vf_store(y, type == MT_SCALE_E4M3 ? vf_mul(scale, vf_set1(w->global)) : scale);
        }
    }
}

/* The scales of groups [g0, g1) for VL columns: y[(g - g0) * apart ..] */
static inline void mt_qscales_widen(float *y, size_t apart, const mt_qscales *s, const mt_mat *w, size_t g0, size_t g1)
{
#define CASE(type) \
    case type: mt_qscales_put(y, apart, s, w, g0, g1, type); break;
    switch (w->scale_type) {
        CASE(MT_SCALE_F32)
        CASE(MT_SCALE_F16)
        CASE(MT_SCALE_BF16)
        CASE(MT_SCALE_E8M0)
        CASE(MT_SCALE_E4M3)
        CASE(MT_SCALE_8_OF_F16)
        CASE(MT_SCALE_16_OF_F16)
    case MT_SCALE_NONE: break;
    }
#undef CASE
}

#endif

#endif
