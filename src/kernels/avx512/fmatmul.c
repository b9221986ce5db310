#include "kernels/x86/fmatmul_tmpl.c"
