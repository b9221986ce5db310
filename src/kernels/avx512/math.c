/* exp, log, tanh and others (R7 of docs/numerics.md) on AVX-512. */
#include "kernels/x86/math_tmpl.h"
