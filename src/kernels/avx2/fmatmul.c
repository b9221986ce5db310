/* Products in fp32 (R6 of docs/numerics.md) on AVX2. */
#include "kernels/x86/fmatmul_tmpl.h"
