/* Shared by the files of the binder and by nobody else. */
#ifndef MT_WEIGHTS_BIND_INTERNAL_H
#define MT_WEIGHTS_BIND_INTERNAL_H

#include "base/buf.h"
#include "base/progress.h"
#include "weights/bind.h"
#include "weights/quant.h"

#define MT_BIND_NAME (2 * MT_LIMIT_TENSOR_NAME) /* bytes of a name we make */
#define MT_FP8_BLOCK 128
#define MT_MXFP4_GROUP 32

/* What became of a tensor of the checkpoint. */
typedef enum mt_bind_state { MT_BIND_UNUSED, MT_BIND_IN_PLACE, MT_BIND_COPIED } mt_bind_state;

struct mt_binder {
    const mt_checkpoint *c; /* borrowed */
    mt_arena *arena;        /* borrowed */
    bool headers_only;      /* nothing may be read from the tensors */
    mt_error failed;        /* what makes the checkpoint unusable as a whole; comes before the report */
    mt_quant quant;
    const char *prefix;             /* of text tensors; static */
    const char *guess;              /* of the head that guesses ahead */
    const char *vision, *projector; /* of a tower's, and of what joins it to the text model; static */
    uint8_t *state;                 /* mt_bind_state per tensor of the checkpoint */
    mt_buf report;                  /* the first problems */
    size_t problems, shown;
    mt_progress progress;
    mt_bind_cost cost;
};

/* Has the tensors that are used in place read from the disk, those that are not in memory yet, unless all of them are
   more than the machine's memory. The first steps would, bit by bit and without a word. */
void mt_binder_warm(const mt_binder *b);

/* The full name of the module or tensor at path, into out[MT_BIND_NAME]. */
void mt_binder_name(const mt_binder *b, const char *path, char *out);

/* The tensor of that full name with a suffix, or NULL. _take also notes that it is used where it is, _copied that a
   copy is used instead. */
const mt_tensor_info *mt_binder_find(const mt_binder *b, const char *name, const char *suffix);
const mt_tensor_info *mt_binder_use(mt_binder *b, const char *name, const char *suffix);
void mt_binder_copied(mt_binder *b, const mt_tensor_info *t);

/* Any tensor whose full name begins so. */
bool mt_binder_any(const mt_binder *b, const char *name, const char *suffix);

/* One more line in the report; returns false. wanted is a shape; found says what is there instead. */
bool mt_binder_miss(mt_binder *b, const char *name, const char *wanted, const char *found, ...) MT_PRINTF(4, 5);

/* "[128, 64, 32]" into a buffer of MT_SHAPE_TEXT bytes. */
#define MT_SHAPE_TEXT 192
void mt_shape_text(char *out, const uint64_t *shape, unsigned dims);

/* The module of that full name as `stack` matrices [n, k] behind each other (stack 0: one, and no dimension for it).
   *out is the first of them; the others follow by mt_mat_item. Reports what is wrong. */
bool mt_bind_module(mt_binder *b, const char *name, size_t stack, size_t n, size_t k, mt_mat *out);

/* A plain matrix [n, k] in memory that is laid out as the file lays it out. dtype is F32, F16 or BF16. */
mt_mat mt_mat_plain(mt_dtype dtype, const uint8_t *data, size_t n, size_t k);
size_t mt_dtype_size(mt_dtype dtype); /* 0 for what mt_mat_plain does not take */

/* Item i of a stack whose first is m. */
mt_mat mt_mat_item(const mt_mat *m, size_t i);

/* Arena memory for a copy, counted; NULL when the arena's limit is reached, which is then the binder's failure. */
void *mt_binder_copy(mt_binder *b, size_t bytes);

#endif
