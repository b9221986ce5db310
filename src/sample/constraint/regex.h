/* Regular expressions of JSON Schema (ECMA-262) and of requests, as far as they are regular: with looking ahead and
   borders of words, without looking behind and references back. */
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
    MT_REGEX_BEGIN,  /* ^ */
    MT_REGEX_END,    /* $ */
    MT_REGEX_LOOK,   /* parts[0] follows here, or, inverted, does not */
    MT_REGEX_BORDER  /* of a word, or, inverted, none */
} mt_regex_kind;

typedef struct mt_regex mt_regex;

struct mt_regex {
    mt_regex_kind kind;
    const mt_char_range *ranges; /* of SET */
    mt_regex **parts;
    size_t count;         /* of ranges or parts */
    uint32_t least, most; /* most may be MT_GRAMMAR_UNLIMITED */
    bool inverted;        /* of LOOK and BORDER */
    bool aware;           /* of a whole expression: some part of it asks what stands around it */
};

/* In the arena; NULL with a sentence. What it matches is a whole text; search: a text that has a match anywhere. */
mt_regex *mt_regex_read(mt_arena *arena, const char *text, size_t len, bool search, mt_error *err) MT_NODISCARD;

/* The fewest and the most characters of a text that matches, of an expression that is not aware; most may be
   MT_GRAMMAR_UNLIMITED. */
void mt_regex_length(const mt_regex *regex, uint32_t *least, uint32_t *most);

/* regex_fit.c: the expression with bounds on the length of its texts, of one that is not aware. Where that is simple it
   is exact; else, where asked for (narrow), it may match fewer texts than it could. NULL when there is no such. */
const mt_regex *mt_regex_fit(mt_arena *arena, const mt_regex *regex, uint32_t least, uint32_t most, bool narrow);

/* write: mt_grammar_chars, or the same inside of JSON strings. Of an expression that is not aware. */
mt_expr mt_regex_expr(const mt_regex *regex, mt_grammar *g, mt_char_writer *write);

/* Texts that match all of some expressions and none of others, with a number of characters from least to most. */
typedef struct mt_regex_query {
    const mt_regex *const *all;
    size_t all_count;
    const mt_regex *const *none;
    size_t none_count;
    const mt_regex *const *told; /* which of these it matches decides what follows; up to 31 */
    size_t told_count;
    uint32_t least, most;
    mt_expr (*behind)(void *context, uint32_t told); /* NULL: nothing follows */
    void *context;
} mt_regex_query;

/* False when that takes too many states. */
bool mt_regex_query_expr(const mt_regex_query *query, mt_grammar *g, mt_char_writer *write, mt_expr *out) MT_NODISCARD;

/* Whether it matches the whole of a text. False when that cannot be said within the limits. */
bool mt_regex_matches(const mt_regex *regex, const char *text, size_t len, bool *out) MT_NODISCARD;

#endif
