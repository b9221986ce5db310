/* Regular expressions of JSON Schema (ECMA-262) and of requests, as far as they are regular: no look-around, no
   references back, no word boundaries. */
#ifndef MT_SAMPLE_CONSTRAINT_REGEX_H
#define MT_SAMPLE_CONSTRAINT_REGEX_H

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "sample/constraint/charset.h"

typedef enum mt_regex_kind {
    MT_REGEX_EMPTY,
    MT_REGEX_SET,
    MT_REGEX_LIST,
    MT_REGEX_ANY,
    MT_REGEX_REPEAT, /* parts[0], least to most times */
    MT_REGEX_BEGIN,  /* ^ and $: gone once the expression was read */
    MT_REGEX_END
} mt_regex_kind;

typedef struct mt_regex mt_regex;

struct mt_regex {
    mt_regex_kind kind;
    const mt_char_range *ranges; /* of SET */
    mt_regex **parts;
    size_t count;         /* of ranges or parts */
    uint32_t least, most; /* most may be MT_GRAMMAR_UNLIMITED */
};

/* In the arena; NULL with a sentence. What it matches is a whole text; search: a text that has a match anywhere. */
mt_regex *mt_regex_read(mt_arena *arena, const char *text, size_t len, bool search, mt_error *err) MT_NODISCARD;

/* write: mt_grammar_chars, or the same inside of JSON strings. */
mt_expr mt_regex_expr(const mt_regex *regex, mt_grammar *g, mt_char_writer *write);

/* Whether it matches the whole of a text. False when that cannot be said within the limits. */
bool mt_regex_matches(const mt_regex *regex, const char *text, size_t len, bool *out) MT_NODISCARD;

/* All of these expressions at once, and a number of characters from least to most. False when that takes too many
   states. */
bool mt_regex_all(const mt_regex *const *list, size_t count, uint32_t least, uint32_t most, mt_grammar *g,
                  mt_char_writer *write, mt_expr *out) MT_NODISCARD;

#endif
