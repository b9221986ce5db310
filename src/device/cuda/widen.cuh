/* FP8 as bf16, for the kernels that multiply with it. */
#ifndef MT_DEVICE_CUDA_WIDEN_CUH
#define MT_DEVICE_CUDA_WIDEN_CUH

#include "device/cuda/product.cuh"

/* Four bytes of FP8, none of them NaN, as bf16: the exponent's bias goes from 7 to 127 by a product with 2^120. */
static __device__ inline void widen(unsigned to[2], unsigned bytes)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const unsigned x = __byte_perm(bytes, 0, h ? 0x3424 : 0x1404);
        const unsigned y = (x >> 4 & 0x07f007f0u) | (x & 0x80008000u);
#if ARCH >= 90
        asm("mul.rn.bf16x2 %0,%1,%2;" : "=r"(to[h]) : "r"(y), "r"(0x7b807b80u));
#else
        to[h] = mt_bf16_from_f32(mt_f32_from_bits(y << 16) * 0x1p120f) |
                mt_bf16_from_f32(mt_f32_from_bits(y & 0xffff0000u) * 0x1p120f) << 16;
#endif
    }
}

#endif
