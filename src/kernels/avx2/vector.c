/* Elementwise kernels and reductions (R6 of docs/numerics.md) on AVX2. */
#include "kernels/x86/vector_tmpl.h"
