#include "kernels/x86/qpack_tmpl.c"
#include "kernels/x86/qmatmul_tmpl.c"
