/* R6 products on AVX2. */
#include "kernels/x86/fmatmul_tmpl.h"
