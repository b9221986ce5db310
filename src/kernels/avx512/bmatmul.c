#include "kernels/x86/bmatmul_tmpl.c"
