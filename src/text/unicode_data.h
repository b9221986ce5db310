/* Tables of Unicode properties, each from the version of Unicode that the tokenizers library uses for it: a vocabulary
   was trained with those, so neither older nor newer tables give the same tokens. Written by tools/unicode.mjs. Used by
   chars.c and regex_syntax.c. */
#ifndef MT_TEXT_UNICODE_DATA_H
#define MT_TEXT_UNICODE_DATA_H

#include <stddef.h>
#include <stdint.h>

typedef struct mt_unicode_range {
    uint32_t first, last;
} mt_unicode_range;

typedef struct mt_unicode_set {
    const mt_unicode_range *at; /* ascending */
    size_t count;
} mt_unicode_set;

typedef enum mt_unicode_set_name {
    /* The number is the version of Unicode; P* stands for all categories that begin with P */
    MT_UNICODE_PUNCT_8,      /* P* */
    MT_UNICODE_OTHER_8,      /* Cc, Cf, Co */
    MT_UNICODE_OVERLAY_8,    /* Mn: marks that stand over or under a letter and take no space */
    MT_UNICODE_MARK_9,       /* M* */
    MT_UNICODE_UNASSIGNED_9, /* Cn */
    MT_UNICODE_NUMERIC_16,   /* N* */
    MT_UNICODE_WORD_16,      /* Alphabetic, M*, Nd, Pc, joiners */
    MT_UNICODE_SETS
} mt_unicode_set_name;

extern const mt_unicode_set mt_unicode_sets[MT_UNICODE_SETS];

/* One bit for every 64 code points below U+10000: set if some of them are not assigned in Unicode 9. The bit of c is
   c >> 6 & 7 of byte c >> 9. */
#define MT_UNICODE_PAGES 128
extern const uint8_t mt_unicode_pages[MT_UNICODE_PAGES];

/* A range in which every step-th character has a lower case, at code point + delta. Unicode 16, without ASCII. */
typedef struct mt_unicode_run {
    mt_unicode_range of;
    uint32_t step;
    int32_t delta;
} mt_unicode_run;

extern const mt_unicode_run mt_unicode_lower[];
extern const size_t mt_unicode_lower_count;

/* Characters whose properties differ between Unicode 14 and 16: the properties they have now, and those they lost, as
   PCRE2 names separated by blanks. Only single categories are named: "Lu" implies "L". */
typedef struct mt_unicode_change {
    mt_unicode_range of;
    const char *now, *was;
} mt_unicode_change;

extern const mt_unicode_change mt_unicode_changes[];
extern const size_t mt_unicode_change_count;

/* A property in a regular expression. */
typedef struct mt_unicode_property {
    const char *native; /* PCRE2's name; for a script with "sc:" before it, which Oniguruma does not write */
    const char *longer; /* a second name, or NULL */
} mt_unicode_property;

extern const mt_unicode_property mt_unicode_properties[];
extern const size_t mt_unicode_property_count;

#endif
