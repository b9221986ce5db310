/* Writes MessagePack: each function appends one value in its shortest form. The elements of an array, or the keys and
   values of a map in turn, follow its head. */
#ifndef MT_BASE_MSGPACK_H
#define MT_BASE_MSGPACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

void mt_msgpack_nil(mt_buf *out);
void mt_msgpack_uint(mt_buf *out, uint64_t value);
void mt_msgpack_double(mt_buf *out, double value);
void mt_msgpack_text(mt_buf *out, const char *text, size_t len); /* UTF-8 */
void mt_msgpack_array(mt_buf *out, size_t count);
void mt_msgpack_map(mt_buf *out, size_t pairs);

#endif
