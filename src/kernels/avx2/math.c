/* R7 on AVX2. */
#include "kernels/x86/math_tmpl.h"
