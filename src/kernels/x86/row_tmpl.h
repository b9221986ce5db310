/* One row of a weight matrix as fp32, for every format. */
#include "kernels/levels.h"
#include "kernels/x86/widen.h"

void MT_LEVEL(row_f32)(float *y, const mt_mat *w, size_t r)
{
    mt_widen(y, w, r, 0, w->k);
}
