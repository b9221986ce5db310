/* Vector registers under common names, so that the files *_tmpl.h serve AVX2 and AVX-512. The 16 virtual lanes of R6
   (docs/numerics.md) are VREGS registers of VL elements. */
#ifndef MT_KERNELS_X86_SIMD_H
#define MT_KERNELS_X86_SIMD_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/kernels.h"

/* clang's address sanitizer checks every access, and takes minutes for a file if all is in one unrolled function. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MT_INLINE static inline __attribute__((unused))
#define MT_UNROLL
#endif
#endif
#if !defined(MT_INLINE)
#define MT_INLINE static inline __attribute__((always_inline))
#define MT_UNROLL _Pragma("GCC unroll 32")
#endif

#if defined(__AVX512F__)
#include "kernels/x86/avx512.h"
#elif defined(__AVX2__)
#include "kernels/x86/avx2.h"
#endif

/* Sums of products of four unsigned and signed bytes, in one instruction */
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define MT_VNNI 1
#endif

#if defined(MT_LEVEL)

enum { VREGS = MT_LANES / VL };

/* Elements i .. i+VL of an array of n, zeros beyond its end. */
MT_INLINE vf vf_get(const float *x, size_t i, size_t n)
{
    return i + VL <= n ? vf_load(x + i) : vf_load_part(x + i, n - i, 0.0f);
}

MT_INLINE void vf_put(float *y, size_t i, size_t n, vf v)
{
    if (i + VL <= n)
        vf_store(y + i, v);
    else
        vf_store_part(y + i, n - i, v);
}

/* The four bytes at p in every element */
MT_INLINE vi vi_four(const int8_t *p)
{
    int32_t v;
    memcpy(&v, p, sizeof(v));
    return vi_set1(v);
}

MT_INLINE vf vf_abs(vf x)
{
    return vf_from_bits(vi_and(vf_bits(x), vi_set1(0x7fffffff)));
}

/* Bits of x rounded to bf16, in the upper half of each element. */
MT_INLINE vi vf_round_bf16(vf x)
{
    vi bits = vf_bits(x), odd = vi_and(vi_srl(bits, 16), vi_set1(1));
    vi rounded = vi_add(vi_add(bits, vi_set1(0x7fff)), odd), nan = vi_or(bits, vi_set1(0x400000));
    return vi_and(vf_bits(vf_select(vf_is_nan(x), vf_from_bits(nan), vf_from_bits(rounded))),
                  vi_set1((int)0xffff0000u));
}

/* The same where no element is NaN */
MT_INLINE vi vf_round_plain(vf x)
{
    vi bits = vf_bits(x), odd = vi_and(vi_srl(bits, 16), vi_set1(1));
    return vi_and(vi_add(vi_add(bits, vi_set1(0x7fff)), odd), vi_set1((int)0xffff0000u));
}

typedef struct vlanes {
    vf v[VREGS];
} vlanes;

MT_INLINE vlanes vlanes_zero(void)
{
    vlanes a;
    MT_UNROLL
    for (size_t h = 0; h < VREGS; h++)
        a.v[h] = vf_set1(0.0f);
    return a;
}

/* Elements i .. i+16 of an array of n, zeros beyond its end. */
MT_INLINE vlanes vlanes_get(const float *x, size_t i, size_t n)
{
    vlanes a;
    MT_UNROLL
    for (size_t h = 0; h < VREGS; h++)
        a.v[h] = i + h * VL < n ? vf_get(x, i + h * VL, n) : vf_set1(0.0f);
    return a;
}

MT_INLINE vlanes vlanes_add(vlanes a, vlanes b)
{
    MT_UNROLL
    for (size_t h = 0; h < VREGS; h++)
        a.v[h] = vf_add(a.v[h], b.v[h]);
    return a;
}

MT_INLINE vlanes vlanes_fma(vlanes a, vlanes b, vlanes c)
{
    MT_UNROLL
    for (size_t h = 0; h < VREGS; h++)
        c.v[h] = vf_fma(a.v[h], b.v[h], c.v[h]);
    return c;
}

/* R6: the sum of the 16 lanes */
MT_INLINE float vlanes_fold(vlanes a)
{
    __m256 eight = vlanes_fold8(a.v);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

#endif

#endif
