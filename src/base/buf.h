/* A byte buffer that grows up to a limit. */
#ifndef MT_BASE_BUF_H
#define MT_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

typedef struct mt_buf {
    char *data; /* NUL-terminated unless NULL */
    size_t len;
    size_t cap;
    size_t limit; /* most bytes; the NUL is not counted */
    bool full;    /* an append did not fit; stays true, and the content up to then is intact */
    bool refused; /* the append did not fit since the system has no memory */
} mt_buf;

void mt_buf_init(mt_buf *buf, size_t limit); /* the same as {.limit = limit}; free with mt_buf_free */
void mt_buf_free(mt_buf *buf);               /* leaves it empty, with its limit: it may be used again */

/* An append is done completely or not at all. False: this one or an earlier one did not fit. */
bool mt_buf_add(mt_buf *buf, const void *data, size_t len);
bool mt_buf_puts(mt_buf *buf, const char *s);
bool mt_buf_printf(mt_buf *buf, const char *fmt, ...) MT_PRINTF(2, 3);

/* Appends s as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
bool mt_buf_json_string(mt_buf *buf, const char *s, size_t len);

#endif
