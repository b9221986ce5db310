/* JSON as jansson's trees, and back to text. All JSON of clients is read here, since jansson's own reader refuses some
   valid JSON: integers of more than 64 bits, 1e999, half of a surrogate pair. */
#ifndef MT_BASE_JSON_TREE_H
#define MT_BASE_JSON_TREE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"

/* A new reference. NULL: *err, the text is not JSON; err->code MT_E_TOO_LARGE: no memory. Of repeated names in an
   object, the last value counts, at the position of the first. */
json_t *mt_json_tree_read(const char *text, size_t len, mt_error *err) MT_NODISCARD;

/* The same without an error message. */
json_t *mt_json_tree_try(const char *text, size_t len) MT_NODISCARD;

/* The text of a wide number, NUL-terminated: one that is neither an integer of 64 bits nor a finite double. NULL for
   any other value. To jansson it is a real that is infinite, so it is beyond every range. It can be shared, but not
   copied: json_deep_copy fails. */
const char *mt_json_wide(const json_t *value);
bool mt_json_wide_is_int(const char *text); /* whether that text is an integer */

/* Appends a value without white space, as mt_json_write does; floating-point numbers as short as possible. False: it
   does not fit. */
bool mt_json_tree_write(mt_buf *out, const json_t *value);

/* The text of a string that has no NUL in it, as names, ids and other words have none. NULL: it is none. */
const char *mt_json_word(const json_t *value);

/* The type of a value in sentences: "an object", "a list", ...; "missing" for NULL. */
const char *mt_json_kind(const json_t *value);

/* A number in sentences, as it was sent; of a long one the first digits. Returns text. */
#define MT_JSON_SHOWN 40
const char *mt_json_shown(const json_t *value, char text[MT_JSON_SHOWN]);

/* About how many bytes a value takes; 0 for NULL. */
size_t mt_json_tree_memory(const json_t *value);

#endif
