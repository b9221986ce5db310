/* A grammar: what an answer may look like, as rules of byte sets, tokens, sequences, alternatives and repetitions. JSON
   schemas, regular expressions, lists of choices and GBNF are all translated to this form; program.h compiles it.

   Expressions are numbers that belong to their grammar. A grammar that exceeds MT_LIMIT_GRAMMAR_NODES or
   MT_LIMIT_GRAMMAR_BYTES becomes full: building it goes on without effect, so builders need not check, and compiling
   reports it. A grammar whose patience is over counts as full, too; code that works long without adding to the grammar
   checks mt_grammar_stopped itself. */
#ifndef MT_CONSTRAINT_GRAMMAR_H
#define MT_CONSTRAINT_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/patience.h"
#include "constraint/limits.h"

#define MT_GRAMMAR_UNLIMITED UINT32_MAX /* `most` of a repetition without limit */

typedef struct mt_grammar mt_grammar;
typedef uint32_t mt_expr;
typedef uint32_t mt_rule;

typedef struct mt_byteset {
    uint64_t bits[4];
} mt_byteset;

static inline void mt_byteset_add(mt_byteset *set, unsigned low, unsigned high)
{
    for (unsigned b = low; b <= high; b++)
        set->bits[b / 64] |= UINT64_C(1) << b % 64;
}

static inline bool mt_byteset_has(const mt_byteset *set, unsigned byte)
{
    return set->bits[byte / 64] >> byte % 64 & 1;
}

/* Whether a byte belongs to a plain character: one that neither JSON strings nor any format's markers treat specially.
   Token masks are computed for all tokens of plain characters at once. U+2028 and U+2029 are not plain either, as a dot
   in a regular expression does not match them (vocabulary.c). */
static inline bool mt_plain_byte(unsigned char byte)
{
    return byte >= 0x20 && byte != '"' && byte != '\\' && byte != '<' && byte != '[';
}

/* An inclusive range of code points. Arrays of ranges are ascending and not touching. */
typedef struct mt_char_range {
    uint32_t low, high;
} mt_char_range;

/* A grammar with one rule, MT_GRAMMAR_START, that is not defined yet. Free with mt_grammar_free. */
mt_grammar *mt_grammar_new(void);
void mt_grammar_free(mt_grammar *g); /* NULL is fine */
bool mt_grammar_full(const mt_grammar *g);

/* Makes it full: it has more than `at` of what `of` names. */
void mt_grammar_fill(mt_grammar *g, const char *of, size_t at);
bool mt_grammar_say_full(const mt_grammar *g, mt_error *err); /* sets the error that says of what; returns false */

/* Building and compiling end soon after patience is over; it must outlive the grammar. */
void mt_grammar_watch(mt_grammar *g, const mt_patience *patience);
/* Sets the error for patience that is over; returns false. */
bool mt_grammar_say_stopped(const mt_patience *patience, mt_error *err);

/* Records that a keyword is not enforced by the grammar; names are kept once, separated by commas. */
void mt_grammar_leave_out(mt_grammar *g, const char *name);
const char *mt_grammar_left_out(const mt_grammar *g); /* "": nothing */

#define MT_GRAMMAR_START 0u

mt_rule mt_grammar_rule(mt_grammar *g);                             /* a new one */
void mt_grammar_define(mt_grammar *g, mt_rule rule, mt_expr value); /* once; an undefined rule matches nothing */

mt_expr mt_grammar_empty(mt_grammar *g); /* matches the empty text */
mt_expr mt_grammar_never(mt_grammar *g); /* matches nothing */
mt_expr mt_grammar_call(mt_grammar *g, mt_rule rule);
mt_expr mt_grammar_bytes(mt_grammar *g, const mt_byteset *set);
mt_expr mt_grammar_literal(mt_grammar *g, const char *text, size_t len);
mt_expr mt_grammar_text(mt_grammar *g, const char *text); /* NUL-terminated */
mt_expr mt_grammar_token(mt_grammar *g, uint32_t id);     /* a special token */

/* Writes one character of a set as an expression; mt_grammar_chars writes it as UTF-8. */
typedef mt_expr mt_char_writer(mt_grammar *g, const mt_char_range *ranges, size_t count);
mt_char_writer mt_grammar_chars;

mt_expr mt_grammar_list(mt_grammar *g, const mt_expr *parts, size_t count); /* all of them in sequence */
mt_expr mt_grammar_any(mt_grammar *g, const mt_expr *parts, size_t count);  /* one of them */
mt_expr mt_grammar_seq(mt_grammar *g, mt_expr a, mt_expr b);
mt_expr mt_grammar_or(mt_grammar *g, mt_expr a, mt_expr b);
mt_expr mt_grammar_maybe(mt_grammar *g, mt_expr a);
mt_expr mt_grammar_repeat(mt_grammar *g, mt_expr a, uint32_t least, uint32_t most);

/* Whether `least` to `most` repetitions of inner_least to inner_most repetitions of an expression are one repetition of
   it that may be compiled; *least and *most then become its bounds. empty: the expression may match the empty text. */
bool mt_repeat_within(uint32_t inner_least, uint32_t inner_most, bool empty, uint32_t *least, uint32_t *most);

/* A repetition of an expression that matches each plain character as one repetition: makes masks of strings cheap. */
mt_expr mt_grammar_repeat_plain(mt_grammar *g, mt_expr a, uint32_t least, uint32_t most);

/* Says that any number of plain characters may come before `a` without changing what may follow; for cheaper masks. */
mt_expr mt_grammar_loose(mt_grammar *g, mt_expr a);

/* grammar_search.c. mt_grammar_until: any text that ends with the first of the markers, which occurs only there, and
   contains none of the others. mt_grammar_without: any text without these markers. Markers are not empty, and have
   fewer than MT_LIMIT_GRAMMAR_SEARCH bytes together; else the grammar becomes full. */
mt_expr mt_grammar_until(mt_grammar *g, const char *const *markers, size_t count);
mt_expr mt_grammar_without(mt_grammar *g, const char *const *markers, size_t count);
mt_expr mt_grammar_anything(mt_grammar *g); /* any text */

/* ---- for the compiler (program.c) ---- */

typedef enum mt_expr_kind {
    MT_EXPR_EMPTY,
    MT_EXPR_NEVER,
    MT_EXPR_BYTES,   /* a: index of the set */
    MT_EXPR_LITERAL, /* a: offset in the text, b: length */
    MT_EXPR_TOKEN,   /* a: the id */
    MT_EXPR_CALL,    /* a: the rule */
    MT_EXPR_LIST,    /* a: index in the parts, b: number */
    MT_EXPR_ANY,     /* a: index in the parts, b: number */
    MT_EXPR_REPEAT,  /* a: expression, b: least, c: most */
    MT_EXPR_FREE     /* a: expression; see mt_grammar_loose */
} mt_expr_kind;

typedef struct mt_expr_node {
    uint8_t kind;
    bool plain; /* of REPEAT: mt_grammar_repeat_plain */
    uint32_t a, b, c;
} mt_expr_node;

#define MT_GRAMMAR_SET_SLOTS 1024
#define MT_GRAMMAR_LEFT_OUT 256

struct mt_grammar {
    mt_expr_node *nodes;
    size_t node_count, node_cap;
    mt_byteset *sets;
    size_t set_count, set_cap;
    mt_expr *parts;
    size_t part_count, part_cap;
    char *text;
    size_t text_len, text_cap;
    mt_expr *rules; /* expression of each; that of MT_EXPR_NEVER, 0, until it is defined */
    size_t rule_count, rule_cap;
    uint32_t set_slots[MT_GRAMMAR_SET_SLOTS]; /* hash table of sets: index plus 1 */
    const mt_patience *patience;              /* NULL: no limit of time */
    size_t regex_work;                        /* done for its regular expressions; see MT_LIMIT_REGEX_WORK_ALL */
    bool full;
    const char *full_of; /* which limit was exceeded, and its value */
    size_t full_at;
    char left_out[MT_GRAMMAR_LEFT_OUT];
};

static inline bool mt_grammar_stopped(const mt_grammar *g)
{
    return mt_patience_over(g->patience);
}

#endif
