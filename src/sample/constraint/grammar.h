/* What an answer may look like, before anybody matches it: rules made of byte sets, tokens, sequences, alternatives and
   repetitions. Schemas, regular expressions, lists of choices and GBNF all become this one form; program.h compiles it.

   Expressions are numbers that belong to their grammar. A grammar that grows beyond MT_LIMIT_GRAMMAR_NODES or
   MT_LIMIT_GRAMMAR_BYTES is full: whoever built it goes on without looking, and compiling says so. One that nobody
   wants any more is full, too; whoever does long work without adding to it looks for itself. */
#ifndef MT_SAMPLE_CONSTRAINT_GRAMMAR_H
#define MT_SAMPLE_CONSTRAINT_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/patience.h"

#define MT_GRAMMAR_UNLIMITED UINT32_MAX /* the most of a repetition */

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

/* Plain characters are those that neither JSON strings nor markers of any format treat in a special way: masks are
   computed for all tokens made of them at once. U+2028 and U+2029 are none either: dots do not match them. */
static inline bool mt_plain_byte(unsigned char byte)
{
    return byte >= 0x20 && byte != '"' && byte != '\\' && byte != '<' && byte != '[';
}

/* Inclusive ranges of code points, ascending and apart. */
typedef struct mt_char_range {
    uint32_t low, high;
} mt_char_range;

/* With one rule, the start, that is not defined yet. Free with mt_grammar_free. */
mt_grammar *mt_grammar_new(void);
void mt_grammar_free(mt_grammar *g); /* NULL is fine */
bool mt_grammar_full(const mt_grammar *g);
void mt_grammar_fill(mt_grammar *g, const char *of, size_t at); /* it has more than `at` of something: it is full */
bool mt_grammar_say_full(const mt_grammar *g, mt_error *err);   /* of what; returns false */

/* Building and compiling end soon after that is over; it outlives the grammar. */
void mt_grammar_watch(mt_grammar *g, const mt_patience *patience);
bool mt_grammar_say_stopped(mt_error *err); /* returns false */

/* Something that was asked for and that the grammar does not say: its name is kept, once, in a list between commas. */
void mt_grammar_leave_out(mt_grammar *g, const char *name);
const char *mt_grammar_left_out(const mt_grammar *g); /* "" for nothing */

#define MT_GRAMMAR_START 0u

mt_rule mt_grammar_rule(mt_grammar *g);                             /* a new one */
void mt_grammar_define(mt_grammar *g, mt_rule rule, mt_expr value); /* once; a rule never defined matches nothing */

mt_expr mt_grammar_empty(mt_grammar *g); /* the empty text */
mt_expr mt_grammar_never(mt_grammar *g); /* no text at all */
mt_expr mt_grammar_call(mt_grammar *g, mt_rule rule);
mt_expr mt_grammar_bytes(mt_grammar *g, const mt_byteset *set);
mt_expr mt_grammar_literal(mt_grammar *g, const char *text, size_t len);
mt_expr mt_grammar_text(mt_grammar *g, const char *text); /* NUL-terminated */
mt_expr mt_grammar_token(mt_grammar *g, uint32_t id);     /* a special token */

/* How a character of a set is written; here: as UTF-8. */
typedef mt_expr mt_char_writer(mt_grammar *g, const mt_char_range *ranges, size_t count);
mt_char_writer mt_grammar_chars;

mt_expr mt_grammar_list(mt_grammar *g, const mt_expr *parts, size_t count); /* one after the other */
mt_expr mt_grammar_any(mt_grammar *g, const mt_expr *parts, size_t count);  /* one of them */
mt_expr mt_grammar_seq(mt_grammar *g, mt_expr a, mt_expr b);
mt_expr mt_grammar_or(mt_grammar *g, mt_expr a, mt_expr b);
mt_expr mt_grammar_maybe(mt_grammar *g, mt_expr a);
mt_expr mt_grammar_repeat(mt_grammar *g, mt_expr a, uint32_t least, uint32_t most);

/* A repetition of something that each plain character is once: what makes masks of strings cheap. */
mt_expr mt_grammar_repeat_plain(mt_grammar *g, mt_expr a, uint32_t least, uint32_t most);

/* Any number of plain characters may come first without changing what may follow: says so, for cheaper masks. */
mt_expr mt_grammar_loose(mt_grammar *g, mt_expr a);

/* grammar_search.c: any text up to and with the first of some markers, which has none of the others, nor that one
   before; any text that has none of them. Markers are not empty, and have fewer than MT_LIMIT_GRAMMAR_SEARCH bytes
   together; else the grammar is full. */
mt_expr mt_grammar_until(mt_grammar *g, const char *const *markers, size_t count);
mt_expr mt_grammar_without(mt_grammar *g, const char *const *markers, size_t count);
mt_expr mt_grammar_anything(mt_grammar *g);

/* ---- for the compiler ---- */

typedef enum mt_expr_kind {
    MT_EXPR_EMPTY,
    MT_EXPR_NEVER,
    MT_EXPR_BYTES,   /* a: the set */
    MT_EXPR_LITERAL, /* a: where in the text, b: how long */
    MT_EXPR_TOKEN,   /* a: the id */
    MT_EXPR_CALL,    /* a: the rule */
    MT_EXPR_LIST,    /* a: where in the parts, b: how many */
    MT_EXPR_ANY,     /* likewise */
    MT_EXPR_REPEAT,  /* a: what, b: least, c: most */
    MT_EXPR_FREE     /* a: what; any number of plain characters may come first without changing what may follow */
} mt_expr_kind;

typedef struct mt_expr_node {
    uint8_t kind;
    bool plain; /* of REPEAT */
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
    mt_expr *rules; /* what each is; MT_EXPR_NEVER's number 0 until it is defined */
    size_t rule_count, rule_cap;
    uint32_t set_slots[MT_GRAMMAR_SET_SLOTS]; /* a set of each hash, plus 1 */
    const mt_patience *patience;              /* NULL: endless */
    bool full;
    const char *full_of; /* what there is too much of, and how much there may be */
    size_t full_at;
    char left_out[MT_GRAMMAR_LEFT_OUT];
};

static inline bool mt_grammar_stopped(const mt_grammar *g)
{
    return mt_patience_over(g->patience);
}

#endif
