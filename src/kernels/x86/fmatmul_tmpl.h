/* Products in fp32 (R6 of docs/numerics.md) with weights of any format. */
#include "kernels/levels.h"
#include "kernels/x86/fproduct.h"

size_t MT_LEVEL(f_scratch_bytes)(size_t k)
{
    (void)k;
    return mt_fproduct_scratch();
}

void MT_LEVEL(f_matmul)(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const float *x, size_t ldx,
                        const uint32_t *index, size_t m, uint8_t *scratch)
{
    mt_fproduct p = {.y = y, .ldy = ldy, .w = w, .x = x, .ldx = ldx, .index = index};
    mt_fproduct_run(&p, m, n0, n1, scratch);
}
