/* Folds the 16 lanes of R6 (docs/numerics.md) where a lane is an array of registers: 8, 4, 2, 1. Lanes come one by
   one in an order in which a few arrays keep all sums that wait for others. */
#ifndef MT_KERNELS_X86_ATTN_FOLD_H
#define MT_KERNELS_X86_ATTN_FOLD_H

#include "kernels/x86/simd.h"

#if defined(MT_LEVEL)

enum { MT_FOLDS = 5 }; /* of the arrays, the last has the result */

static const uint8_t mt_fold_order[MT_LANES] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};

/* lane: the sums of lane mt_fold_order[n], n ascending; holds the sums of all lanes behind the last. Arrays of stack
   are `apart` registers apart. */
MT_INLINE void mt_fold_lane(vf *lane, vf *stack, size_t apart, size_t n, size_t count)
{
    for (; n & 1; n >>= 1, stack += apart) {
        MT_UNROLL
        for (size_t i = 0; i < count; i++)
            lane[i] = vf_add(stack[i], lane[i]);
    }
    MT_UNROLL
    for (size_t i = 0; i < count; i++)
        stack[i] = lane[i];
}

#endif

#endif
