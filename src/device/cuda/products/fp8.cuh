/* FP8 as bf16, for the kernels that multiply with it. */
#ifndef MT_DEVICE_CUDA_PRODUCTS_FP8_CUH
#define MT_DEVICE_CUDA_PRODUCTS_FP8_CUH

#include "device/cuda/products/product.cuh"

/* Four elements of FP8, none of them NaN, as bf16: those of k and k + 1, then those of k + 8 and k + 9. A word has
   them, a, b, c and d, in such a way that few instructions put their bits where bf16 has them:

       bits of a half    the lower half                the upper half
       15                sign of a                     sign of b
       14 to 11          exponent of c                 exponent of d
       10 to 4           exponent, mantissa of a       exponent, mantissa of b
       3                 sign of d                     sign of c
       2 to 0            mantissa of c                 mantissa of d

   The exponent's bias goes from 7 to 127 by a product with 2^120. */
static __device__ inline void widen(unsigned to[2], unsigned word)
{
    const unsigned turned = __funnelshift_r(word, word, 4), up = word * 16;
    const unsigned y[2] = {word & 0x87f087f0u, ((turned & 0xff8fff8fu) | (up & 0x00700070u)) & 0x87f087f0u};
#pragma unroll
    for (int h = 0; h < 2; h++) {
#if ARCH >= 90
        asm("mul.rn.bf16x2 %0,%1,%2;" : "=r"(to[h]) : "r"(y[h]), "r"(0x7b807b80u));
#else
        to[h] = mt_bf16_from_f32(mt_f32_from_bits(y[h] << 16) * 0x1p120f) |
                mt_bf16_from_f32(mt_f32_from_bits(y[h] & 0xffff0000u) * 0x1p120f) << 16;
#endif
    }
}

#endif
