/* Integer products of one row of activations with weights of GGUF's block types, read in place. */
#ifndef MT_KERNELS_NEON_QBLOCK_H
#define MT_KERNELS_NEON_QBLOCK_H

#include "kernels/neon/qnibble.h"

/* Whether qblock_dotprod.c can multiply this matrix. */
bool mt_q_block_handles_dotprod(const mt_mat *w);

/* Computes columns n0 + i, n0 + step + i, n0 + 2 step + i and n0 + 3 step + i for i < step; sum: of each unit's x;
   scratch: 2 bytes for each element of k, and 64 more. */
void mt_q_block_dotprod(float *y, size_t n0, size_t step, const mt_nibble_row *row, const int32_t *sum,
                        uint8_t *scratch);

/* The same for qsuper_dotprod.c, and y[j] for n0 <= j < n1, a multiple of four columns; scratch: 4 bytes a block. */
bool mt_q_super_handles_dotprod(const mt_mat *w);
void mt_q_super_dotprod(float *y, size_t n0, size_t n1, const mt_nibble_row *row, const int32_t *sum, uint8_t *scratch);

#endif
