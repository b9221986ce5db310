/* Elementwise kernels and R6 reductions on AVX-512. */
#include "kernels/x86/vector_tmpl.h"
