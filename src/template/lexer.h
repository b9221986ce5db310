/* Splits a template's text into tokens. White space control (-, +), trim_blocks and lstrip_blocks are applied here:
   text outside of tags arrives as DATA. */
#ifndef MT_TEMPLATE_LEXER_H
#define MT_TEMPLATE_LEXER_H

#include "template/value.h"

typedef unsigned mt_tpl_token_type; /* one of these, or an mt_tpl_operator */

enum {
    MT_TPL_T_EOF,
    MT_TPL_T_DATA,
    MT_TPL_T_BLOCK_BEGIN,
    MT_TPL_T_BLOCK_END,
    MT_TPL_T_VARIABLE_BEGIN,
    MT_TPL_T_VARIABLE_END,
    MT_TPL_T_NAME,
    MT_TPL_T_STRING,
    MT_TPL_T_INTEGER,
    MT_TPL_T_FLOAT
};

typedef struct mt_tpl_token {
    mt_tpl_token_type type;
    mt_tpl_place place;
    mt_tpl_str *str; /* of DATA, NAME and STRING */
    int64_t integer;
    double real;
} mt_tpl_token;

/* Reads the whole text, which must outlive the tokens. The last token is EOF. False: run->err says what is wrong and
   where. */
bool mt_tpl_lex(mt_tpl_run *run, const char *text, size_t len, mt_tpl_token **out);

/* In lexer_string.c: the string of a literal, given without its quotes, as Python's unicode-escape codec reads it.
   NULL: the run has failed. */
mt_tpl_str *mt_tpl_lex_unescape(mt_tpl_run *run, const char *text, size_t len) MT_NODISCARD;

/* How errors name a type of token, such as "end of statement block". */
const char *mt_tpl_token_text(mt_tpl_token_type type);

#endif
