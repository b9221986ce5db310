#include "kernels/x86/qmatmul_tmpl.c"
