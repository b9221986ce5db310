/* What the tokenizers library knows of Unicode, by the version that each of its parts was built from. A vocabulary was
   trained with it, so neither older nor newer tables will do. tools/unicode.mjs writes the tables. */
#ifndef MT_TEXT_UNICODE_DATA_H
#define MT_TEXT_UNICODE_DATA_H

#include <stddef.h>
#include <stdint.h>

typedef struct mt_unicode_range {
    uint32_t first, last;
} mt_unicode_range;

typedef struct mt_unicode_set {
    const mt_unicode_range *at; /* in order */
    size_t count;
} mt_unicode_set;

typedef enum mt_unicode_set_name {
    MT_UNICODE_PUNCT_8,      /* P* */
    MT_UNICODE_OTHER_8,      /* Cc, Cf, Co */
    MT_UNICODE_OVERLAY_8,    /* Mn */
    MT_UNICODE_MARK_9,       /* M* */
    MT_UNICODE_UNASSIGNED_9, /* Cn */
    MT_UNICODE_NUMERIC_16,   /* N* */
    MT_UNICODE_WORD_16,      /* Alphabetic, M*, Nd, Pc, joiners */
    MT_UNICODE_SETS
} mt_unicode_set_name;

extern const mt_unicode_set mt_unicode_sets[MT_UNICODE_SETS];

/* A bit for every 64 characters below U+10000: some of them are not assigned in Unicode 9. */
#define MT_UNICODE_PAGES 128
extern const uint8_t mt_unicode_pages[MT_UNICODE_PAGES];

/* Every step'th character of a range has its lower case delta further on. Unicode 16, without ASCII. */
typedef struct mt_unicode_run {
    mt_unicode_range of;
    uint32_t step;
    int32_t delta;
} mt_unicode_run;

extern const mt_unicode_run mt_unicode_lower[];
extern const size_t mt_unicode_lower_count;

/* Characters that Unicode 16 classes otherwise than 14: the properties they have now, and those they had and lost, as
   words of PCRE2. Groups of categories are not named: "L" is all that begins with it. */
typedef struct mt_unicode_change {
    mt_unicode_range of;
    const char *now, *was;
} mt_unicode_change;

extern const mt_unicode_change mt_unicode_changes[];
extern const size_t mt_unicode_change_count;

/* A property of a regular expression. */
typedef struct mt_unicode_property {
    const char *native; /* how PCRE2 calls it; that of a script begins with "sc:", which others leave out */
    const char *longer; /* its other name, or NULL */
} mt_unicode_property;

extern const mt_unicode_property mt_unicode_properties[];
extern const size_t mt_unicode_property_count;

#endif
