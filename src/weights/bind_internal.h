/* Shared by the files bind*.c only. */
#ifndef MT_WEIGHTS_BIND_INTERNAL_H
#define MT_WEIGHTS_BIND_INTERNAL_H

#include "base/buf.h"
#include "base/pool.h"
#include "base/progress.h"
#include "weights/bind.h"
#include "weights/limits.h"
#include "weights/quant.h"

#define MT_BIND_NAME (2 * MT_LIMIT_TENSOR_NAME) /* most bytes of a full name */
/* rows and columns of a block with one scale; elements of a group with one scale */
#define MT_FP8_BLOCK 128
#define MT_MXFP4_GROUP 32

/* The use of a tensor of the checkpoint. */
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
    mt_pool *pool; /* made by the first mt_binder_run */
};

/* Reads the tensors that are used in place into memory, unless together they are larger than the machine's memory.
   Otherwise the first steps would read them in small pieces, without any progress being shown. */
void mt_binder_warm(const mt_binder *b);

/* Writes the full name of the module or tensor at a canonical path to out[MT_BIND_NAME]. */
void mt_binder_name(const mt_binder *b, const char *path, char *out);

/* The tensor with that full name and suffix, or NULL. mt_binder_use also marks it as used in place, mt_binder_take and
   mt_binder_copied as copied. */
const mt_tensor_info *mt_binder_find(const mt_binder *b, const char *name, const char *suffix);
const mt_tensor_info *mt_binder_use(mt_binder *b, const char *name, const char *suffix);
const mt_tensor_info *mt_binder_take(mt_binder *b, const char *name, const char *suffix);
void mt_binder_copied(mt_binder *b, const mt_tensor_info *t);

/* Whether the full name of any tensor begins with name and suffix. */
bool mt_binder_any(const mt_binder *b, const char *name, const char *suffix);

/* Adds a line to the report; returns false. wanted: the expected shape; found: what is there instead. */
bool mt_binder_miss(mt_binder *b, const char *name, const char *wanted, const char *found, ...) MT_PRINTF(4, 5);

/* Writes "[128, 64, 32]" to a buffer of MT_SHAPE_TEXT bytes. */
#define MT_SHAPE_TEXT 192
void mt_shape_text(char *out, const uint64_t *shape, unsigned dims);

/* A module that is wanted: `stack` matrices [n, k] one behind the other; stack 0: one, without that dimension. */
typedef struct mt_wish {
    mt_binder *b;
    const char *name; /* full name of the module */
    size_t stack, n, k;
} mt_wish;

size_t mt_wish_rows(const mt_wish *w); /* of all matrices */

/* Whether t is [rows, cols], or [stack, rows, cols] where matrices are stacked. */
bool mt_wish_fits(const mt_wish *w, const mt_tensor_info *t, size_t rows, size_t cols);

/* Reports that t (NULL: nothing) was found instead; `what` and `companion` (may be NULL) say what was wrong with it. */
bool mt_wish_miss(const mt_wish *w, const char *what, const mt_tensor_info *t, const mt_tensor_info *companion);

/* The module with that full name as `stack` matrices [n, k] one behind the other (stack 0: one matrix, without that
   dimension). *out is the first; the others follow by mt_mat_item. Reports what is wrong. */
bool mt_bind_module(mt_binder *b, const char *name, size_t stack, size_t n, size_t k, mt_mat *out);

/* A plain matrix [n, k] with the file's layout. dtype is F32, F16 or BF16. */
mt_mat mt_mat_plain(mt_dtype dtype, const uint8_t *data, size_t n, size_t k);
size_t mt_dtype_size(mt_dtype dtype); /* bytes of an element; 0 for dtypes that mt_mat_plain does not take */

/* Item i of a stack whose first is m. */
mt_mat mt_mat_item(const mt_mat *m, size_t i);

/* Type of scales that are stored as dtype; NONE for dtypes other than F32, F16 and BF16. */
mt_scale_type mt_dtype_scale(mt_dtype dtype);

/* Element i of a tensor of F32, F16 or BF16. */
float mt_tensor_float(const mt_tensor_info *t, size_t i);

/* Calls fn for items [0, items) on all threads; returns when all are done. */
void mt_binder_run(mt_binder *b, mt_pool_fn *fn, void *ctx, size_t items);

/* Writes row `row` of all matrices as k floats; called by several threads at once. */
typedef void mt_row_fn(const void *ctx, size_t row, float *out);

/* Decodes a module for which the kernels have no format: to bf16, or f32 in reference precision. */
bool mt_bind_decoded(const mt_wish *w, mt_row_fn *row, const void *ctx, mt_mat *out);

/* Integer codes with a scale and a zero point for each group of columns: w = scale * (code - zero). Functions get ctx,
   are called by several threads at once, and not at all where only headers may be read. */
typedef struct mt_integers {
    const mt_wish *w;
    unsigned bits;            /* 2, 3, 4, 5, 6 or 8 */
    size_t group;             /* columns of a group; the last may have fewer */
    const uint32_t *group_of; /* [k]: the group of each column; NULL: groups come in order */
    mt_dtype dtype;           /* of the scales: F32, F16 or BF16 */
    bool symmetric;           /* every zero is 2^(bits - 1) */
    const uint8_t *codes; /* rows that the file has as AFFINE has them, `stride` bytes apart; NULL: lay makes them */
    size_t stride;
    /* Writes so many rows of codes, at most lay_rows, from a multiple of that on. */
    void (*lay)(const void *ctx, uint8_t *to, size_t stride, size_t first, size_t rows);
    size_t lay_rows;
    void (*pair)(const void *ctx, size_t row, size_t group, float *scale, float *zero);
    const void *ctx;
} mt_integers;

/* Makes AFFINE of them, or decodes them where AFFINE has no such groups. */
bool mt_bind_integers(const mt_integers *in, mt_mat *out);

/* Layouts that are not used as they are in the file; t is the tensor that shows the layout. */
bool mt_bind_gptq(const mt_wish *w, const mt_tensor_info *qweight, mt_mat *out);
bool mt_bind_awq(const mt_wish *w, const mt_tensor_info *qweight, mt_mat *out);
bool mt_bind_packed_weight(const mt_wish *w, const mt_tensor_info *weight_packed, mt_mat *out);
bool mt_bind_int8(const mt_wish *w, const mt_tensor_info *weight, mt_mat *out);
bool mt_bind_float4(const mt_wish *w, const mt_tensor_info *weight, mt_mat *out);
bool mt_bind_fp8(const mt_wish *w, const mt_tensor_info *weight, mt_mat *out);
bool mt_bind_bnb4(const mt_wish *w, const mt_tensor_info *weight, mt_mat *out);
bool mt_bind_bnb8(const mt_wish *w, const mt_tensor_info *weight, mt_mat *out);

/* The groups of columns that a tensor [k] of I32 names, each below `groups`; *out is NULL where they are in order.
   False with a line in the report. */
bool mt_bind_group_index(const mt_wish *w, const mt_tensor_info *t, size_t group, size_t groups, const uint32_t **out);

/* Columns of a group, where a row has so many groups; 0 where none fits. said: by the config; 0 or less: nothing. */
size_t mt_group_size(size_t k, uint64_t groups, int64_t said);

/* Arena memory for a copy, counted in the cost; NULL where the arena's limit is reached, which fails the binder. */
void *mt_binder_copy(mt_binder *b, size_t bytes);

#endif
