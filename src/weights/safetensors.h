/* One safetensors file: 8 bytes with the header's length, a JSON header, the tensors' bytes. Nothing in the header is
   used before it was checked against the file. */
#ifndef MT_WEIGHTS_SAFETENSORS_H
#define MT_WEIGHTS_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "weights/checkpoint.h"

typedef struct mt_safetensors mt_safetensors;

/* Maps the file at path. NULL with a sentence that names the file. Free with mt_safetensors_close. */
mt_safetensors *mt_safetensors_open(const char *path, mt_error *err) MT_NODISCARD;

/* The same for a file in memory; borrows data until mt_safetensors_close. */
mt_safetensors *mt_safetensors_parse(const uint8_t *data, size_t size, mt_error *err) MT_NODISCARD;

void mt_safetensors_close(mt_safetensors *file); /* NULL is fine */

size_t mt_safetensors_count(const mt_safetensors *file);
const mt_tensor_info *mt_safetensors_at(const mt_safetensors *file, size_t i); /* in order of name */
const mt_tensor_info *mt_safetensors_find(const mt_safetensors *file, const char *name);

#endif
