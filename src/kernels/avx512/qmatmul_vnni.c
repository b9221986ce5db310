/* Integer matmul by R4 with VPDPBUSD; rows are packed as for AVX-512. */
#include "kernels/x86/qmatmul_tmpl.h"
