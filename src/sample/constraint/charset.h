/* Sets of characters, as lists of ranges. */
#ifndef MT_SAMPLE_CONSTRAINT_CHARSET_H
#define MT_SAMPLE_CONSTRAINT_CHARSET_H

#include "sample/constraint/grammar.h"

#define MT_CHAR_MAX 0x10ffffu

typedef struct mt_charset {
    mt_char_range *at; /* ascending and apart, once sorted */
    size_t count, cap;
} mt_charset;

void mt_charset_free(mt_charset *set);                              /* leaves it empty */
void mt_charset_add(mt_charset *set, uint32_t low, uint32_t high);  /* in any order: sort before use */
void mt_charset_add_all(mt_charset *set, const mt_charset *others); /* likewise */
void mt_charset_sort(mt_charset *set);
void mt_charset_invert(mt_charset *set); /* of a sorted one; stays sorted */
bool mt_charset_has(const mt_charset *set, uint32_t code);

/* Whether all plain characters (grammar.h) are among these. */
bool mt_char_ranges_plain(const mt_char_range *ranges, size_t count);

/* Adds the characters of a Unicode category ("L", "Lu", ...). False when there is none of that name. */
bool mt_charset_add_category(mt_charset *set, const char *name, size_t len);

#endif
