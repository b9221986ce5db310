/* Attention (R8 of docs/numerics.md) on AVX-512. */
#include "kernels/x86/attn_tmpl.h"
#include "kernels/x86/attnq_tmpl.h"
