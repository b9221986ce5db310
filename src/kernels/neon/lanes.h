/* The 16 virtual lanes of reductions (R6 of docs/numerics.md) in four registers, and partial vectors. */
#ifndef MT_KERNELS_NEON_LANES_H
#define MT_KERNELS_NEON_LANES_H

#include <arm_neon.h>
#include <stddef.h>
#include <string.h>

#include "kernels/kernels.h"

/* Loops over registers must be unrolled, also at -O2. */
#if defined(__clang__)
#define MT_UNROLL _Pragma("clang loop unroll(full)")
#define MT_UNROLL_TWICE _Pragma("clang loop unroll_count(2)")
#else
#define MT_UNROLL _Pragma("GCC unroll 16")
#define MT_UNROLL_TWICE _Pragma("GCC unroll 2")
#endif
#define MT_INLINE static inline __attribute__((always_inline))

typedef struct mt_lanes4 {
    float32x4_t v[4];
} mt_lanes4;

static inline mt_lanes4 mt_lanes4_zero(void)
{
    float32x4_t z = vdupq_n_f32(0.0f);
    return (mt_lanes4){{z, z, z, z}};
}

static inline mt_lanes4 mt_lanes4_load(const float *x)
{
    return (mt_lanes4){{vld1q_f32(x), vld1q_f32(x + 4), vld1q_f32(x + 8), vld1q_f32(x + 12)}};
}

/* n < 16 elements, then zeros */
static inline mt_lanes4 mt_lanes4_load_part(const float *x, size_t n)
{
    float padded[MT_LANES] = {0};
    memcpy(padded, x, n * sizeof(*x));
    return mt_lanes4_load(padded);
}

static inline void mt_lanes4_store(float *y, mt_lanes4 x)
{
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        vst1q_f32(y + 4 * i, x.v[i]);
}

/* n < 16 elements */
static inline void mt_lanes4_store_part(float *y, mt_lanes4 x, size_t n)
{
    float padded[MT_LANES];
    mt_lanes4_store(padded, x);
    memcpy(y, padded, n * sizeof(*y));
}

static inline mt_lanes4 mt_lanes4_mul(mt_lanes4 x, mt_lanes4 y)
{
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        x.v[i] = vmulq_f32(x.v[i], y.v[i]);
    return x;
}

static inline mt_lanes4 mt_lanes4_fma(mt_lanes4 acc, mt_lanes4 x, mt_lanes4 y)
{
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        acc.v[i] = vfmaq_f32(acc.v[i], x.v[i], y.v[i]);
    return acc;
}

static inline mt_lanes4 mt_lanes4_add(mt_lanes4 acc, mt_lanes4 x)
{
    MT_UNROLL
    for (int i = 0; i < 4; i++)
        acc.v[i] = vaddq_f32(acc.v[i], x.v[i]);
    return acc;
}

static inline float mt_lanes4_fold(mt_lanes4 a)
{
    float32x4_t s = vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
    float32x2_t t = vadd_f32(vget_low_f32(s), vget_high_f32(s));
    return vget_lane_f32(t, 0) + vget_lane_f32(t, 1);
}

/* n < 4 elements, then `fill`. */
static inline float32x4_t mt_load_part(const float *x, size_t n, float fill)
{
    float padded[4] = {fill, fill, fill, fill};
    memcpy(padded, x, n * sizeof(*x));
    return vld1q_f32(padded);
}

static inline void mt_store_part(float *y, float32x4_t v, size_t n)
{
    float padded[4];
    vst1q_f32(padded, v);
    memcpy(y, padded, n * sizeof(*y));
}

#endif
