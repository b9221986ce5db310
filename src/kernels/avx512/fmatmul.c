/* R6 products on AVX-512. */
#include "kernels/x86/fmatmul_tmpl.h"
