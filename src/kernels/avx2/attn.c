#include "kernels/x86/attn_tmpl.c"
