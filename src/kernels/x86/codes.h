/* Unpacks codes of 2 to 8 bits, a little-endian bit stream, to one byte each. */
#ifndef MT_KERNELS_X86_CODES_H
#define MT_KERNELS_X86_CODES_H

#include "kernels/unpack.h"
#include "kernels/x86/simd.h"

#if defined(MT_LEVEL)

enum { MT_CODES = 4 * VL }; /* codes of one register */

/* Order within each eight: plain, or even ones before odd ones, as the nibbles of four bytes are separated. */
typedef enum mt_order { MT_ORDER_PLAIN, MT_ORDER_PAIRED } mt_order;

/* 16 codes are 2 * bits bytes. For each code: the two bytes that contain it, and the factor that moves it to bit 8. */
typedef struct mt_coder {
    uint8_t bytes[2][16];
    uint16_t factor[8];
} mt_coder;

#define MT_CODE_BYTES(b, e) (e) * (b) / 8, (e) * (b) / 8 + 1
#define MT_CODE_FACTOR(b, e) 256 >> (e) * (b) % 8
#define MT_PLAIN(X, b, e) \
    X(b, e), X(b, e + 1), X(b, e + 2), X(b, e + 3), X(b, e + 4), X(b, e + 5), X(b, e + 6), X(b, e + 7)
#define MT_PAIRED(X, b, e) \
    X(b, e), X(b, e + 2), X(b, e + 4), X(b, e + 6), X(b, e + 1), X(b, e + 3), X(b, e + 5), X(b, e + 7)
#define MT_CODER(b, ORDER)                                                        \
    [b] = {.bytes = {{ORDER(MT_CODE_BYTES, b, 0)}, {ORDER(MT_CODE_BYTES, b, 8)}}, \
           .factor = {ORDER(MT_CODE_FACTOR, b, 0)}}
#define MT_CODERS(ORDER)                                                                                   \
    {                                                                                                      \
        MT_CODER(2, ORDER), MT_CODER(3, ORDER), MT_CODER(4, ORDER), MT_CODER(5, ORDER), MT_CODER(6, ORDER) \
    }

static const mt_coder mt_coders[2][7] = {MT_CODERS(MT_PLAIN), MT_CODERS(MT_PAIRED)};
static const uint8_t mt_paired_bytes[16] = {0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15};

MT_INLINE vi mt_codes_narrow(const uint8_t *p, size_t bits, const mt_coder *c)
{
    vi v = vb_load_blocks(p, 2 * bits), factor = vb_table(c->factor);
    vi a = vh_mul(vb_shuffle(v, vb_table(c->bytes[0])), factor),
       b = vh_mul(vb_shuffle(v, vb_table(c->bytes[1])), factor);
    return vi_and(vh_pack(vh_srl(a, 8), vh_srl(b, 8)), vb_set1((1 << bits) - 1));
}

MT_INLINE vi mt_codes_load(const uint8_t *p, size_t bits, mt_order order)
{
    if (bits < 8)
        return mt_codes_narrow(p, bits, &mt_coders[order][bits]);
    return order == MT_ORDER_PLAIN ? vi_load(p) : vb_shuffle(vi_load(p), vb_table(mt_paired_bytes));
}

/* y[0..n) = elements [k, k + n) of a split row (unpack.h), both multiples of 32; high: what follows its nibbles. */
static inline void mt_codes_join(uint8_t *y, const uint8_t *nibbles, const uint8_t *high, size_t k, size_t n,
                                 size_t bits, mt_order order)
{
    const size_t piece = mt_split_piece((unsigned)bits);
    const __m128i low = _mm_set1_epi8(15), mask = _mm_set1_epi8((char)((1 << (bits - 4)) - 1));
    for (size_t i = 0; i < n; i += 32) {
        const __m128i down = _mm_cvtsi64_si128((long long)((k + i) % piece / 32 * (bits - 4)));
        const __m128i v = _mm_loadu_si128((const void *)(nibbles + (k + i) / 2));
        const __m128i h = _mm_srl_epi16(_mm_loadu_si128((const void *)(high + (k + i) / piece * 16)), down);
        const __m128i even = _mm_or_si128(_mm_and_si128(v, low), _mm_slli_epi16(_mm_and_si128(h, mask), 4));
        const __m128i odd =
            _mm_or_si128(_mm_and_si128(_mm_srli_epi16(v, 4), low), _mm_and_si128(h, _mm_slli_epi16(mask, 4)));
        const bool plain = order == MT_ORDER_PLAIN;
        _mm_storeu_si128((void *)(y + i), plain ? _mm_unpacklo_epi8(even, odd) : _mm_unpacklo_epi32(even, odd));
        _mm_storeu_si128((void *)(y + i + 16), plain ? _mm_unpackhi_epi8(even, odd) : _mm_unpackhi_epi32(even, odd));
    }
}

/* y[0..n) = n codes at p, n % 16 == 0; no byte at or beyond p + readable is read. */
static inline void mt_codes_unpack(uint8_t *y, const uint8_t *p, size_t n, size_t readable, size_t bits, mt_order order)
{
    const size_t block = MT_CODES * bits / 8, reach = bits < 8 ? block + 16 - 2 * bits : block;
    size_t i = 0;
    for (; i + MT_CODES <= n && i * bits / 8 + reach <= readable; i += MT_CODES)
        vi_store(y + i, mt_codes_load(p + i * bits / 8, bits, order));
    for (; i < n; i += MT_CODES) {
        size_t count = n - i < MT_CODES ? n - i : MT_CODES;
        uint8_t padded[2 * MT_CODES] = {0}, out[MT_CODES];
        memcpy(padded, p + i * bits / 8, count * bits / 8);
        vi_store(out, mt_codes_load(padded, bits, order));
        memcpy(y + i, out, count);
    }
}

#endif

#endif
