/* GBNF, the notation of grammars that llama.cpp made known: name ::= "text" [a-z]+ (other | "x"){2,3}, from the rule
   root. */
#ifndef MT_SAMPLE_CONSTRAINT_GBNF_H
#define MT_SAMPLE_CONSTRAINT_GBNF_H

#include "base/compiler.h"
#include "base/error.h"
#include "sample/constraint/grammar.h"

/* *out is a call of the rule root. False with a sentence. */
bool mt_gbnf_expr(mt_grammar *g, const char *text, size_t len, mt_expr *out, mt_error *err) MT_NODISCARD;

#endif
