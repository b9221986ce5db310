/* One row of a weight matrix as fp32 on AVX2. */
#include "kernels/x86/row_tmpl.h"
