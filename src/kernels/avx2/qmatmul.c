/* Integer matmul by R3 and R4 on AVX2. */
#include "kernels/x86/qmatmul_tmpl.h"
#include "kernels/x86/qpack_tmpl.h"
