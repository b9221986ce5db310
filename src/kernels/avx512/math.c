/* R7 on AVX-512. */
#include "kernels/x86/math_tmpl.h"
