/* Products with bf16 rows (R5 of docs/numerics.md), widened to fp32, on AVX-512. */
#include "kernels/x86/bmatmul_tmpl.h"
