/* What kernels, backends and loaders need to know of a format of weights: one table, a row for each format. A format
   whose weights are codes is added by its name in matrix.h and its row in format.c; other files ask for these
   properties. Only kernels that were written for one format, and readers of layouts that only it has, name it. */
#ifndef MT_KERNELS_FORMAT_H
#define MT_KERNELS_FORMAT_H

#include "kernels/matrix.h"

/* How a matrix is multiplied in fast precision (docs/numerics.md). */
typedef enum mt_products {
    MT_PRODUCTS_F32,     /* R6: fp32 */
    MT_PRODUCTS_INTEGER, /* R3, R4: codes with scales, against activations of 8 bits */
    MT_PRODUCTS_BF16     /* R5: weights and activations as bf16 */
} mt_products;

/* The integers of a format's 16 codes. */
typedef struct mt_code_integers {
    int8_t of[16];
    uint8_t lift; /* the largest negative integer, without its sign: added to all of them, it makes them unsigned */
    uint8_t top;  /* the largest integer after that */
} mt_code_integers;

typedef struct mt_format_traits {
    const char *name;
    mt_products products;
    mt_scale_type scale_type; /* the only type that its scales have; NONE: several */
    bool biased;              /* codes stand for themselves, and a group has a bias beside its scale */
    bool halved;              /* integers are twice what codes stand for, so that scales count half */
    bool global;              /* a matrix may have a factor of its own (mt_mat.global) */
    /* Of codes of 4 bits that are looked up. NULL: codes are consecutive integers, from 0 where biased, else from
       -2^(bits - 1). */
    const mt_code_integers *integers;
} mt_format_traits;

extern const mt_format_traits mt_formats[]; /* by mt_format */

#endif
