/* What one tensor-core step of sm_90 adds (mma.sync m16n8k16 and wgmma k16, fp16 and bf16 operands, fp32 sums), as
   plain C with the card's bits. With more of k the steps follow each other ascending, each adding to the sum of the last.

   The sum of finite numbers: every product is exact. The top is the largest exponent among c and the products, where a
   product has the sum of its operands' exponents (it is not normalised) and zeros do not count. Each addend is cut
   towards zero to a multiple of 2^(top - 25), these are added exactly, and the sum is cut towards zero to fp32.

   Seen on an H200: finite sums. Not seen on a card yet: NaN, infinities, overflow and the sign of zero. */
#ifndef MT_DEVICE_SM90_H
#define MT_DEVICE_SM90_H

#include "kernels/matrix.h"

enum { MT_SM90_K = 16 }; /* products of a step */

float mt_sm90_dot_f16(float c, const mt_f16 a[MT_SM90_K], const mt_f16 b[MT_SM90_K]);
float mt_sm90_dot_bf16(float c, const mt_bf16 a[MT_SM90_K], const mt_bf16 b[MT_SM90_K]);

#endif
