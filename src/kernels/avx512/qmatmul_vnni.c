/* Integer products (R4 of docs/numerics.md) with VPDPBUSD; rows are packed as for AVX-512. */
#include "kernels/x86/qmatmul_tmpl.h"
