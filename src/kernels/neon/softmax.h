/* Shared by attention kernels whose products are in rows of MT_SEGMENT positions: the maximum of a row, and exp. */
#ifndef MT_KERNELS_NEON_SOFTMAX_H
#define MT_KERNELS_NEON_SOFTMAX_H

#include "kernels/attn.h"
#include "kernels/neon/math.h"

/* Whole blocks of MT_LANES positions that contain what is seen. */
static inline mt_attn_range mt_attn_whole_blocks(mt_attn_range seen)
{
    return (mt_attn_range){seen.begin / MT_LANES * MT_LANES, (seen.end + MT_LANES - 1) / MT_LANES * MT_LANES};
}

MT_INLINE uint32x4_t mt_visible(size_t t, mt_attn_range seen)
{
    static const uint32_t iota[4] = {0, 1, 2, 3};
    uint32x4_t at = vaddq_u32(vdupq_n_u32((uint32_t)t), vld1q_u32(iota));
    return vandq_u32(vcgeq_u32(at, vdupq_n_u32((uint32_t)seen.begin)), vcltq_u32(at, vdupq_n_u32((uint32_t)seen.end)));
}

static inline void mt_scale_and_cap(float *s, float scale, float softcap, mt_attn_range b)
{
    for (size_t t = b.begin; t < b.end; t += 4) {
        float32x4_t x = vmulq_n_f32(vld1q_f32(s + t), scale);
        vst1q_f32(s + t, softcap != 0.0f ? mt_softcap4(x, softcap) : x);
    }
}

MT_INLINE float32x4_t mt_block_top(float32x4_t top, const float *s, size_t t, mt_attn_range seen, bool part)
{
    mt_lanes4 x = mt_lanes4_load(s + t);
    MT_UNROLL
    for (size_t i = 0; part && i < 4; i++)
        x.v[i] = vbslq_f32(mt_visible(t + 4 * i, seen), x.v[i], vdupq_n_f32(-INFINITY));
    return vmaxq_f32(top, vmaxq_f32(vmaxq_f32(x.v[0], x.v[1]), vmaxq_f32(x.v[2], x.v[3])));
}

/* exp(max(x, least)) of n vectors x <= 0. With least from -87 on, the bits are those of mt_exp16; with -88, values
   above the smallest normal number have the same bits, and bf16 and BFMMLA turn the rest into zero. Overwrites x. */
MT_INLINE void mt_exp_negative(float32x4_t *y, float32x4_t *x, float least, size_t n)
{
    static const mt_constant magic = MT_EACH4(MT_ROUND_MAGIC + 127.0f);
    float32x4_t z[8];
    MT_UNROLL
    for (size_t i = 0; i < n; i++)
        x[i] = vmaxq_f32(x[i], vdupq_n_f32(least));
    mt_exp_reduced(y, z, x, &magic, n);
    MT_UNROLL
    for (size_t i = 0; i < n; i++) {
        float32x4_t power = vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(z[i]), 23));
        y[i] = vfmaq_f32(power, y[i], power);
    }
}

#endif
