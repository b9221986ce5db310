/* Strings that know which of their bytes are the user's.

   A string is UTF-8 and never changes. What comes from the context is untrusted unless the caller says otherwise; what
   the template itself says is trusted; every operation carries the difference along, byte by byte. */
#ifndef MT_TEMPLATE_STR_H
#define MT_TEMPLATE_STR_H

#include "base/range.h"
#include "template/run.h"

#define MT_TPL_UNCOUNTED ((size_t)-1)

/* A string being made. When it is done it stays behind as the room into which the string may grow: appending to the
   newest string of a room copies nothing, so a loop that adds to a string is not quadratic. */
typedef struct mt_tpl_build {
    mt_tpl_run *run;
    char *data;
    size_t len, cap;
    mt_range *spans;
    size_t span_count, span_cap;
} mt_tpl_build;

typedef struct mt_tpl_str {
    const char *data; /* not NUL-terminated */
    size_t len;
    size_t chars;          /* or MT_TPL_UNCOUNTED: ask mt_tpl_str_chars */
    const mt_range *spans; /* the untrusted bytes, ascending; the last may reach beyond len, where the room grew */
    size_t span_count;
    mt_tpl_build *room; /* NULL when it cannot grow */
    bool markup;        /* marked as HTML by `safe` or `escape`: then `+` escapes what is added */
} mt_tpl_str;

/* Functions that return a string return NULL when the run has failed. */

mt_tpl_str *mt_tpl_str_new(mt_tpl_run *run, const char *data, size_t len, bool untrusted) MT_NODISCARD; /* borrows */
mt_tpl_str *mt_tpl_str_lit(mt_tpl_run *run, const char *text) MT_NODISCARD; /* trusted; borrows */
mt_tpl_str *mt_tpl_str_sub(mt_tpl_run *run, const mt_tpl_str *s, size_t begin, size_t end) MT_NODISCARD; /* bytes */
mt_tpl_str *mt_tpl_str_concat(mt_tpl_run *run, const mt_tpl_str *a, const mt_tpl_str *b) MT_NODISCARD;
mt_tpl_str *mt_tpl_str_escape(mt_tpl_run *run, const mt_tpl_str *s) MT_NODISCARD; /* HTML; the result is markup */
mt_tpl_str *mt_tpl_str_plain(mt_tpl_run *run, mt_tpl_str *s) MT_NODISCARD;        /* the same, not markup */

bool mt_tpl_str_untrusted(const mt_tpl_str *s, size_t begin, size_t end); /* whether any of these bytes is */
size_t mt_tpl_str_chars(mt_tpl_str *s);
size_t mt_tpl_str_offset(mt_tpl_str *s, size_t index); /* byte offset of a character; index <= chars */
bool mt_tpl_str_equal(const mt_tpl_str *a, const mt_tpl_str *b);
bool mt_tpl_str_is(const mt_tpl_str *s, const char *text);
int mt_tpl_str_compare(const mt_tpl_str *a, const mt_tpl_str *b); /* -1, 0 or 1 */

/* Appending does nothing once the run has failed, so only the end needs checking. */
void mt_tpl_build_init(mt_tpl_build *b, mt_tpl_run *run);
void mt_tpl_build_add(mt_tpl_build *b, const char *data, size_t len, bool untrusted);
void mt_tpl_build_lit(mt_tpl_build *b, const char *text); /* trusted */
void mt_tpl_build_char(mt_tpl_build *b, uint32_t c, bool untrusted);
void mt_tpl_build_fill(mt_tpl_build *b, const mt_tpl_str *s, size_t count); /* s, count times */
void mt_tpl_build_str(mt_tpl_build *b, const mt_tpl_str *s);
void mt_tpl_build_sub(mt_tpl_build *b, const mt_tpl_str *s, size_t begin, size_t end);
void mt_tpl_build_printf(mt_tpl_build *b, const char *fmt, ...) MT_PRINTF(2, 3); /* trusted; short */
mt_tpl_str *mt_tpl_build_end(mt_tpl_build *b) MT_NODISCARD;
mt_tpl_str *mt_tpl_build_end_like(mt_tpl_build *b, const mt_tpl_str *s) MT_NODISCARD; /* markup where s is */

#endif
