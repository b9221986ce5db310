/* Integer products (R4 of docs/numerics.md) on every aarch64 processor: two products of bytes fit 16 bits (127 * 128 *
   2 < 2^15). */
#include <arm_neon.h>

static inline int32x4_t dot4(int32x4_t acc, int8x16_t a, int8x16_t b)
{
    int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(b)), high = vmull_high_s8(a, b);
    return vpadalq_s16(acc, vpaddq_s16(low, high));
}

#define MT_QNAME(name) mt_##name##_neon
#define MT_QDOT(acc, a, b) dot4(acc, a, b)

#include "kernels/neon/qsdot_tmpl.h"
