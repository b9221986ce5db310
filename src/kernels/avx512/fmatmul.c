/* Products in fp32 (R6 of docs/numerics.md) on AVX-512. */
#include "kernels/x86/fmatmul_tmpl.h"
