/* Escape sequences in string literals, for the lexer. */
#ifndef MT_TEMPLATE_LEXER_STRING_H
#define MT_TEMPLATE_LEXER_STRING_H

#include "template/str.h"

/* The string of a literal, given without its quotes, as Python's unicode-escape codec reads it. NULL: the run has
   failed. */
mt_tpl_str *mt_tpl_lex_unescape(mt_tpl_run *run, const char *text, size_t len) MT_NODISCARD;

#endif
