/* Products in fp32 (R6 of docs/numerics.md) on NEON: rows of W are widened a block at a time, or read in place where
   they are fp32. */
#include "kernels/levels.h"
#include "kernels/neon/ftile.h"

enum { BLOCK = 8 }; /* rows of W widened at once */

size_t mt_f_scratch_bytes_neon(size_t k)
{
    return BLOCK * k * sizeof(float);
}

static const float *row(const mt_mat *w, size_t j, float *scratch)
{
    const uint8_t *p = w->w + j * w->stride;
    if (w->format == MT_FORMAT_F32 && (uintptr_t)p % sizeof(float) == 0)
        return (const float *)(const void *)p;
    mt_ftile_row(scratch, w, j);
    return scratch;
}

void mt_f_matmul_neon(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const float *x, size_t ldx,
                      const uint32_t *index, size_t m, uint8_t *scratch)
{
    const float *wide[BLOCK], *rows[MT_FTILE_X];
    mt_ftile out;
    for (size_t j0 = n0; j0 < n1; j0 += BLOCK) {
        size_t count = n1 - j0 < BLOCK ? n1 - j0 : BLOCK;
        for (size_t j = 0; j < count; j++)
            wide[j] = row(w, j0 + j, (float *)(void *)scratch + j * w->k);
        for (size_t i = 0; i < m; i += MT_FTILE_X) {
            size_t nc = m - i < MT_FTILE_X ? m - i : MT_FTILE_X;
            for (size_t c = 0; c < nc; c++)
                rows[c] = x + (index ? index[i + c] : i + c) * ldx;
            for (size_t j = 0; j < count; j += MT_FTILE_W) {
                size_t nr = count - j < MT_FTILE_W ? count - j : MT_FTILE_W;
                mt_ftile_dot(&out, wide + j, rows, w->k, nr, nc);
                for (size_t c = 0; c < nc; c++)
                    memcpy(y + (i + c) * ldy + j0 + j, out.v[c], nr * sizeof(float));
            }
        }
    }
}
