#include "kernels/x86/row_tmpl.c"
