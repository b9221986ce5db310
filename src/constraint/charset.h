/* Sets of Unicode characters, as lists of ranges. */
#ifndef MT_CONSTRAINT_CHARSET_H
#define MT_CONSTRAINT_CHARSET_H

#include "constraint/grammar.h"

#define MT_CHAR_MAX 0x10ffffu

typedef struct mt_charset {
    mt_char_range *at; /* once sorted: ascending, not touching */
    size_t count, cap;
} mt_charset;

void mt_charset_free(mt_charset *set);                              /* leaves it empty */
void mt_charset_add(mt_charset *set, uint32_t low, uint32_t high);  /* in any order: sort before use */
void mt_charset_add_all(mt_charset *set, const mt_charset *others); /* sort before use */
void mt_charset_sort(mt_charset *set);
void mt_charset_invert(mt_charset *set); /* set must be sorted, and stays so */
bool mt_charset_has(const mt_charset *set, uint32_t code);

/* Whether these ranges contain all plain characters (grammar.h). */
bool mt_char_ranges_plain(const mt_char_range *ranges, size_t count);

/* Adds the characters of a Unicode category ("L", "Lu", ...). False where there is no such category. */
bool mt_charset_add_category(mt_charset *set, const char *name, size_t len);

#endif
