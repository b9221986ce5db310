/* Reads grammars in Lark's notation, as OpenAI's custom tools bring them: rules in small letters, terminals in
   capitals, %import common.X and %ignore. The start is the rule "start". */
#ifndef MT_CONSTRAINT_LARK_H
#define MT_CONSTRAINT_LARK_H

#include "base/compiler.h"
#include "base/error.h"
#include "constraint/regex.h"

/* How the texts of a grammar are written. */
typedef struct mt_lark_text {
    mt_char_writer *write; /* mt_grammar_chars, or the same within JSON strings */
    const char *without;   /* a text that no match of a regular expression may contain; NULL: none */
} mt_lark_text;

bool mt_lark_expr(mt_grammar *g, const mt_lark_text *how, const char *text, size_t len, mt_expr *out,
                  mt_error *err) MT_NODISCARD;

/* Whether a grammar is in this notation, and not in GBNF. */
bool mt_lark_is(const char *text, size_t len);

#endif
