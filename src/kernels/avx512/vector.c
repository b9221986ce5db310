/* Elementwise kernels and reductions (R6 of docs/numerics.md) on AVX-512. */
#include "kernels/x86/vector_tmpl.h"
