/* Integer products (R4 of docs/numerics.md) with VPDPBUSD of AVX-VNNI; rows are packed as for AVX2. */
#include "kernels/x86/qmatmul_tmpl.h"
