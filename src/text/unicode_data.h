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
    MT_UNICODE_CHANGED_16,   /* all that some property below holds since 14, or no longer */
    MT_UNICODE_WORD_16,      /* Alphabetic, M*, Nd, Pc, joiners */
    MT_UNICODE_SETS
} mt_unicode_set_name;

extern const mt_unicode_set mt_unicode_sets[MT_UNICODE_SETS];

/* A bit for every 64 characters below U+10000: some of them are not assigned in Unicode 9. */
#define MT_UNICODE_PAGES 128
extern const uint8_t mt_unicode_pages[MT_UNICODE_PAGES];

/* Every step'th character from first to last has its lower case delta further on. Unicode 16, without ASCII. */
typedef struct mt_unicode_run {
    uint32_t first, last, step;
    int32_t delta;
} mt_unicode_run;

extern const mt_unicode_run mt_unicode_lower[];
extern const size_t mt_unicode_lower_count;

/* A property of a regular expression: what it holds in Unicode 16 beyond what it held in 14, and what it no longer
   holds, as the inside of a class, or NULL. */
typedef struct mt_unicode_property {
    const char *native;   /* how PCRE2 calls it */
    const char *names[2]; /* in small letters, without _ and -; the second may be NULL */
    const char *added, *removed;
} mt_unicode_property;

extern const mt_unicode_property mt_unicode_properties[];
extern const size_t mt_unicode_property_count;

#endif
