/* Strings that know which of their bytes are untrusted.

   A string is UTF-8 and never changes. Text from the context is untrusted unless the caller says otherwise; the
   template's own text is trusted. Every operation keeps track of the difference, byte by byte. */
#ifndef MT_TEMPLATE_STR_H
#define MT_TEMPLATE_STR_H

#include "base/range.h"
#include "template/run.h"

#define MT_TPL_UNCOUNTED ((size_t)-1)

/* A string that is being built; it begins as {.run = run}. Afterwards it stays as the `room` in which the string may
   grow: appending to the newest string of a room copies nothing, so that a loop which appends to a string is not
   quadratic. */
typedef struct mt_tpl_build {
    mt_tpl_run *run;
    char *data;
    size_t len, cap;
    mt_range *spans; /* the untrusted bytes */
    size_t span_count, span_cap;
} mt_tpl_build;

typedef struct mt_tpl_str {
    const char *data; /* not NUL-terminated */
    size_t len;
    size_t chars;          /* characters; MT_TPL_UNCOUNTED: mt_tpl_str_chars counts them */
    const mt_range *spans; /* untrusted bytes, ascending; the last may reach beyond len, where the room has grown */
    size_t span_count;
    mt_tpl_build *room; /* NULL: it cannot grow */
    bool markup;        /* marked as HTML by `safe` or `escape`: then `+` escapes what is added */
} mt_tpl_str;

/* A string of a constant. */
#define MT_TPL_LIT(text) ((mt_tpl_str){.data = text, .len = sizeof(text) - 1, .chars = sizeof(text) - 1})

/* Functions that return a string return NULL where the run has failed, and those that make one of others take NULL for
   one: then it has. */

mt_tpl_str *mt_tpl_str_new(mt_tpl_run *run, const char *data, size_t len, bool untrusted) MT_NODISCARD; /* borrows */
mt_tpl_str *mt_tpl_str_lit(mt_tpl_run *run, const char *text) MT_NODISCARD; /* trusted; borrows */
mt_tpl_str *mt_tpl_str_sub(mt_tpl_run *run, const mt_tpl_str *s, size_t begin, size_t end) MT_NODISCARD; /* bytes */
mt_tpl_str *mt_tpl_str_concat(mt_tpl_run *run, const mt_tpl_str *a, const mt_tpl_str *b) MT_NODISCARD;
mt_tpl_str *mt_tpl_str_escape(mt_tpl_run *run, const mt_tpl_str *s) MT_NODISCARD; /* HTML; the result is markup */
mt_tpl_str *mt_tpl_str_plain(mt_tpl_run *run, mt_tpl_str *s) MT_NODISCARD;        /* the same, not markup */

bool mt_tpl_str_untrusted(const mt_tpl_str *s, size_t begin, size_t end); /* whether any of these bytes is untrusted */
size_t mt_tpl_str_chars(mt_tpl_str *s);
size_t mt_tpl_str_offset(mt_tpl_str *s, size_t index); /* byte offset of a character; index <= chars */
bool mt_tpl_str_equal(const mt_tpl_str *a, const mt_tpl_str *b);
bool mt_tpl_str_is(const mt_tpl_str *s, const char *text);
int mt_tpl_str_compare(const mt_tpl_str *a, const mt_tpl_str *b); /* -1, 0 or 1 */

/* Appending does nothing once the run has failed, so only mt_tpl_build_end needs to be checked. */
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
