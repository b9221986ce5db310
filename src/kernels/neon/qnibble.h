/* Integer products of one row of activations with AFFINE weights of 4 bits with bf16 scales, read in place. */
#ifndef MT_KERNELS_NEON_QNIBBLE_H
#define MT_KERNELS_NEON_QNIBBLE_H

#include <string.h>

#include "kernels/block.h"
#include "kernels/kernels.h"

typedef struct mt_nibble_row {
    const mt_mat *w;
    const int8_t *x;             /* [k] in paired order */
    const float *mul, *add, *sx; /* [blocks], [blocks], [groups] */
    const float *stream;         /* written by mt_nibble_stream */
    size_t groups;
} mt_nibble_row;

/* Results lag two blocks behind dot products, so the stream is eight zeros, then for every four blocks mul[4] and each
   add four times. */
static inline size_t mt_nibble_floats(size_t blocks)
{
    return 8 + (blocks + 3) / 4 * 20;
}

static inline void mt_nibble_stream(float *out, const float *mul, const float *add, size_t blocks)
{
    memset(out, 0, mt_nibble_floats(blocks) * sizeof(*out));
    for (size_t b = 0; b < blocks; b++) {
        float *four = out + 8 + b / 4 * 20, *each = four + 4 + b % 4 * 4;
        four[b % 4] = mul[b];
        each[0] = each[1] = each[2] = each[3] = add[b];
    }
}

/* Whether qnibble_dotprod.c can multiply this matrix. */
bool mt_q_nibbles_handles_dotprod(const mt_mat *w);

/* y[j] for n0 <= j < n1, a multiple of four columns */
void mt_q_nibbles_dotprod(float *y, size_t n0, size_t n1, const mt_nibble_row *row);

#endif
