/* Shared by the files bind*.c only. */
#ifndef MT_WEIGHTS_BIND_INTERNAL_H
#define MT_WEIGHTS_BIND_INTERNAL_H

#include "base/buf.h"
#include "base/pool.h"
#include "base/progress.h"
#include "weights/bind.h"
#include "weights/quant.h"

#define MT_BIND_NAME (2 * MT_LIMIT_TENSOR_NAME) /* most bytes of a full name */
/* rows and columns of a block with one scale; elements of a group with one scale */
#define MT_FP8_BLOCK 128
#define MT_MXFP4_GROUP 32

/* What a tensor of the checkpoint is used for. */
typedef enum mt_bind_state { MT_BIND_UNUSED, MT_BIND_IN_PLACE, MT_BIND_COPIED } mt_bind_state;

struct mt_binder {
    const mt_checkpoint *c; /* borrowed */
    mt_arena *arena;        /* borrowed */
    bool headers_only;      /* the checkpoint was opened by mt_checkpoint_inspect: tensors must not be read */
    mt_error failed;        /* an error that makes the whole checkpoint unusable; reported before missing tensors */
    mt_quant quant;
    const char *prefix;             /* of text tensors; a static string */
    const char *guess;              /* of the drafting head's; a static string */
    const char *vision, *projector; /* of the tower's, and of what joins it to the text model; static strings */
    uint8_t *state;                 /* [tensors of the checkpoint]: mt_bind_state */
    mt_buf report;                  /* lines about the first problems */
    size_t problems, shown;         /* problems in all, and those in the report */
    mt_progress progress;
    mt_bind_cost cost;
    mt_pool *pool; /* for laying out blocks; NULL until there are some */
};

/* Reads the tensors that are used in place into memory, unless together they are larger than the machine's memory.
   Otherwise the first steps would read them in small pieces, without any progress being shown. */
void mt_binder_warm(const mt_binder *b);

/* Writes the full name of the module or tensor at a canonical path to out[MT_BIND_NAME]. */
void mt_binder_name(const mt_binder *b, const char *path, char *out);

/* The tensor with that full name and suffix, or NULL. mt_binder_use also marks it as used in place, mt_binder_copied as
   copied. */
const mt_tensor_info *mt_binder_find(const mt_binder *b, const char *name, const char *suffix);
const mt_tensor_info *mt_binder_use(mt_binder *b, const char *name, const char *suffix);
void mt_binder_copied(mt_binder *b, const mt_tensor_info *t);

/* Whether the full name of any tensor begins with name and suffix. */
bool mt_binder_any(const mt_binder *b, const char *name, const char *suffix);

/* Adds a line to the report; returns false. wanted: the expected shape; found: what is there instead. */
bool mt_binder_miss(mt_binder *b, const char *name, const char *wanted, const char *found, ...) MT_PRINTF(4, 5);

/* Writes "[128, 64, 32]" to a buffer of MT_SHAPE_TEXT bytes. */
#define MT_SHAPE_TEXT 192
void mt_shape_text(char *out, const uint64_t *shape, unsigned dims);

/* The module with that full name as `stack` matrices [n, k] one behind the other (stack 0: one matrix, without that
   dimension). *out is the first; the others follow by mt_mat_item. Reports what is wrong. */
bool mt_bind_module(mt_binder *b, const char *name, size_t stack, size_t n, size_t k, mt_mat *out);

/* A plain matrix [n, k] with the file's layout. dtype is F32, F16 or BF16. */
mt_mat mt_mat_plain(mt_dtype dtype, const uint8_t *data, size_t n, size_t k);
size_t mt_dtype_size(mt_dtype dtype); /* bytes of an element; 0 for dtypes that mt_mat_plain does not take */

/* Item i of a stack whose first is m. */
mt_mat mt_mat_item(const mt_mat *m, size_t i);

/* Arena memory for a copy, counted in the cost; NULL where the arena's limit is reached, which fails the binder. */
void *mt_binder_copy(mt_binder *b, size_t bytes);

#endif
