/* Loads quantised weights into registers, 32 at a time, in "paired" order: 16 of even index, then 16 of odd index, as
   the nibbles of 16 bytes are separated. Activations are packed in the same order. */
#ifndef MT_KERNELS_NEON_QLOAD_H
#define MT_KERNELS_NEON_QLOAD_H

#include "kernels/neon/lanes.h"
#include "kernels/unpack.h"

/* How a code becomes an integer; a compile-time constant in every kernel. */
typedef enum mt_code {
    MT_CODE_2,
    MT_CODE_3,
    MT_CODE_4,
    MT_CODE_5,
    MT_CODE_6,
    MT_CODE_8,
    MT_CODE_TABLE, /* 4 bits, looked up: E2M1, IQ4 and SIGNED */
    MT_CODE_S3,    /* SIGNED */
    MT_CODE_S8,
    MT_CODE_SPLIT5, /* AFFINE or SIGNED, split (unpack.h) */
    MT_CODE_SPLIT6
} mt_code;

static inline mt_code mt_code_of(const mt_mat *w)
{
    if (w->split)
        return w->bits == 5 ? MT_CODE_SPLIT5 : MT_CODE_SPLIT6;
    if (w->bits == 4 && !mt_formats[w->format].biased)
        return MT_CODE_TABLE;
    if (!mt_formats[w->format].biased)
        return w->bits == 8 ? MT_CODE_S8 : MT_CODE_S3;
    return w->bits == 8 ? MT_CODE_8 : (mt_code)(w->bits - 2);
}

/* Bits of a code in the stream. */
static inline size_t mt_code_bits(mt_code code)
{
    static const uint8_t bits[] = {2, 3, 4, 5, 6, 8, 4, 3, 8, 4, 4};
    return bits[code];
}

/* Calls CALL with the code as a constant. */
#define MT_SWITCH_CODE(code, CALL)                    \
    switch (code) {                                   \
    case MT_CODE_2: CALL(MT_CODE_2); break;           \
    case MT_CODE_3: CALL(MT_CODE_3); break;           \
    case MT_CODE_4: CALL(MT_CODE_4); break;           \
    case MT_CODE_5: CALL(MT_CODE_5); break;           \
    case MT_CODE_6: CALL(MT_CODE_6); break;           \
    case MT_CODE_8: CALL(MT_CODE_8); break;           \
    case MT_CODE_TABLE: CALL(MT_CODE_TABLE); break;   \
    case MT_CODE_S3: CALL(MT_CODE_S3); break;         \
    case MT_CODE_S8: CALL(MT_CODE_S8); break;         \
    case MT_CODE_SPLIT5: CALL(MT_CODE_SPLIT5); break; \
    case MT_CODE_SPLIT6: CALL(MT_CODE_SPLIT6); break; \
    }

/* A zero that the compiler does not share: copies of one zero cost a vector instruction each. */
MT_INLINE int32x4_t mt_zero(void)
{
    int32x4_t z;
    __asm__ volatile("movi %0.4s, #0" : "=w"(z));
    return z;
}

typedef struct mt_paired {
    int8x16_t even, odd;
} mt_paired;

/* Constants of a code, loaded once: for 2, 3, 5 and 6 bits the bytes that contain each element (two, as 16 bits) and
   the shift that moves it down; 16 elements start on a byte. For nibbles that are looked up, bytes[0] is the table. */
typedef struct mt_coder {
    uint8x16_t mask, bytes[4]; /* bytes: first 16 even, odd; last 16 even, odd */
    int16x8_t shift[2];
    int8x16_t lift; /* what is subtracted */
} mt_coder;

/* Offset of the bytes of the last 16 elements in their load, which ends with them. */
#define MT_LATE(b) ((b) < 4 ? 8 - 2 * (b) : 16 - 2 * (b))
#define MT_B(b, e, from) (uint8_t)((e) * (b) / 8 + (from)), (uint8_t)((e) * (b) / 8 + (from) + 1)
#define MT_BYTES(b, o, from)                                                                                          \
    {                                                                                                                 \
        MT_B(b, 0 + o, from), MT_B(b, 2 + o, from), MT_B(b, 4 + o, from), MT_B(b, 6 + o, from), MT_B(b, 8 + o, from), \
            MT_B(b, 10 + o, from), MT_B(b, 12 + o, from), MT_B(b, 14 + o, from)                                       \
    }
#define MT_S(b, e) (int16_t)(-((e) * (b) % 8))
#define MT_SHIFTS(b, o)                                                                                  \
    {                                                                                                    \
        MT_S(b, 0 + o), MT_S(b, 2 + o), MT_S(b, 4 + o), MT_S(b, 6 + o), MT_S(b, 8 + o), MT_S(b, 10 + o), \
            MT_S(b, 12 + o), MT_S(b, 14 + o)                                                             \
    }

MT_INLINE mt_coder mt_coder_of(mt_code code, const mt_mat *w)
{
#define MT_CODER(b)                                                                                                  \
    {                                                                                                                \
        static const uint8_t bytes[4][16] = {MT_BYTES(b, 0, 0), MT_BYTES(b, 1, 0), MT_BYTES(b, 0, MT_LATE(b)),       \
                                             MT_BYTES(b, 1, MT_LATE(b))};                                            \
        static const int16_t shift[2][8] = {MT_SHIFTS(b, 0), MT_SHIFTS(b, 1)};                                       \
        return (mt_coder){.mask = vdupq_n_u8((1 << (b)) - 1),                                                        \
                          .bytes = {vld1q_u8(bytes[0]), vld1q_u8(bytes[1]), vld1q_u8(bytes[2]), vld1q_u8(bytes[3])}, \
                          .shift = {vld1q_s16(shift[0]), vld1q_s16(shift[1])},                                       \
                          .lift = lift};                                                                             \
    }
    const int8x16_t lift = vdupq_n_s8((int8_t)(w->bits < 8 ? mt_code_lift(w) : 0));
    switch (code) {
    case MT_CODE_2: MT_CODER(2)
    case MT_CODE_S3:
    case MT_CODE_3: MT_CODER(3)
    case MT_CODE_5: MT_CODER(5)
    case MT_CODE_6: MT_CODER(6)
    case MT_CODE_S8:
    case MT_CODE_8: return (mt_coder){.mask = vdupq_n_u8(0x80)};
    case MT_CODE_4: break;
    case MT_CODE_TABLE:
        return (mt_coder){.mask = vdupq_n_u8(15), .bytes = {vreinterpretq_u8_s8(vld1q_s8(mt_code_table(w->format)))}};
    case MT_CODE_SPLIT5: return (mt_coder){.mask = vdupq_n_u8(0x1f), .lift = lift};
    case MT_CODE_SPLIT6: return (mt_coder){.mask = vdupq_n_u8(0x3f), .lift = lift};
    }
    return (mt_coder){.mask = vdupq_n_u8(15)};
#undef MT_CODER
}

/* 16 bytes of nibbles */
MT_INLINE mt_paired mt_paired_nibbles(uint8x16_t v, mt_code code, const mt_coder *c)
{
    uint8x16_t even = vandq_u8(v, c->mask), odd = vshrq_n_u8(v, 4);
    if (code == MT_CODE_TABLE) {
        even = vqtbl1q_u8(c->bytes[0], even);
        odd = vqtbl1q_u8(c->bytes[0], odd);
    }
    return (mt_paired){vreinterpretq_s8_u8(even), vreinterpretq_s8_u8(odd)};
}

MT_INLINE uint16x8_t mt_spread(uint8x16_t v, uint8x16_t bytes, int16x8_t shift)
{
    return vshlq_u16(vreinterpretq_u16_u8(vqtbl1q_u8(v, bytes)), shift);
}

/* low bytes of two vectors of 16-bit lanes */
MT_INLINE int8x16_t mt_narrow(uint16x8_t a, uint16x8_t b, uint8x16_t mask)
{
    return vreinterpretq_s8_u8(vandq_u8(vuzp1q_u8(vreinterpretq_u8_u16(a), vreinterpretq_u8_u16(b)), mask));
}

/* Codes of 2, 3, 5 and 6 bits: no byte beyond the 32 elements is read. */
MT_INLINE mt_paired mt_paired_stream(const uint8_t *p, mt_code code, const mt_coder *c)
{
    size_t bytes = 4 * mt_code_bits(code);
    uint8x16_t early, late;
    if (bytes < 16) {
        early = vcombine_u8(vld1_u8(p), vdup_n_u8(0));
        late = vcombine_u8(vld1_u8(p + bytes - 8), vdup_n_u8(0));
    } else {
        early = vld1q_u8(p);
        late = vld1q_u8(p + bytes - 16);
    }
    return (mt_paired){
        mt_narrow(mt_spread(early, c->bytes[0], c->shift[0]), mt_spread(late, c->bytes[2], c->shift[0]), c->mask),
        mt_narrow(mt_spread(early, c->bytes[1], c->shift[1]), mt_spread(late, c->bytes[3], c->shift[1]), c->mask)};
}

MT_INLINE mt_paired mt_paired_less(mt_paired v, int8x16_t lift)
{
    return (mt_paired){vsubq_s8(v.even, lift), vsubq_s8(v.odd, lift)};
}

/* 32 weights at p, not of a split row; AFFINE ones of 8 bits are unsigned. */
MT_INLINE mt_paired mt_paired_load(const uint8_t *p, mt_code code, const mt_coder *c)
{
    if (code == MT_CODE_8 || code == MT_CODE_S8) {
        const uint8x16_t flip = code == MT_CODE_S8 ? c->mask : vdupq_n_u8(0);
        uint8x16_t a = veorq_u8(vld1q_u8(p), flip), b = veorq_u8(vld1q_u8(p + 16), flip);
        return (mt_paired){vreinterpretq_s8_u8(vuzp1q_u8(a, b)), vreinterpretq_s8_u8(vuzp2q_u8(a, b))};
    }
    if (code == MT_CODE_4 || code == MT_CODE_TABLE)
        return mt_paired_nibbles(vld1q_u8(p), code, c);
    const mt_paired v = mt_paired_stream(p, code, c);
    return code == MT_CODE_S3 ? mt_paired_less(v, c->lift) : v;
}

/* The 32 weights of a split row whose nibbles are v; high: the piece's other bits, these 32 in the lowest bits of each
   nibble. */
MT_INLINE mt_paired mt_paired_join(uint8x16_t v, uint8x16_t high, const mt_coder *c)
{
    const uint8x16_t even = vandq_u8(vsliq_n_u8(v, high, 4), c->mask);
    const uint8x16_t odd = vsriq_n_u8(vandq_u8(high, vbicq_u8(c->mask, vdupq_n_u8(15))), v, 4);
    return mt_paired_less((mt_paired){vreinterpretq_s8_u8(even), vreinterpretq_s8_u8(odd)}, c->lift);
}

/* Block number b of a row, whose codes in the stream are at p; high: where the other bits of the row begin, if it is
   split. */
MT_INLINE mt_paired mt_paired_block(const uint8_t *p, const uint8_t *high, size_t b, mt_code code, const mt_coder *c)
{
    if (code != MT_CODE_SPLIT5 && code != MT_CODE_SPLIT6)
        return mt_paired_load(p, code, c);
    const size_t each = code == MT_CODE_SPLIT5 ? 4 : 2, bits = code == MT_CODE_SPLIT5 ? 1 : 2;
    const int8x16_t down = vdupq_n_s8((int8_t) - (int)(b % each * bits));
    return mt_paired_join(vld1q_u8(p), vshlq_u8(vld1q_u8(high + b / each * 16), down), c);
}

/* The last 16 weights of a row of nibbles in groups of 16, followed by zeros. */
MT_INLINE mt_paired mt_paired_half(const uint8_t *p, const mt_coder *c)
{
    return mt_paired_nibbles(vcombine_u8(vld1_u8(p), vdup_n_u8(0)), MT_CODE_TABLE, c);
}

#endif
