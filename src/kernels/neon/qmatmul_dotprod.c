/* Integer products (R4 of docs/numerics.md) with SDOT. */
#include <arm_neon.h>

#define MT_QNAME(name) mt_##name##_dotprod
#define MT_QDOT(acc, a, b) vdotq_s32(acc, a, b)
#define MT_QNIBBLES

#include "kernels/neon/qsdot_tmpl.h"
