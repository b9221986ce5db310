/* Products in fp32 (R6 of docs/numerics.md): rows of W are widened a few at a time and multiplied with every row of x
   while they are cached. */
#include "kernels/levels.h"
#include "kernels/portable/scalar.h"

enum { BLOCK = 4 }; /* rows of W widened at once */

size_t mt_f_scratch_bytes_portable(size_t k)
{
    return BLOCK * mt_round_up(k, MT_LANES) * sizeof(float);
}

void mt_f_matmul_portable(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const float *x, size_t ldx,
                          const uint32_t *index, size_t m, uint8_t *scratch)
{
    float *rows = (float *)(void *)scratch;
    for (size_t j0 = n0; j0 < n1; j0 += BLOCK) {
        size_t count = n1 - j0 < BLOCK ? n1 - j0 : BLOCK;
        for (size_t j = 0; j < count; j++)
            mt_row_f32_portable(rows + j * w->k, w, j0 + j);
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < count; j++)
                y[i * ldy + j0 + j] = mt_dot1(rows + j * w->k, x + (index ? index[i] : i) * ldx, w->k);
    }
}
