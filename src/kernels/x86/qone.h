/* Integer products of one row of activations, with AVX-512 VNNI: the dots of units are transposed and not the weights,
   as for more rows (qpanel.h), so that codes go from memory to the sums by registers alone. 128 elements of a column
   are two registers of codes whose dots have a block of 32 in each quarter. */
#ifndef MT_KERNELS_X86_QONE_H
#define MT_KERNELS_X86_QONE_H

#include "kernels/x86/qpanel.h"

#if defined(MT_LEVEL)

enum { MT_Q_ONE = 128 }; /* elements of k at a time */

#if defined(__AVX512VNNI__)

/* How codes lie in a row: nibbles that are integers, or numbers in a table; nibbles with one or two bits behind them
   (unpack.h); bytes; streams of two and three bits. */
typedef enum mt_qcoded {
    MT_Q_NIBBLES,
    MT_Q_TABLE,
    MT_Q_SPLIT5,
    MT_Q_SPLIT6,
    MT_Q_BYTES,
    MT_Q_TWO,
    MT_Q_THREE
} mt_qcoded;

/* The bits above the fourth of 128 codes, those of even ones in bits 0 and 1 of a byte, those of odd ones in 4 and 5 */
MT_INLINE vi mt_qone_high(const uint8_t *high, bool six)
{
    if (!six)
        return _mm512_srlv_epi64(vb_table(high), _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3));
    const vi v = _mm512_castsi256_si512(_mm256_loadu_si256((const void *)high));
    return _mm512_srlv_epi64(_mm512_shuffle_i32x4(v, v, 0x50), _mm512_setr_epi64(0, 0, 2, 2, 0, 0, 2, 2));
}

/* 128 codes of three bits: 16 bits of each byte's successor are brought to where two codes of it begin. */
MT_INLINE void mt_qone_three(vi w[2], const uint8_t *from)
{
    const vi quarters = _mm512_setr_epi32(0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 9, 10, 11, 0);
    static const uint8_t overlapping[16] = {0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11};
    const vi all = _mm512_permutexvar_epi32(quarters, _mm512_maskz_loadu_epi32(0x0fff, from));
    const vi v = _mm512_srlv_epi16(vb_shuffle(all, vb_table(overlapping)), vi_set1(4 << 16));
    const vi low = vh_set1(0x00ff), codes = vb_set1(7);
    w[0] = vi_and(_mm512_ternarylogic_epi32(low, v, vi_sll(v, 2), 0xca), codes);
    w[1] = vi_and(_mm512_ternarylogic_epi32(low, vi_srl(v, 3), vi_srl(v, 1), 0xca), codes);
}

/* 128 codes of a column from element k of the chunk on: the even and the odd ones; of bytes, the first 64 and the
   rest. */
MT_INLINE void mt_qone_codes(vi w[2], const mt_qpanel *p, const uint8_t *row, size_t k, mt_qcoded coded)
{
    if (coded == MT_Q_THREE) {
        mt_qone_three(w, row + k / 8 * 3);
    } else if (coded == MT_Q_TWO) {
        const vi v = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)(row + k / 4)));
        const vi twice = vi_or(v, vi_sll(v, 4));
        w[0] = vi_and(twice, vb_set1(3));
        w[1] = vi_and(vi_srl(twice, 2), vb_set1(3));
    } else if (coded == MT_Q_BYTES) {
        w[0] = vi_load(row + k);
        w[1] = vi_load(row + k + 64);
    } else {
        const vi v = vi_load(row + k / 2);
        w[0] = mt_qpanel_four(p, v, false, coded == MT_Q_TABLE);
        w[1] = mt_qpanel_four(p, v, true, coded == MT_Q_TABLE);
    }
    if (coded == MT_Q_SPLIT5 || coded == MT_Q_SPLIT6) {
        const bool six = coded == MT_Q_SPLIT6;
        const vi high = mt_qone_high(row + p->high + k / (six ? 64 : 128) * 16, six), mask = vb_set1(six ? 0x30 : 0x10);
        w[0] = _mm512_ternarylogic_epi32(w[0], vi_sll(high, 4), mask, 0xf8);
        w[1] = _mm512_ternarylogic_epi32(w[1], high, mask, 0xf8);
    }
}

/* Fetches what mt_qone_codes reads of the next chunk. */
MT_INLINE void mt_qone_fetch(const mt_qpanel *p, const uint8_t *next, size_t k, mt_qcoded coded)
{
    const size_t at = coded == MT_Q_BYTES ? k : coded == MT_Q_TWO ? k / 4 : coded == MT_Q_THREE ? k / 8 * 3 : k / 2;
    _mm_prefetch((const char *)(next + at), _MM_HINT_T1);
    if (coded == MT_Q_BYTES)
        _mm_prefetch((const char *)(next + at + 64), _MM_HINT_T1);
    if (coded == MT_Q_SPLIT5 || coded == MT_Q_SPLIT6)
        _mm_prefetch((const char *)(next + p->next_high + k / (coded == MT_Q_SPLIT6 ? 4 : 8)), _MM_HINT_T1);
}

/* 128 activations in the order of mt_qone_codes */
MT_INLINE void mt_qone_row(vi x[2], const int8_t *q, mt_qcoded coded)
{
    static const uint8_t plain[16] = {0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15};
    if (coded == MT_Q_BYTES) {
        x[0] = vb_shuffle(vi_load(q), vb_table(plain));
        x[1] = vb_shuffle(vi_load(q + 64), vb_table(plain));
    } else {
        vi_load_apart(&x[0], &x[1], q);
    }
}

/* Four elements of a block of one column in each element */
MT_INLINE vi mt_qone_dot(const vi w[2], const vi x[2], mt_qcoded coded)
{
    const vi first = vi_dot4(vi_set1(0), w[0], x[0]);
    if (coded != MT_Q_BYTES)
        return vi_dot4(first, w[1], x[1]);
    const vi second = vi_dot4(vi_set1(0), w[1], x[1]);
    return vi_add(_mm512_shuffle_i32x4(first, second, 0x88), _mm512_shuffle_i32x4(first, second, 0xdd));
}

/* dot[i] = the dots of unit i of columns h .. h+VL */
MT_INLINE void mt_qone_dots(vi dot[8], const mt_qpanel *p, size_t h, size_t k, const vi x[2], mt_qcoded coded,
                            size_t unit)
{
    MT_UNROLL
    for (size_t r = 0; r < VL; r += 4) {
        vi four[4];
        MT_UNROLL
        for (size_t i = 0; i < 4; i++) {
            vi w[2];
            mt_qone_codes(w, p, p->row[h + r + i], k, coded);
            mt_qone_fetch(p, p->next[h + r + i], k, coded);
            four[i] = mt_qone_dot(w, x, coded);
        }
        if (unit == MT_BLOCK)
            dot[r / 4] = vi_sum_blocks(four[0], four[1], four[2], four[3]);
        else
            vi_sum_halves(&dot[r / 4], &dot[4 + r / 4], four);
    }
    vi_transpose_blocks(&dot[0], &dot[1], &dot[2], &dot[3]);
    if (unit < MT_BLOCK)
        vi_transpose_blocks(&dot[4], &dot[5], &dot[6], &dot[7]);
}

/* The chunk's sums for columns h .. h+VL of the panel; n % MT_Q_ONE == 0 */
MT_INLINE void mt_qone_columns(float *a, float *b, const mt_qpanel *p, size_t h, size_t n, const mt_qchunk *c,
                               const mt_qtile *t, mt_qcoded coded, size_t unit, size_t link)
{
    const float *scales = c->scales + h;
    const float *biases = c->biases ? c->biases + h : NULL;
    const int lift = coded == MT_Q_NIBBLES ? 0 : c->lift;
    size_t u = c->g0 * c->each, g = c->g0, left = c->each;
    const int8_t *q = t->q + u * unit;
    vf sum = vf_load(a + h), bias = vf_load(b + h);
    for (size_t k = 0; k < n; k += MT_Q_ONE) {
        vi x[2], dot[8];
        mt_qone_row(x, q + k, coded);
        mt_qone_dots(dot, p, h, k, x, coded, unit);
        vf end = vf_set1(0);
        MT_UNROLL
        for (size_t i = 0; i < MT_Q_ONE / unit; i++, u++) {
            const vi from = link == 2 && i % 2 ? vf_bits(end) : vi_set1(MT_DOT_BITS - lift * t->sum[u]);
            end = mt_qturned(vi_add(dot[unit == MT_BLOCK ? i : i / 2 + i % 2 * 4], from), t, u);
            if (link == 1 || i % 2)
                sum = vf_fma(vf_load(scales), end, sum);
            if (--left > 0)
                continue;
            if (c->biases)
                bias = vf_fma(vf_load(biases + (g - c->g0) * MT_Q_COLUMNS), vf_set1(t->bias[g]), bias);
            g++;
            left = c->each;
            scales += MT_Q_COLUMNS;
        }
    }
    vf_store(a + h, sum);
    vf_store(b + h, bias);
}

static inline bool mt_qone_kind(mt_qcoded *coded, const mt_mat *w)
{
    *coded = w->bits == 8   ? MT_Q_BYTES
             : w->bits == 6 ? MT_Q_SPLIT6
             : w->bits == 5 ? MT_Q_SPLIT5
             : w->bits == 3 ? MT_Q_THREE
             : w->bits == 2 ? MT_Q_TWO
                            : MT_Q_NIBBLES;
    if (*coded == MT_Q_NIBBLES && mt_code_lift(w) > 0)
        *coded = MT_Q_TABLE;
    return w->split || (w->bits != 5 && w->bits != 6);
}

/* X(coded, unit, link): the products there are */
/* clang-format off */
#define MT_Q_ONES(X)                                                                                                 \
    X(MT_Q_NIBBLES, 32, 1) X(MT_Q_NIBBLES, 32, 2) X(MT_Q_TABLE, 32, 1) X(MT_Q_TABLE, 16, 1)                            \
    X(MT_Q_SPLIT5, 32, 1) X(MT_Q_SPLIT6, 16, 1) X(MT_Q_BYTES, 32, 1) X(MT_Q_BYTES, 32, 2)                              \
    X(MT_Q_THREE, 16, 1) X(MT_Q_THREE, 32, 1) X(MT_Q_THREE, 32, 2)                                                    \
    X(MT_Q_TWO, 16, 1) X(MT_Q_TWO, 32, 1) X(MT_Q_TWO, 32, 2)
/* clang-format on */

/* The chunk's sums of one row. False where there is no such product. */
static inline bool mt_qone(float *a, float *b, const mt_qpanel *p, size_t n, const mt_qchunk *c, const mt_qtile *t)
{
    mt_qcoded coded;
    if (!mt_qone_kind(&coded, p->w))
        return false;
#define ONE(kind, elements, blocks)                                       \
    if (coded == kind && c->unit == elements && c->link == blocks) {      \
        for (size_t h = 0; h < MT_Q_COLUMNS; h += VL) {                   \
            mt_qpanel_scales(p, h, c->g0, c->g1);                         \
            mt_qone_columns(a, b, p, h, n, c, t, kind, elements, blocks); \
        }                                                                 \
        return true;                                                      \
    }
    MT_Q_ONES(ONE)
#undef ONE
    return false;
}

#endif

#endif

#endif
