/* Integer products of one row of activations with 8-bit weights read in place. */
#ifndef MT_KERNELS_NEON_QONE_H
#define MT_KERNELS_NEON_QONE_H

#include "kernels/kernels.h"

/* Columns n0 + i, n0 + step + i, n0 + 2 step + i and n0 + 3 step + i for i < step. */
typedef struct mt_one {
    float *y;
    size_t n0, step, groups;
    const mt_mat *w;
    const int8_t *x;             /* [k] in paired order */
    const float *mul, *add, *sx; /* [blocks], [blocks], [groups] */
    const int32_t *sum;          /* [blocks], of x */
} mt_one;

/* Whether qone_i8mm.c can multiply this matrix. */
bool mt_q_one_handles_i8mm(const mt_mat *w);

/* scratch: k bytes */
void mt_q_one_i8mm(const mt_one *p, uint8_t *scratch);

#endif
