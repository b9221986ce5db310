/* The recurrence of GatedDeltaNet on AVX-512. */
#include "kernels/x86/delta_tmpl.h"
