/* Integer products of one row of activations with MXFP4 weights, read in place. */
#ifndef MT_KERNELS_NEON_QMX_H
#define MT_KERNELS_NEON_QMX_H

#include "kernels/neon/qnibble.h"

/* Computes columns n0 + i, n0 + step + i, n0 + 2 step + i and n0 + 3 step + i for i < step; scratch: 28 bytes for each
   group, and 128 more. */
void mt_q_mx_dotprod(float *y, size_t n0, size_t step, const mt_nibble_row *row, uint8_t *scratch);

#endif
