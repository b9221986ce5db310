/* Reads GBNF, the grammar notation of llama.cpp: name ::= "text" [a-z]+ (other | "x"){2,3}. The start is the rule
   root. */
#ifndef MT_CONSTRAINT_GBNF_H
#define MT_CONSTRAINT_GBNF_H

#include "base/compiler.h"
#include "base/error.h"
#include "constraint/grammar.h"

/* *out: a call of the rule root. False with a sentence. */
bool mt_gbnf_expr(mt_grammar *g, const char *text, size_t len, mt_expr *out, mt_error *err) MT_NODISCARD;

#endif
