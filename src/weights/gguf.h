/* GGUF files: a header, keys with values, a table of tensors, the tensors' bytes. Nothing that a file says is used
   before it was checked against the file. Files that are numbered "-00001-of-0000N" are read as one: keys of the first,
   tensors of all. */
#ifndef MT_WEIGHTS_GGUF_H
#define MT_WEIGHTS_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "weights/checkpoint.h"

#define MT_GGUF_SUFFIX ".gguf"

/* Types of values, as numbered in the file. */
typedef enum mt_gguf_type {
    MT_GGUF_U8,
    MT_GGUF_I8,
    MT_GGUF_U16,
    MT_GGUF_I16,
    MT_GGUF_U32,
    MT_GGUF_I32,
    MT_GGUF_F32,
    MT_GGUF_BOOL,
    MT_GGUF_STRING,
    MT_GGUF_ARRAY,
    MT_GGUF_U64,
    MT_GGUF_I64,
    MT_GGUF_F64
} mt_gguf_type;

/* Bytes of the mapped file, without a NUL behind them; valid while the file is open. */
typedef struct mt_gguf_text {
    const char *at;
    size_t len;
} mt_gguf_text;

typedef struct mt_gguf mt_gguf;
typedef struct mt_gguf_array mt_gguf_array; /* of numbers or strings, never of arrays */

/* Maps the file at path, and its siblings where it is one of several; the same that another opened and has not closed,
   where the files have not changed. NULL with a sentence that names the file. Undo with mt_gguf_close. */
mt_gguf *mt_gguf_open(const char *path, mt_error *err) MT_NODISCARD;

/* The same for one file in memory; borrows data until mt_gguf_close. */
mt_gguf *mt_gguf_parse(const uint8_t *data, size_t size, mt_error *err) MT_NODISCARD;

void mt_gguf_close(mt_gguf *g); /* NULL is fine */

/* Values by key. False or NULL where the key is absent or its value is of another type. */
bool mt_gguf_has(const mt_gguf *g, const char *key);
bool mt_gguf_string(const mt_gguf *g, const char *key, mt_gguf_text *out);
bool mt_gguf_int(const mt_gguf *g, const char *key, int64_t *out);  /* any integer type that fits, or a bool */
bool mt_gguf_float(const mt_gguf *g, const char *key, double *out); /* any number */
bool mt_gguf_bool(const mt_gguf *g, const char *key, bool fallback);
const mt_gguf_array *mt_gguf_array_of(const mt_gguf *g, const char *key);

mt_gguf_type mt_gguf_element(const mt_gguf_array *a); /* type of the elements */
size_t mt_gguf_count(const mt_gguf_array *a);
bool mt_gguf_array_string(const mt_gguf_array *a, size_t i, mt_gguf_text *out);
bool mt_gguf_array_int(const mt_gguf_array *a, size_t i, int64_t *out);
bool mt_gguf_array_float(const mt_gguf_array *a, size_t i, double *out);

bool mt_gguf_text_is(mt_gguf_text text, const char *s);

/* The tensors of all files. Shapes have the slowest dimension first, as in safetensors, though the file has the fastest
   first. F32, F16 and BF16 have these dtypes, blocks MT_DTYPE_BLOCKS, anything else MT_DTYPE_OTHER. */
size_t mt_gguf_tensors(const mt_gguf *g);
const mt_tensor_info *mt_gguf_tensor(const mt_gguf *g, size_t i); /* in order of name */
const mt_tensor_info *mt_gguf_find(const mt_gguf *g, const char *name);
size_t mt_gguf_files(const mt_gguf *g);

/* Types of tensors by number: elements of a block and its bytes (1 and the element's size for types without blocks), 0
   for numbers that no type has; the name ("Q4_K"), "?" for these. */
size_t mt_gguf_block_elements(uint32_t type);
size_t mt_gguf_block_bytes(uint32_t type);
const char *mt_gguf_type_name(uint32_t type);

#endif
