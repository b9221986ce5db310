/* Counts a checkpoint's tensors by how they are stored, from headers alone; for `motet info`. */
#ifndef MT_WEIGHTS_CENSUS_H
#define MT_WEIGHTS_CENSUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "weights/checkpoint.h"
#include "weights/quant.h"

#define MT_CENSUS_KINDS 24 /* further kinds are counted together as the last */

/* Matrices that are stored alike. */
typedef struct mt_census_kind {
    char label[48]; /* "affine 4-bit group 64", "bf16", "I8" */
    bool quantised;
    size_t tensors;
    uint64_t parameters;
} mt_census_kind;

typedef struct mt_census {
    uint64_t parameters; /* logical: a packed matrix [n, k] counts n * k; scales do not count */
    size_t count;
    mt_census_kind kind[MT_CENSUS_KINDS]; /* quantised ones first, each by decreasing parameters */
    char embedding[48];                   /* label of the embedding's kind; "": no embedding was found */
    size_t unread;                        /* tensors of dtypes that cannot be used */
    char unread_dtype[40];                /* of one of them */
} mt_census;

void mt_census_make(mt_census *out, const mt_checkpoint *c, const mt_quant *q);

/* Appends "affine 4-bit group 64; 37 tensors affine 8-bit group 64; embeddings bf16", or "none (bf16)". */
void mt_census_summary(const mt_census *census, mt_buf *out);

#endif
