/* The recurrence of GatedDeltaNet on AVX2. */
#include "kernels/x86/delta_tmpl.h"
