/* One row of activations against AFFINE weights of 4 bits with bf16 scales, read in place. */
#ifndef MT_KERNELS_NEON_QNIBBLE_H
#define MT_KERNELS_NEON_QNIBBLE_H

#include "kernels/kernels.h"

typedef struct mt_nibble_row {
    const mt_mat *w;
    const int8_t *x;      /* [k] in paired order */
    const float *xs, *sx; /* [groups] */
    size_t groups;
} mt_nibble_row;

/* Whether qnibble_dotprod.c can multiply such a matrix. */
bool mt_q_nibbles_handles_dotprod(const mt_mat *w);

/* y[j] for n0 <= j < n1, a multiple of four columns */
void mt_q_nibbles_dotprod(float *y, size_t n0, size_t n1, const mt_nibble_row *row);

#endif
