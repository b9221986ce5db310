/* Texts that requests bring: regular expressions and grammars, as expressions. */
#ifndef MT_CONSTRAINT_SOURCE_TEXT_H
#define MT_CONSTRAINT_SOURCE_TEXT_H

#include "base/compiler.h"
#include "base/error.h"
#include "constraint/grammar.h"

/* Texts that the regular expression matches as a whole; texts of a grammar in GBNF or Lark. False with a sentence. */
bool mt_regex_text_expr(mt_grammar *g, const char *text, size_t len, mt_expr *out, mt_error *err) MT_NODISCARD;
bool mt_grammar_text_expr(mt_grammar *g, const char *text, size_t len, mt_expr *out, mt_error *err) MT_NODISCARD;

#endif
