/* R5, widened to fp32, on AVX2. */
#include "kernels/x86/bmatmul_tmpl.h"
