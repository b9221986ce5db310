/* JSON of any kind as a tree of jansson's, and back to text. All that clients send is read here, since jansson's own
   reader refuses what is valid JSON: integers of more than 64 bits, 1e999, half of a surrogate pair. */
#ifndef MT_BASE_JSON_TREE_H
#define MT_BASE_JSON_TREE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"

/* A new reference; NULL with a sentence when the text is not JSON, or with err->code MT_E_TOO_LARGE when there is no
   memory for it. Names that repeat in an object: the last one counts, in the place of the first. */
json_t *mt_json_tree_read(const char *text, size_t len, mt_error *err) MT_NODISCARD;

/* The same, where no one asks why it is none. */
json_t *mt_json_tree_try(const char *text, size_t len) MT_NODISCARD;

/* The text of a wide number, as it was written, NUL-terminated: one that is neither an integer of 64 bits nor a finite
   floating-point number; NULL for every other value. jansson takes it for a real of that sign without end, so that it
   is beyond every bound. It can be shared, but not copied: json_deep_copy fails. */
const char *mt_json_wide(const json_t *value);
bool mt_json_wide_is_int(const char *text); /* of that text: an integer, and not a fraction */

/* Appends a value without white space, as mt_json_write does; floating-point numbers as short as they can be. False
   when it does not fit. */
bool mt_json_tree_write(mt_buf *out, const json_t *value);

/* "an object", "a list", ...: what a value is, in sentences; "missing" of NULL. */
const char *mt_json_kind(const json_t *value);

/* Bytes that a value takes, about; NULL takes none. */
size_t mt_json_tree_memory(const json_t *value);

#endif
