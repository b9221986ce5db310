/* simd.h on AVX-512 (F, BW, VL, DQ): sixteen elements. */
#ifndef MT_KERNELS_X86_AVX512_H
#define MT_KERNELS_X86_AVX512_H

#include "kernels/x86/simd.h"

#if defined(__AVX512F__)

#include <immintrin.h>

#if defined(__AMX_TILE__) || defined(__AMXTILE__)
#define MT_LEVEL(name) mt_##name##_amx
#elif defined(__AVX512VNNI__)
#define MT_LEVEL(name) mt_##name##_avx512vnni
#else
#define MT_LEVEL(name) mt_##name##_avx512
#endif

/* Rows of x that are multiplied with four rows of W in registers. */
#define MT_TILE_ROWS 6
#define MT_TILE_EACH(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)

/* Rows of x that are multiplied with two registers of columns in an integer product. */
#define MT_Q_ROWS 8
#define MT_Q_EACH(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vmask;
enum { VL = 16 };

/* clang-format off */
MT_INLINE vf vf_set1(float x) { return _mm512_set1_ps(x); }
MT_INLINE vf vf_load(const void *p) { return _mm512_loadu_ps(p); }
MT_INLINE void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
MT_INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
MT_INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
MT_INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
MT_INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
MT_INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); } /* b where either is NaN */
MT_INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
MT_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
MT_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); } /* c - a * b */
MT_INLINE vf vf_fms(vf a, vf b, vf c) { return _mm512_fmsub_ps(a, b, c); } /* a * b - c */

MT_INLINE vmask vm_or(vmask a, vmask b) { return (vmask)(a | b); }
MT_INLINE bool vm_any(vmask m) { return m != 0; }
MT_INLINE vmask vf_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
MT_INLINE vmask vf_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
MT_INLINE vmask vf_is_nan(vf a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
MT_INLINE vf vf_select(vmask m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }

MT_INLINE vi vf_bits(vf v) { return _mm512_castps_si512(v); }
MT_INLINE vf vf_from_bits(vi v) { return _mm512_castsi512_ps(v); }
MT_INLINE vi vf_rint(vf v) { return _mm512_cvtps_epi32(v); }
MT_INLINE vf vi_to_f32(vi v) { return _mm512_cvtepi32_ps(v); }

MT_INLINE vi vi_set1(int x) { return _mm512_set1_epi32(x); }
MT_INLINE vi vi_load(const void *p) { return _mm512_loadu_si512(p); }
MT_INLINE void vi_store(void *p, vi v) { _mm512_storeu_si512(p, v); }
MT_INLINE vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
MT_INLINE vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
MT_INLINE vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
MT_INLINE vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
MT_INLINE vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
MT_INLINE vi vi_max(vi a, vi b) { return _mm512_max_epi32(a, b); }
#define vi_sll(v, n) _mm512_slli_epi32(v, n)
#define vi_srl(v, n) _mm512_srli_epi32(v, n)
#define vi_sra(v, n) _mm512_srai_epi32(v, n)

/* The sum (largest) of all elements */
MT_INLINE int vi_sum_of(vi v) { return _mm512_reduce_add_epi32(v); }
MT_INLINE int vi_max_of(vi v) { return _mm512_reduce_max_epi32(v); }

/* n < VL elements, then zeros */
MT_INLINE vi vi_load_part(const void *p, size_t n) { return _mm512_maskz_loadu_epi32((__mmask16)((1u << n) - 1), p); }

/* VL halves at p as they are, in 32 bits each */
MT_INLINE vi vi_load_u16(const void *p) { return _mm512_cvtepu16_epi32(_mm256_loadu_si256(p)); }
MT_INLINE vi vi_load_u8(const void *p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128(p)); }
MT_INLINE vi vi_load_s8(const void *p) { return _mm512_cvtepi8_epi32(_mm_loadu_si128(p)); }
MT_INLINE vi vi_from_s8(__m128i bytes) { return _mm512_cvtepi8_epi32(bytes); }
MT_INLINE vf vf_load_f16(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }

/* The low halves (bytes) of VL elements, which fit */
MT_INLINE void vi_store_u16(void *p, vi v) { _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(v)); }
MT_INLINE void vi_store_s8(void *p, vi v) { _mm_storeu_si128(p, _mm512_cvtepi32_epi8(v)); }

/* Bytes and 16-bit elements of a whole register; shuffles stay within 16 bytes */
MT_INLINE vi vb_set1(int x) { return _mm512_set1_epi8((char)x); }
MT_INLINE vi vb_shuffle(vi v, vi index) { return _mm512_shuffle_epi8(v, index); }
MT_INLINE vi vb_table(const void *table16) { return _mm512_broadcast_i32x4(_mm_loadu_si128(table16)); }
MT_INLINE vi vb_maddubs(vi u, vi s) { return _mm512_maddubs_epi16(u, s); }
MT_INLINE vi vh_set1(int x) { return _mm512_set1_epi16((short)x); }
MT_INLINE vi vh_mul(vi a, vi b) { return _mm512_mullo_epi16(a, b); }
MT_INLINE vi vh_pack(vi a, vi b) { return _mm512_packus_epi16(a, b); }
#define vh_srl(v, n) _mm512_srli_epi16(v, n)
MT_INLINE vi vh_madd(vi a, vi b) { return _mm512_madd_epi16(a, b); }
/* clang-format on */

/* first <= index + i < last */
MT_INLINE vmask vi_within(size_t index, size_t first, size_t last)
{
    vi at = vi_add(vi_set1((int)index), _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    vmask from = _mm512_cmpge_epi32_mask(at, vi_set1((int)first));
    return _mm512_mask_cmplt_epi32_mask(from, at, vi_set1((int)last));
}

/* first < hi and lo < last */
MT_INLINE vmask vi_overlap(vi lo, vi hi, size_t first, size_t last)
{
    return _mm512_mask_cmplt_epi32_mask(_mm512_cmpgt_epi32_mask(hi, vi_set1((int)first)), lo, vi_set1((int)last));
}

/* n < VL elements, then the value of fill */
MT_INLINE vf vf_load_part(const float *p, size_t n, float fill)
{
    return _mm512_mask_loadu_ps(vf_set1(fill), (__mmask16)((1u << n) - 1), p);
}

MT_INLINE void vf_store_part(float *p, size_t n, vf v)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v);
}

/* VL bytes of E4M3, divided by 2^8 */
MT_INLINE vf vf_load_e4m3_as_f16(const void *p)
{
    __m256i b = _mm256_cvtepi8_epi16(_mm_loadu_si128(p)), low = _mm256_set1_epi16(0x3f80),
            sign = _mm256_set1_epi16((short)0x8000);
    return _mm512_cvtph_ps(_mm256_or_si256(_mm256_and_si256(_mm256_slli_epi16(b, 7), low), _mm256_and_si256(b, sign)));
}

MT_INLINE __m256 vlanes_fold8(const vf v[1])
{
    return _mm256_add_ps(_mm512_castps512_ps256(v[0]), _mm512_extractf32x8_ps(v[0], 1));
}

/* VL bytes, eight of them together, `apart` bytes from the next */
MT_INLINE __m128i vb_load_eights(const uint8_t *p, size_t apart)
{
    return _mm_unpacklo_epi64(_mm_loadl_epi64((const void *)p), _mm_loadl_epi64((const void *)(p + apart)));
}

/* 16 bytes every `step` */
MT_INLINE vi vb_load_blocks(const uint8_t *p, size_t step)
{
    vi v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)p));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + step)), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + 2 * step)), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + 3 * step)), 3);
}

/* 16 bytes at p[0], p[4], p[8] and p[12], each plus `at` */
MT_INLINE vi vb_load_each(const uint8_t *const *p, size_t at)
{
    vi v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)(p[0] + at)));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p[4] + at)), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p[8] + at)), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p[12] + at)), 3);
}

/* The f16 in the low half of each element */
MT_INLINE vf vf_low_f16(vi v)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v));
}

/* In each block of four elements: element j of m[i] and element i of m[j] are exchanged. */
MT_INLINE void vi_transpose_quarters(vi m[4])
{
    vi a = _mm512_unpacklo_epi32(m[0], m[1]), b = _mm512_unpackhi_epi32(m[0], m[1]);
    vi c = _mm512_unpacklo_epi32(m[2], m[3]), d = _mm512_unpackhi_epi32(m[2], m[3]);
    m[0] = _mm512_unpacklo_epi64(a, c);
    m[1] = _mm512_unpackhi_epi64(a, c);
    m[2] = _mm512_unpacklo_epi64(b, d);
    m[3] = _mm512_unpackhi_epi64(b, d);
}

/* Transposes blocks of four elements: block j of m[i] and block i of m[j] are exchanged, i and j below 4. */
MT_INLINE void vi_transpose_blocks(vi *m0, vi *m1, vi *m2, vi *m3)
{
    vi a = _mm512_shuffle_i32x4(*m0, *m1, 0x44), b = _mm512_shuffle_i32x4(*m0, *m1, 0xee);
    vi c = _mm512_shuffle_i32x4(*m2, *m3, 0x44), d = _mm512_shuffle_i32x4(*m2, *m3, 0xee);
    *m0 = _mm512_shuffle_i32x4(a, c, 0x88);
    *m1 = _mm512_shuffle_i32x4(a, c, 0xdd);
    *m2 = _mm512_shuffle_i32x4(b, d, 0x88);
    *m3 = _mm512_shuffle_i32x4(b, d, 0xdd);
}

/* Element i of each block of four: the sum of the same block of m[i]. */
MT_INLINE vi vi_sum_blocks(vi m0, vi m1, vi m2, vi m3)
{
    vi a = vi_add(_mm512_unpacklo_epi32(m0, m1), _mm512_unpackhi_epi32(m0, m1));
    vi b = vi_add(_mm512_unpacklo_epi32(m2, m3), _mm512_unpackhi_epi32(m2, m3));
    return vi_add(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/* Element j of block i becomes element i of block j. */
MT_INLINE vi vi_in_turn(vi v)
{
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), v);
}

/* 2 * VL bytes (with `four`, their upper or lower halves, times 16) in 16 bits each */
MT_INLINE vi vh_load_s8(const uint8_t *p, bool four, bool upper)
{
    __m256i b = _mm256_loadu_si256((const void *)p);
    if (four)
        b = _mm256_and_si256(upper ? b : _mm256_slli_epi16(b, 4), _mm256_set1_epi8((char)0xf0));
    return _mm512_cvtepi8_epi16(b);
}

/* Element i of each block of four: the sum of the first (last) two of the same block of m[i]. */
MT_INLINE void vi_sum_halves(vi *first, vi *last, const vi m[4])
{
    vi a = _mm512_unpacklo_epi32(m[0], m[1]), b = _mm512_unpackhi_epi32(m[0], m[1]);
    vi c = _mm512_unpacklo_epi32(m[2], m[3]), d = _mm512_unpackhi_epi32(m[2], m[3]);
    a = vi_add(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    c = vi_add(_mm512_unpacklo_epi64(c, d), _mm512_unpackhi_epi64(c, d));
    *first = _mm512_unpacklo_epi64(a, c);
    *last = _mm512_unpackhi_epi64(a, c);
}

/* The even (odd) ones of 2 * VL elements at p */
MT_INLINE void vi_load_apart(vi *even, vi *odd, const void *p)
{
    const vi first = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const vi a = vi_load(p), b = vi_load((const uint8_t *)p + 64);
    *even = _mm512_permutex2var_epi32(a, first, b);
    *odd = _mm512_permutex2var_epi32(a, vi_add(first, vi_set1(1)), b);
}

#if defined(__AVX512VNNI__)
/* acc + the sums of products of four unsigned bytes with four signed ones. In assembly, as compilers copy the
   intrinsic's accumulators in each step. */
MT_INLINE vi vi_dot4(vi acc, vi u, vi s)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(u), "v"(s));
    return acc;
}
#endif

/* Transposes: 32-bit element j of m[i] and element i of m[j] are exchanged. */
MT_INLINE void vi_transpose(vi m[VL])
{
    vi t[VL], u[VL];
    MT_UNROLL
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(m[i], m[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(m[i], m[i + 1]);
    }
    MT_UNROLL
    for (int i = 0; i < 16; i += 4) {
        u[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        u[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        u[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        u[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    MT_UNROLL
    for (int i = 0; i < 4; i++) {
        vi_transpose_blocks(&u[i], &u[i + 4], &u[i + 8], &u[i + 12]);
        m[i] = u[i];
        m[i + 4] = u[i + 4];
        m[i + 8] = u[i + 8];
        m[i + 12] = u[i + 12];
    }
}

/* R6: the sums of four times 16 lanes */
MT_INLINE __m128 vlanes_fold_4(const vf a[4][1])
{
    vf s01 = vf_add(_mm512_shuffle_f32x4(a[0][0], a[1][0], 0x44), _mm512_shuffle_f32x4(a[0][0], a[1][0], 0xee));
    vf s23 = vf_add(_mm512_shuffle_f32x4(a[2][0], a[3][0], 0x44), _mm512_shuffle_f32x4(a[2][0], a[3][0], 0xee));
    vf four = vf_add(_mm512_shuffle_f32x4(s01, s23, 0x88), _mm512_shuffle_f32x4(s01, s23, 0xdd));
    vf two = vf_add(four, _mm512_permute_ps(four, 0x4e)), one = vf_add(two, _mm512_permute_ps(two, 0xb1));
    vf first = _mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12), one);
    return _mm512_castps512_ps128(first);
}

#endif

#endif
