/* Rules that every backend follows, so that results (docs/numerics.md) and the layout of pages are the same. */
#ifndef MT_DEVICE_RULES_H
#define MT_DEVICE_RULES_H

#include "device/device.h"

/* How a weight is multiplied: quantised codes by exact integers (R3, R4), bf16 and what widens to it (R5), floats (R2),
   or codes that are decoded to fp16 (native.h). */
typedef enum mt_class { MT_CLASS_Q, MT_CLASS_B, MT_CLASS_F, MT_CLASS_N } mt_class;

/* exact: products are wanted in fp32. */
mt_class mt_rules_class(mt_precision precision, mt_numerics numerics, const mt_mat *mat, bool exact);

/* Bits of an element of keys and values that are integers with scales; 0 for other types. */
unsigned mt_rules_kv_bits(mt_kv_type type);

/* Elements from one position's vector of a head to the next; bytes of a head's keys, or values, in a page; how many
   such blocks a layer has. */
size_t mt_rules_kv_stride(const mt_kv_shape *shape);
size_t mt_rules_kv_block(const mt_kv_shape *shape);
size_t mt_rules_kv_blocks(const mt_kv_shape *shape);

/* Where values are parts of keys and elements are integers, the latents and what else a key has are blocks of their
   own, each with its scales, so that neither decides how the other is rounded. */
typedef struct mt_kv_parts {
    size_t stride[2]; /* elements from one position to the next, of either; 0: there is no second */
    size_t second;    /* offset of the second block */
} mt_kv_parts;
mt_kv_parts mt_rules_kv_parts(const mt_kv_shape *shape);

enum { MT_SM90 = 90 }; /* the level of R5 of a GPU of compute capability 9.0 */

/* A way of computing (R12): what a fingerprint stands for. */
typedef struct mt_way {
    unsigned version; /* of the rules: MT_NUMERICS_VERSION */
    unsigned level;   /* of R5: that of kernels (kernels.h), or a GPU's compute capability, as 90 */
    bool native;      /* the arithmetic of products with quantised weights */
    mt_kv_bits kv_bits;
    mt_precision precision;
} mt_way;

uint32_t mt_rules_fingerprint(const mt_way *way);
mt_way mt_rules_way(uint32_t fingerprint);

#endif
