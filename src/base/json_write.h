/* Writes JSON into a buffer piece by piece. A piece puts a comma before itself where the buffer ends with a value, so
   callers need not care about commas. */
#ifndef MT_BASE_JSON_WRITE_H
#define MT_BASE_JSON_WRITE_H

#include "base/buf.h"

/* Appends a piece of JSON by a format such as "{'id':%s,'choices':[{'index':%zu", in which ' stands for ". Arguments:
   %s is a string, written with quotes (NULL: null); %-s is JSON or a part of it, written as it is (NULL: null); %hhd is
   a bool; integers and %f, %.3f, %.9g are as with printf. Nothing else is supported. */
void mt_json_write(mt_buf *out, const char *form, ...) MT_PRINTF(2, 3);

/* Appends a member of an object whose value is len bytes of text; key NULL: an element of an array. */
void mt_json_text(mt_buf *out, const char *key, const char *text, size_t len);

#endif
