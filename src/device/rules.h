/* What every backend keeps to, so that its answers are those of the others (docs/numerics.md), and what it keeps has
   their layout. */
#ifndef MT_DEVICE_RULES_H
#define MT_DEVICE_RULES_H

#include "device/device.h"

/* How a weight is multiplied: codes by exact integers (R3, R4), bf16 and what widens to it (R5), or floats (R2). */
typedef enum mt_class { MT_CLASS_Q, MT_CLASS_B, MT_CLASS_F } mt_class;

/* exact: whoever has the weight wants floats. */
mt_class mt_rules_class(mt_precision precision, const mt_mat *mat, bool exact);

/* Bits of an element of keys and values that are integers with scales; else 0. */
unsigned mt_rules_kv_bits(mt_kv_type type);

/* Elements from one head's key to the next, and the bytes of a head's keys, or values, of a page. */
size_t mt_rules_kv_stride(const mt_kv_shape *shape);
size_t mt_rules_kv_block(const mt_kv_shape *shape);

#endif
