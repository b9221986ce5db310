/* JSON, written into a buffer piece by piece. Commas keep themselves: a piece puts one before it where the buffer ends
   with a value, so neither loops nor members that may be missing think of them. */
#ifndef MT_BASE_JSON_WRITE_H
#define MT_BASE_JSON_WRITE_H

#include "base/buf.h"

/* A piece in the form of JSON, "{'id':%s,'choices':[{'index':%zu" say, with ' for the quotes around what is fixed. The
   rest comes from the arguments: %s is a string with its quotes (NULL: null), %-s JSON or a part of it that is written
   as it is (NULL: null), %hhd a bool; integers and %f, %.3f, %.9g are as with printf, and nothing else is known. */
void mt_json_write(mt_buf *out, const char *form, ...) MT_PRINTF(2, 3);

/* A member of an object whose value is len bytes of text; of an array where key is NULL. */
void mt_json_text(mt_buf *out, const char *key, const char *text, size_t len);

#endif
