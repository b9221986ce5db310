/* Regular expressions of JSON Schema (ECMA-262) and of requests, as far as they are regular: with look-ahead and word
   borders, without look-behind and back references. */
#ifndef MT_CONSTRAINT_REGEX_H
#define MT_CONSTRAINT_REGEX_H

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "constraint/charset.h"

typedef enum mt_regex_kind {
    MT_REGEX_EMPTY,
    MT_REGEX_SET,
    MT_REGEX_LIST,
    MT_REGEX_ANY,
    MT_REGEX_REPEAT, /* parts[0], repeated least to most times */
    MT_REGEX_BEGIN,  /* ^ */
    MT_REGEX_END,    /* $ */
    MT_REGEX_LOOK,   /* look-ahead: parts[0] follows or, where inverted, does not */
    MT_REGEX_BORDER  /* a word border or, where inverted, none */
} mt_regex_kind;

typedef struct mt_regex mt_regex;

struct mt_regex {
    mt_regex_kind kind;
    const mt_char_range *ranges; /* of SET */
    mt_regex **parts;
    size_t count;         /* number of ranges or parts */
    uint32_t least, most; /* most may be MT_GRAMMAR_UNLIMITED */
    bool inverted;        /* of LOOK and BORDER */
    bool aware;           /* of a whole expression: some part depends on the text around it */
};

/* Reads an expression into the arena; NULL with a sentence. It matches a whole text; search: a text that contains a
   match. */
mt_regex *mt_regex_read(mt_arena *arena, const char *text, size_t len, bool search, mt_error *err) MT_NODISCARD;

/* Fewest and most characters of a matching text, for an expression that is not aware; most may be
   MT_GRAMMAR_UNLIMITED. */
void mt_regex_length(const mt_regex *regex, uint32_t *least, uint32_t *most);

/* regex_fit.c: the expression restricted to texts of least to most characters; it must not be aware. Exact in simple
   cases; else, where narrow, the result may match fewer texts than possible. NULL where there is no result. */
const mt_regex *mt_regex_fit(mt_arena *arena, const mt_regex *regex, uint32_t least, uint32_t most, bool narrow);

/* The expression as a grammar; it must not be aware. write: mt_grammar_chars, or the same within JSON strings. */
mt_expr mt_regex_expr(const mt_regex *regex, mt_grammar *g, mt_char_writer *write);

/* Texts of least to most characters that match all of some expressions and none of others. */
typedef struct mt_regex_query {
    const mt_regex *const *all;
    size_t all_count;
    const mt_regex *const *none;
    size_t none_count;
    const mt_regex *const *told; /* up to 31 expressions; which of them the text matches decides what follows */
    size_t told_count;
    uint32_t least, most;
    /* returns the expression that follows; told: a bit for each of `told` that matches. NULL: nothing follows */
    mt_expr (*behind)(void *context, uint32_t told);
    void *context;
} mt_regex_query;

/* The query as a grammar. False where it takes too many states, or more work than the grammar has left for
   expressions: then all that was added to the grammar since is removed, what `behind` added too. */
bool mt_regex_query_expr(const mt_regex_query *query, mt_grammar *g, mt_char_writer *write, mt_expr *out) MT_NODISCARD;

/* *out: whether the expression matches the whole text. False where that cannot be decided within the limits: the
   work counts as the grammar's. */
bool mt_regex_matches(mt_grammar *g, const mt_regex *regex, const char *text, size_t len, bool *out) MT_NODISCARD;

#endif
