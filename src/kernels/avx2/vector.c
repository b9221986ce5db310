#include "kernels/x86/vector_tmpl.c"
