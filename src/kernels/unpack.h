/* Quantised weights as integers with a scale. What integer a code stands for is in the table of formats (format.h).

   Codes of a row are one little-endian bit stream. Where w->split, bits above the fourth lie behind it: k / 2 bytes of
   nibbles, then the rest of each piece of the row in 16 bytes. A piece has 128 elements (5 bits) or 64 (6 bits); byte i
   holds those of elements 2 i (in its low nibble) and 2 i + 1 (in the high one) of every 32, the first 32 in the lowest
   bits. So vectors of nibbles and of their other bits have the same order. */
#ifndef MT_KERNELS_UNPACK_H
#define MT_KERNELS_UNPACK_H

#include "kernels/convert.h"
#include "kernels/format.h"

/* Whether weights are codes with scales, which the integer products take (R4 of docs/numerics.md). */
static inline bool mt_has_codes(mt_format format)
{
    return mt_formats[format].products == MT_PRODUCTS_INTEGER;
}

/* Elements of a piece of a split row. */
static inline size_t mt_split_piece(unsigned bits)
{
    return bits == 5 ? 128 : 64;
}

/* Bytes of a row of k codes. */
static inline size_t mt_code_row(size_t k, unsigned bits, bool split)
{
    const size_t piece = mt_split_piece(bits);
    return split ? k / 2 + (k + piece - 1) / piece * 16 : k * bits / 8;
}

/* Bits of element i above the fourth; high: what follows the nibbles of the row. */
static inline unsigned mt_split_bits(const uint8_t *high, size_t i, unsigned bits)
{
    const size_t piece = mt_split_piece(bits);
    const size_t shift = i % 2 * 4 + i % piece / 32 * (bits - 4);
    return high[i / piece * 16 + i % 32 / 2] >> shift & ((1u << (bits - 4)) - 1);
}

/* The integers that 16 codes stand for, in formats of 4 bits without biases. */
static inline const int8_t *mt_code_table(mt_format format)
{
    static const int8_t consecutive[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    const mt_code_integers *integers = mt_formats[format].integers;
    return integers ? integers->of : consecutive;
}

/* The largest negative integer of the matrix's codes, without its sign: added to all of them, it makes them
   unsigned. */
static inline int mt_code_lift(const mt_mat *w)
{
    const mt_format_traits *t = &mt_formats[w->format];
    if (t->integers)
        return t->integers->lift;
    return t->biased ? 0 : 1 << (w->bits - 1);
}

/* The largest integer after that. */
static inline unsigned mt_code_top(const mt_mat *w)
{
    const mt_code_integers *integers = mt_formats[w->format].integers;
    return integers ? integers->top : (1u << w->bits) - 1;
}

/* What a code stands for without its scale. */
static inline int mt_code_integer(const mt_mat *w, unsigned code)
{
    const mt_code_integers *integers = mt_formats[w->format].integers;
    return integers ? integers->of[code] : (int)code - mt_code_lift(w);
}

/* Reads the codes of a row in order. */
typedef struct mt_unpacker {
    const uint8_t *p;    /* next byte of the stream */
    const uint8_t *high; /* what follows it, where that is split */
    uint32_t stream;
    unsigned have; /* bits in stream */
    size_t i;      /* next element */
} mt_unpacker;

static inline mt_unpacker mt_unpacker_of(const mt_mat *w, size_t r)
{
    const uint8_t *row = w->w + r * w->stride;
    return (mt_unpacker){.p = row, .high = w->split ? row + w->k / 2 : NULL};
}

static inline int mt_unpack_next(mt_unpacker *u, const mt_mat *w)
{
    const unsigned bits = u->high ? 4 : w->bits;
    if (u->have < bits) {
        u->stream |= (uint32_t)*u->p++ << u->have;
        u->have += 8;
    }
    unsigned code = u->stream & ((1u << bits) - 1);
    u->stream >>= bits;
    u->have -= bits;
    if (u->high)
        code |= mt_split_bits(u->high, u->i++, w->bits) << 4;
    return mt_code_integer(w, code);
}

/* The scale of the integers of group g; `scales`: those of the row. */
static inline float mt_weight_scale(const mt_mat *w, const uint8_t *scales, size_t g)
{
    const mt_format_traits *t = &mt_formats[w->format];
    const float s = mt_scale_f32(scales, w->scale_type, g), half = t->halved ? 0.5f * s : s;
    return t->global ? half * w->global : half;
}

#endif
