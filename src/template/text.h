/* Python's str methods, keeping track of which bytes are untrusted. */
#ifndef MT_TEMPLATE_TEXT_H
#define MT_TEMPLATE_TEXT_H

#include "template/value.h"

typedef enum mt_tpl_sides { MT_TPL_LEFT = 1, MT_TPL_RIGHT = 2, MT_TPL_BOTH = 3 } mt_tpl_sides;
typedef enum mt_tpl_case {
    MT_TPL_UPPER,
    MT_TPL_LOWER,
    MT_TPL_TITLE,
    MT_TPL_CAPITAL,
    MT_TPL_SWAP,
    MT_TPL_FOLD
} mt_tpl_case;

/* Functions that return a string return NULL where the run has failed; a string of NULL says that it has. */

/* Chars NULL: white space */
mt_tpl_str *mt_tpl_strip(mt_tpl_run *run, mt_tpl_str *s, const mt_tpl_str *chars, mt_tpl_sides sides);
mt_tpl_str *mt_tpl_replace(mt_tpl_run *run, const mt_tpl_str *s, const mt_tpl_str *from, const mt_tpl_str *to,
                           int64_t count); /* below 0: all */
mt_tpl_str *mt_tpl_change_case(mt_tpl_run *run, const mt_tpl_str *s, mt_tpl_case to);
bool mt_tpl_is_all_case(const mt_tpl_str *s, bool upper); /* str.isupper, str.islower */
mt_tpl_str *mt_tpl_pad(mt_tpl_run *run, mt_tpl_str *s, int64_t width, const mt_tpl_str *fill, mt_tpl_sides text_at);
mt_tpl_str *mt_tpl_join(mt_tpl_run *run, const mt_tpl_str *separator, const mt_tpl_value *items, size_t count);
mt_tpl_str *mt_tpl_reverse_text(mt_tpl_run *run, const mt_tpl_str *s);

/* Append the parts as strings. separator NULL: runs of white space. most: splits; below 0: any number. False: the run
   has failed. */
bool mt_tpl_split(mt_tpl_run *run, mt_tpl_str *s, const mt_tpl_str *separator, int64_t most, mt_tpl_items *out);
bool mt_tpl_rsplit(mt_tpl_run *run, mt_tpl_str *s, const mt_tpl_str *separator, int64_t most, mt_tpl_items *out);
bool mt_tpl_split_lines(mt_tpl_run *run, mt_tpl_str *s, bool keep_ends, mt_tpl_items *out);

/* The byte offset of the first or last occurrence within bytes [begin, end); MT_TPL_UNCOUNTED: none. Searching
   backwards may use up the steps, which fails the run. */
size_t mt_tpl_find(const mt_tpl_str *s, const mt_tpl_str *what, size_t begin, size_t end);
size_t mt_tpl_find_last(mt_tpl_run *run, const mt_tpl_str *s, const mt_tpl_str *what, size_t begin, size_t end);

#endif
