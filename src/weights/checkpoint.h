/* A checkpoint: a folder with config.json and mapped safetensors files (shards), or a GGUF file that is presented as
   one; every header is validated before use. */
#ifndef MT_WEIGHTS_CHECKPOINT_H
#define MT_WEIGHTS_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "weights/config.h"
#include "weights/limits.h"

typedef enum mt_dtype {
    MT_DTYPE_F32,
    MT_DTYPE_F16,
    MT_DTYPE_BF16,
    MT_DTYPE_F8_E4M3,
    MT_DTYPE_U8,
    MT_DTYPE_U32,
    MT_DTYPE_I8,
    MT_DTYPE_I32,
    MT_DTYPE_F8_E8M0,
    MT_DTYPE_BLOCKS, /* of a GGUF file: rows of blocks, of a kind that ggml_type names */
    MT_DTYPE_OTHER   /* another type: listed, never used */
} mt_dtype;

#define MT_TENSOR_NO_ROW UINT32_MAX

/* Corrections that are made where a tensor is bound, since its file has it in another form than its name promises. */
typedef struct mt_tensor_fix {
    const uint32_t *rows;    /* row i is row rows[i] of the data; MT_TENSOR_NO_ROW: zeros; NULL: in order */
    const uint32_t *columns; /* the same for columns, in pieces of `piece` columns */
    size_t piece;
    float less;     /* is subtracted from every element */
    bool logarithm; /* the element is the logarithm of the number's magnitude */
} mt_tensor_fix;

typedef struct mt_tensor_info {
    const char *name;
    mt_dtype dtype;
    const char *dtype_name; /* the file's name of it */
    uint32_t ggml_type;     /* of a GGUF file: the number of its type */
    unsigned dims;
    uint64_t shape[MT_LIMIT_TENSOR_DIMS];
    const uint8_t *data; /* mapped, any alignment; valid while the checkpoint is open */
    uint64_t bytes;
    const mt_tensor_fix *fix; /* NULL: nothing */
} mt_tensor_info;

typedef struct mt_checkpoint mt_checkpoint;

/* Maps the files of a folder, or a GGUF file (gguf_place.h). NULL with a sentence where there is neither, the folder
   has no config.json or safetensors, lacks a shard, or a file is truncated or has an invalid header. Free with
   mt_checkpoint_close. */
mt_checkpoint *mt_checkpoint_open(const char *dir, mt_error *err) MT_NODISCARD;
void mt_checkpoint_close(mt_checkpoint *c);

/* The same for inspection: names, shapes and costs of bound tensors are right, but no tensor is read. Vectors are
   zeros, and nothing is repacked. */
mt_checkpoint *mt_checkpoint_inspect(const char *dir, mt_error *err) MT_NODISCARD;
bool mt_checkpoint_inspecting(const mt_checkpoint *c);

const char *mt_checkpoint_dir(const mt_checkpoint *c);
const mt_config *mt_checkpoint_config(const mt_checkpoint *c); /* top level of config.json */

/* NULL when there is none of that name. */
const mt_tensor_info *mt_checkpoint_find(const mt_checkpoint *c, const char *name);

/* Index of the first tensor whose name is not less than `name`: where names with that prefix begin. */
size_t mt_checkpoint_lower(const mt_checkpoint *c, const char *name);

size_t mt_checkpoint_count(const mt_checkpoint *c);
const mt_tensor_info *mt_checkpoint_at(const mt_checkpoint *c, size_t i); /* in order of name */

size_t mt_checkpoint_shards(const mt_checkpoint *c);
uint64_t mt_checkpoint_bytes(const mt_checkpoint *c); /* of all tensors */

/* Marks that each tensor is read only once (copied to a device), so that reading all into memory first is of no use. */
void mt_checkpoint_read_once(mt_checkpoint *c);
bool mt_checkpoint_is_read_once(const mt_checkpoint *c);

/* Marks that weights which no kernel has a format for are decoded exactly, to f32; else they become bf16. */
void mt_checkpoint_exact(mt_checkpoint *c);
bool mt_checkpoint_is_exact(const mt_checkpoint *c);

#endif
