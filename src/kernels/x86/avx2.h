/* simd.h on AVX2: eight elements. */
#ifndef MT_KERNELS_X86_AVX2_H
#define MT_KERNELS_X86_AVX2_H

#include "kernels/x86/simd.h"

#if defined(__AVX2__) && !defined(__AVX512F__)

#include <immintrin.h>

#if defined(__AVXVNNI__)
#define MT_LEVEL(name) mt_##name##_avxvnni
#else
#define MT_LEVEL(name) mt_##name##_avx2
#endif

/* Rows of x that are multiplied with four rows of W in registers. */
#define MT_TILE_ROWS 3
#define MT_TILE_EACH(CASE) CASE(1) CASE(2) CASE(3)

/* Rows of x that are multiplied with two registers of columns in an integer product. */
#define MT_Q_ROWS 4
#define MT_Q_EACH(CASE) CASE(1) CASE(2) CASE(3) CASE(4)

typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vmask;
enum { VL = 8 };

/* clang-format off */
MT_INLINE vf vf_set1(float x) { return _mm256_set1_ps(x); }
MT_INLINE vf vf_load(const void *p) { return _mm256_loadu_ps(p); }
MT_INLINE void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
MT_INLINE vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
MT_INLINE vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
MT_INLINE vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
MT_INLINE vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
MT_INLINE vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); } /* b where either is NaN */
MT_INLINE vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
MT_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
MT_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); } /* c - a * b */
MT_INLINE vf vf_fms(vf a, vf b, vf c) { return _mm256_fmsub_ps(a, b, c); } /* a * b - c */

MT_INLINE vmask vm_or(vmask a, vmask b) { return _mm256_or_ps(a, b); }
MT_INLINE bool vm_any(vmask m) { return _mm256_movemask_ps(m) != 0; }
MT_INLINE vmask vf_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
MT_INLINE vmask vf_eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
MT_INLINE vmask vf_is_nan(vf a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
MT_INLINE vf vf_select(vmask m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }

MT_INLINE vi vf_bits(vf v) { return _mm256_castps_si256(v); }
MT_INLINE vf vf_from_bits(vi v) { return _mm256_castsi256_ps(v); }
MT_INLINE vi vf_rint(vf v) { return _mm256_cvtps_epi32(v); }
MT_INLINE vf vi_to_f32(vi v) { return _mm256_cvtepi32_ps(v); }

MT_INLINE vi vi_set1(int x) { return _mm256_set1_epi32(x); }
MT_INLINE vi vi_load(const void *p) { return _mm256_loadu_si256(p); }
MT_INLINE void vi_store(void *p, vi v) { _mm256_storeu_si256(p, v); }
MT_INLINE vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
MT_INLINE vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
MT_INLINE vi vi_and(vi a, vi b) { return _mm256_and_si256(a, b); }
MT_INLINE vi vi_or(vi a, vi b) { return _mm256_or_si256(a, b); }
MT_INLINE vi vi_xor(vi a, vi b) { return _mm256_xor_si256(a, b); }
MT_INLINE vi vi_max(vi a, vi b) { return _mm256_max_epi32(a, b); }
#define vi_sll(v, n) _mm256_slli_epi32(v, n)
#define vi_srl(v, n) _mm256_srli_epi32(v, n)
#define vi_sra(v, n) _mm256_srai_epi32(v, n)

/* VL halves at p as they are, in 32 bits each */
MT_INLINE vi vi_load_u16(const void *p) { return _mm256_cvtepu16_epi32(_mm_loadu_si128(p)); }
MT_INLINE vi vi_load_u8(const void *p) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64(p)); }
MT_INLINE vi vi_load_s8(const void *p) { return _mm256_cvtepi8_epi32(_mm_loadl_epi64(p)); }
MT_INLINE vi vi_from_s8(__m128i bytes) { return _mm256_cvtepi8_epi32(bytes); }
MT_INLINE vf vf_load_f16(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128(p)); }

MT_INLINE __m256 vlanes_fold8(const vf v[2]) { return _mm256_add_ps(v[0], v[1]); }

/* Bytes and 16-bit elements of a whole register; shuffles stay within 16 bytes */
MT_INLINE vi vb_set1(int x) { return _mm256_set1_epi8((char)x); }
MT_INLINE vi vb_shuffle(vi v, vi index) { return _mm256_shuffle_epi8(v, index); }
MT_INLINE vi vb_table(const void *table16) { return _mm256_broadcastsi128_si256(_mm_loadu_si128(table16)); }
MT_INLINE vi vb_maddubs(vi u, vi s) { return _mm256_maddubs_epi16(u, s); }
MT_INLINE vi vh_set1(int x) { return _mm256_set1_epi16((short)x); }
MT_INLINE vi vh_mul(vi a, vi b) { return _mm256_mullo_epi16(a, b); }
MT_INLINE vi vh_pack(vi a, vi b) { return _mm256_packus_epi16(a, b); }
#define vh_srl(v, n) _mm256_srli_epi16(v, n)
MT_INLINE vi vh_madd(vi a, vi b) { return _mm256_madd_epi16(a, b); }
/* clang-format on */

/* first <= index + i < last */
MT_INLINE vmask vi_within(size_t index, size_t first, size_t last)
{
    vi at = vi_add(vi_set1((int)index), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    vi below = _mm256_cmpgt_epi32(vi_set1((int)first), at);
    return _mm256_castsi256_ps(_mm256_andnot_si256(below, _mm256_cmpgt_epi32(vi_set1((int)last), at)));
}

/* first < hi and lo < last */
MT_INLINE vmask vi_overlap(vi lo, vi hi, size_t first, size_t last)
{
    vi before = _mm256_cmpgt_epi32(vi_set1((int)last), lo);
    return _mm256_castsi256_ps(_mm256_and_si256(before, _mm256_cmpgt_epi32(hi, vi_set1((int)first))));
}

/* The sum (largest) of all elements */
MT_INLINE int vi_sum_of(vi v)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

MT_INLINE int vi_max_of(vi v)
{
    __m128i s = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_max_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

/* n < VL elements, then `fill` (zeros). Through memory, since masked moves are slow on processors with microcode for
   them. */
MT_INLINE vf vf_load_part(const float *p, size_t n, float fill)
{
    float padded[VL] = {fill, fill, fill, fill, fill, fill, fill, fill};
    memcpy(padded, p, n * sizeof(*p));
    return vf_load(padded);
}

MT_INLINE vi vi_load_part(const void *p, size_t n)
{
    int32_t padded[VL] = {0};
    memcpy(padded, p, n * sizeof(*padded));
    return vi_load(padded);
}

MT_INLINE void vf_store_part(float *p, size_t n, vf v)
{
    float padded[VL];
    vf_store(padded, v);
    memcpy(p, padded, n * sizeof(*p));
}

/* VL bytes of E4M3, divided by 2^8 */
MT_INLINE vf vf_load_e4m3_as_f16(const void *p)
{
    __m128i b = _mm_cvtepi8_epi16(_mm_loadl_epi64(p)), low = _mm_set1_epi16(0x3f80),
            sign = _mm_set1_epi16((short)0x8000);
    return _mm256_cvtph_ps(_mm_or_si128(_mm_and_si128(_mm_slli_epi16(b, 7), low), _mm_and_si128(b, sign)));
}

/* The low halves (bytes) of VL elements, which fit */
MT_INLINE void vi_store_u16(void *p, vi v)
{
    vi packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(v, v), 0x08);
    _mm_storeu_si128(p, _mm256_castsi256_si128(packed));
}

MT_INLINE void vi_store_s8(void *p, vi v)
{
    vi pairs = _mm256_packs_epi32(v, v), quads = _mm256_packs_epi16(pairs, pairs);
    __m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(quads), _mm256_extracti128_si256(quads, 1));
    _mm_storel_epi64(p, both);
}

/* VL bytes, eight of them together, `apart` bytes from the next */
MT_INLINE __m128i vb_load_eights(const uint8_t *p, size_t apart)
{
    (void)apart;
    return _mm_loadl_epi64((const void *)p);
}

/* 16 bytes at p[0] and p[4], each plus `at` */
MT_INLINE vi vb_load_each(const uint8_t *const *p, size_t at)
{
    __m256i v = _mm256_castsi128_si256(_mm_loadu_si128((const void *)(p[0] + at)));
    return _mm256_inserti128_si256(v, _mm_loadu_si128((const void *)(p[4] + at)), 1);
}

/* The f16 in the low half of each element */
MT_INLINE vf vf_low_f16(vi v)
{
    const vi low = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
    const vi eight = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(eight));
}

/* In each block of four elements: element j of m[i] and element i of m[j] are exchanged. */
MT_INLINE void vi_transpose_quarters(vi m[4])
{
    vi a = _mm256_unpacklo_epi32(m[0], m[1]), b = _mm256_unpackhi_epi32(m[0], m[1]);
    vi c = _mm256_unpacklo_epi32(m[2], m[3]), d = _mm256_unpackhi_epi32(m[2], m[3]);
    m[0] = _mm256_unpacklo_epi64(a, c);
    m[1] = _mm256_unpackhi_epi64(a, c);
    m[2] = _mm256_unpacklo_epi64(b, d);
    m[3] = _mm256_unpackhi_epi64(b, d);
}

/* Element i of each block of four: the sum of the same block of m[i]. */
MT_INLINE vi vi_sum_blocks(vi m0, vi m1, vi m2, vi m3)
{
    return _mm256_hadd_epi32(_mm256_hadd_epi32(m0, m1), _mm256_hadd_epi32(m2, m3));
}

/* Element j of block i becomes element 2 * j + i. */
MT_INLINE vi vi_in_turn(vi v)
{
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* 2 * VL bytes (with `four`, their upper or lower halves, times 16) in 16 bits each */
MT_INLINE vi vh_load_s8(const uint8_t *p, bool four, bool upper)
{
    __m128i b = _mm_loadu_si128((const void *)p);
    if (four)
        b = _mm_and_si128(upper ? b : _mm_slli_epi16(b, 4), _mm_set1_epi8((char)0xf0));
    return _mm256_cvtepi8_epi16(b);
}

/* 16 bytes every `step` */
MT_INLINE vi vb_load_blocks(const uint8_t *p, size_t step)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)p)),
                                   _mm_loadu_si128((const void *)(p + step)), 1);
}

#if defined(__AVXVNNI__)
/* acc + the sums of products of four unsigned bytes with four signed ones. In assembly, as compilers copy the
   intrinsic's accumulators in each step. */
MT_INLINE vi vi_dot4(vi acc, vi u, vi s)
{
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc) : "x"(u), "x"(s));
    return acc;
}
#endif

/* Transposes: 32-bit element j of m[i] and element i of m[j] are exchanged. */
MT_INLINE void vi_transpose(vi m[VL])
{
    vi t[VL], u[VL];
    MT_UNROLL
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_epi32(m[i], m[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi32(m[i], m[i + 1]);
    }
    MT_UNROLL
    for (int i = 0; i < 8; i += 4) {
        u[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
        u[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
        u[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
        u[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    MT_UNROLL
    for (int i = 0; i < 4; i++) {
        m[i] = _mm256_permute2x128_si256(u[i], u[i + 4], 0x20);
        m[i + 4] = _mm256_permute2x128_si256(u[i], u[i + 4], 0x31);
    }
}

/* R6: the sums of four times 16 lanes */
MT_INLINE __m128 vlanes_fold_4(const vf a[4][2])
{
    __m256 s[4];
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        s[i] = _mm256_add_ps(a[i][0], a[i][1]);
    __m256 q01 = _mm256_add_ps(_mm256_permute2f128_ps(s[0], s[1], 0x20), _mm256_permute2f128_ps(s[0], s[1], 0x31));
    __m256 q23 = _mm256_add_ps(_mm256_permute2f128_ps(s[2], s[3], 0x20), _mm256_permute2f128_ps(s[2], s[3], 0x31));
    __m256 two = _mm256_add_ps(_mm256_shuffle_ps(q01, q23, 0x44), _mm256_shuffle_ps(q01, q23, 0xee));
    __m256 one = _mm256_add_ps(two, _mm256_permute_ps(two, 0xb1));
    return _mm_blend_ps(_mm256_castps256_ps128(one), _mm256_extractf128_ps(one, 1), 0xa);
}

#endif

#endif
