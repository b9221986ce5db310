/* R5, widened to fp32, on AVX-512. */
#include "kernels/x86/bmatmul_tmpl.h"
