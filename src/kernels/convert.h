/* Exact widening of the small number formats to fp32. Shared by portable kernels, tails and tests. */
#ifndef MT_KERNELS_CONVERT_H
#define MT_KERNELS_CONVERT_H

#include <stdint.h>
#include <string.h>

#include "kernels/matrix.h"

/* The GPU compiles these same functions, so that its results have the same bits. */
#if defined(__CUDACC__)
#define MT_LEAF static __device__ inline
#else
#define MT_LEAF static inline
#endif

MT_LEAF float mt_f32_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

MT_LEAF uint32_t mt_f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

MT_LEAF float mt_f32_from_bf16(mt_bf16 h)
{
    return mt_f32_from_bits((uint32_t)h << 16);
}

/* 2^112 moves the exponent bias from 15 to 127 and normalises subnormals, exactly. */
MT_LEAF float mt_f32_from_f16(mt_f16 h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, magnitude = h & 0x7fffu;
    if (magnitude >= 0x7c00u)
        return mt_f32_from_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    return mt_f32_from_bits(sign | mt_f32_bits(mt_f32_from_bits(magnitude << 13) * 0x1p112f));
}

/* E4M3 without NaN: the code 0x7f is 480, as in MLX. */
MT_LEAF float mt_f32_from_e4m3(uint8_t b)
{
    uint32_t sign = (uint32_t)(b & 0x80u) << 24, magnitude = b & 0x7fu;
    return mt_f32_from_bits(sign | mt_f32_bits(mt_f32_from_bits(magnitude << 20) * 0x1p120f));
}

/* E4M3 with NaN at 0x7f and 0xff, as torch.float8_e4m3fn. */
MT_LEAF float mt_f32_from_fp8(uint8_t b)
{
    return (b & 0x7fu) == 0x7fu ? mt_f32_from_bits(0x7fc00000u) : mt_f32_from_e4m3(b);
}

/* 2^(b - 127); 0 is the subnormal 2^-127 and 255 overflows to infinity. */
MT_LEAF float mt_f32_from_e8m0(uint8_t b)
{
    return mt_f32_from_bits(b == 0 ? 0x00400000u : (uint32_t)b << 23);
}

/* Twice the value of an E2M1 code: an integer from -12 to 12. */
MT_LEAF int mt_e2m1_doubled(unsigned code)
{
    static const int8_t doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    return doubled[code & 15u];
}

/* Number of scales that share an f16; 1 for types in which each is a number of its own. */
MT_LEAF size_t mt_scale_together(mt_scale_type type)
{
    return type == MT_SCALE_8_OF_F16 ? 8 : type == MT_SCALE_16_OF_F16 ? 16 : 1;
}

/* Bytes of one scale; of a record (an f16 and the signed bytes of its scales) where scales share an f16. */
MT_LEAF size_t mt_scale_size(mt_scale_type type)
{
    switch (type) {
    case MT_SCALE_F32: return 4;
    case MT_SCALE_F16:
    case MT_SCALE_BF16: return 2;
    case MT_SCALE_E8M0:
    case MT_SCALE_E4M3: return 1;
    case MT_SCALE_8_OF_F16: return 10;
    case MT_SCALE_16_OF_F16: return 18;
    case MT_SCALE_NONE: break;
    }
    return 0;
}

/* Bytes of `count` scales; where they share an f16, of as many records as these need. */
MT_LEAF size_t mt_scale_bytes(mt_scale_type type, size_t count)
{
    const size_t together = mt_scale_together(type);
    return (count + together - 1) / together * mt_scale_size(type);
}

/* Scale i of an array of records. */
MT_LEAF float mt_scale_shared(const uint8_t *scales, mt_scale_type type, size_t i)
{
    const size_t together = mt_scale_together(type);
    const uint8_t *record = scales + i / together * mt_scale_size(type);
    uint16_t half;
    memcpy(&half, record, 2);
    return mt_f32_from_f16(half) * (float)(int8_t)record[2 + i % together];
}

/* Element i of an unaligned array of scales. */
MT_LEAF float mt_scale_f32(const uint8_t *scales, mt_scale_type type, size_t i)
{
    uint16_t half;
    float x;
    switch (type) {
    case MT_SCALE_F32: memcpy(&x, scales + 4 * i, 4); return x;
    case MT_SCALE_F16: memcpy(&half, scales + 2 * i, 2); return mt_f32_from_f16(half);
    case MT_SCALE_BF16: memcpy(&half, scales + 2 * i, 2); return mt_f32_from_bf16(half);
    case MT_SCALE_E8M0: return mt_f32_from_e8m0(scales[i]);
    case MT_SCALE_E4M3: return mt_f32_from_e4m3(scales[i]);
    case MT_SCALE_8_OF_F16:
    case MT_SCALE_16_OF_F16: return mt_scale_shared(scales, type, i);
    case MT_SCALE_NONE: break;
    }
    return 1.0f;
}

#endif
