#include "kernels/x86/math_tmpl.c"
