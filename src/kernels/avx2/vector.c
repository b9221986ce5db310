/* Elementwise kernels and R6 reductions on AVX2. */
#include "kernels/x86/vector_tmpl.h"
