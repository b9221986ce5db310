/* Integer products with quantised weights (R3 and R4 of docs/numerics.md) on AVX2. */
#include "kernels/x86/qmatmul_tmpl.h"
#include "kernels/x86/qpack_tmpl.h"
