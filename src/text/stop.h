/* Stop strings: they end an answer, may begin in one token and end in another, and nothing of them may come out.

   A set of strings does not change once it is made. The state of a search is plain data: keep a copy to go back. */
#ifndef MT_TEXT_STOP_H
#define MT_TEXT_STOP_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"

typedef struct mt_stop mt_stop;

/* A stop string; may hold NULs. */
typedef struct mt_stop_string {
    const char *str;
    size_t len;
} mt_stop_string;

/* Zeroed: nothing has been seen. */
typedef struct mt_stop_state {
    uint32_t node;
} mt_stop_state;

/* Empty strings are left out. At most MT_LIMIT_STOP_STRINGS of MT_LIMIT_STOP_BYTES each. Copies them; free with
   mt_stop_free. */
mt_stop *mt_stop_new(const mt_stop_string *strings, size_t count, mt_error *err) MT_NODISCARD;
void mt_stop_free(mt_stop *stop); /* NULL is fine */

/* Appends to out what can no longer be part of a stop string, and holds back the rest. Returns the number of the string
   that is complete: then out ends before it and the rest of text is not looked at; -1 when none is. The first to end
   wins, and of those that end together the longest. */
int mt_stop_feed(const mt_stop *stop, mt_stop_state *state, const char *text, size_t len, mt_buf *out) MT_NODISCARD;

/* Appends what was held back: no more text will come. */
void mt_stop_finish(const mt_stop *stop, mt_stop_state *state, mt_buf *out);

#endif
