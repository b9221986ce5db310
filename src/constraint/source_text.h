/* Regular expressions and grammars, which requests bring as text, become expressions of a grammar (grammar.h). */
#ifndef MT_CONSTRAINT_SOURCE_TEXT_H
#define MT_CONSTRAINT_SOURCE_TEXT_H

#include "base/compiler.h"
#include "base/error.h"
#include "constraint/grammar.h"

/* *out matches what the regular expression matches as a whole, or what the grammar (GBNF or Lark) describes. False with
   a sentence. */
bool mt_regex_text_expr(mt_grammar *g, const char *text, size_t len, mt_expr *out, mt_error *err) MT_NODISCARD;
bool mt_grammar_text_expr(mt_grammar *g, const char *text, size_t len, mt_expr *out, mt_error *err) MT_NODISCARD;

#endif
