/* Stop strings: an answer ends before the first of them. A stop string may be spread over several tokens; no part of it
   may be sent.
   A set of stop strings does not change after mt_stop_new. The state of a search is plain data: to be able to go back,
   copy it. */
#ifndef MT_TEXT_STOP_H
#define MT_TEXT_STOP_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "text/limits.h"

typedef struct mt_stop mt_stop;

/* May contain NULs. */
typedef struct mt_stop_string {
    const char *str;
    size_t len;
} mt_stop_string;

/* All zero bytes: at the start of a text. */
typedef struct mt_stop_state {
    uint32_t node; /* see stop.c */
} mt_stop_state;

/* Copies the strings; empty ones are ignored. NULL: more than MT_LIMIT_STOP_STRINGS, or one is longer than
   MT_LIMIT_STOP_BYTES. Free with mt_stop_free. */
mt_stop *mt_stop_new(const mt_stop_string *strings, size_t count, mt_error *err) MT_NODISCARD;
void mt_stop_free(mt_stop *stop); /* NULL is fine */

/* Appends to `out` the text that cannot become part of a stop string, and holds back the rest. Returns the index of the
   stop string that is complete, else -1. If one is complete, `out` ends before it, and the text after it is ignored.
   The string that ends first counts; of several that end at the same place, the longest. */
int mt_stop_feed(const mt_stop *stop, mt_stop_state *state, const char *text, size_t len, mt_buf *out) MT_NODISCARD;

/* Appends the text that was held back, after the end of the text. */
void mt_stop_finish(const mt_stop *stop, mt_stop_state *state, mt_buf *out);

#endif
