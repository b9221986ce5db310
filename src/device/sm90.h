/* What one tensor-core step of sm_90 adds (mma.sync m16n8k16 and wgmma k16, fp16 and bf16 operands, fp32 sums), as
   plain C with the card's bits. With more of k the steps follow each other ascending, each adding to the sum of the
   last.

   The sum of finite numbers: every product is exact. The top is the largest exponent among c and the products, where a
   product has the sum of its operands' exponents (it is not normalised) and zeros do not count. Each addend is cut
   towards zero to a multiple of 2^(top - 25), these are added exactly, and the sum is cut towards zero to fp32. A sum
   that is zero, or is cut to zero, is +0 whatever the signs; one of 2^128 or more is an infinity. A NaN, infinities of
   both signs, or an infinity times zero give the NaN 0x7fffffff; otherwise an infinity gives itself.

   Seen on an H200 on 18 November 2026: 239 million sums, half of them of each format, mma.sync equal to wgmma and both
   to this code. Kinds: even and wide exponents, cancellation among products and with c, subnormal operands and results,
   powers of two, outliers, any finite bits, signed zeros, NaN and its payloads, infinities, infinities times zero,
   overflow of products, of sums and of terms that cancel. tests/cuda/sm90.c looks again on the card it runs on. */
#ifndef MT_DEVICE_SM90_H
#define MT_DEVICE_SM90_H

#include "kernels/matrix.h"

enum { MT_SM90_K = 16 }; /* products of a step */

float mt_sm90_dot_f16(float c, const mt_f16 a[MT_SM90_K], const mt_f16 b[MT_SM90_K]);
float mt_sm90_dot_bf16(float c, const mt_bf16 a[MT_SM90_K], const mt_bf16 b[MT_SM90_K]);

#endif
