/* Products of one row of activations with FP8 or MXFP8 weights read in place. Used by bmatmul_bf16.c. */
#ifndef MT_KERNELS_NEON_BONE_H
#define MT_KERNELS_NEON_BONE_H

#include "kernels/kernels.h"

/* Computes the first columns of [n0, n1), a multiple of four; returns their end. x is a panel of one pair (btile.h). */
size_t mt_b_one_bf16(float *y, const mt_mat *w, size_t n0, size_t n1, const uint8_t *x);

#endif
