/* Splits a template's text into tokens. White space control (-, +), trim_blocks and lstrip_blocks are applied here:
   text outside of tags arrives as DATA. */
#ifndef MT_TEMPLATE_LEXER_H
#define MT_TEMPLATE_LEXER_H

#include "template/str.h"

typedef enum mt_tpl_token_type {
    MT_TPL_T_EOF,
    MT_TPL_T_DATA,
    MT_TPL_T_BLOCK_BEGIN,
    MT_TPL_T_BLOCK_END,
    MT_TPL_T_VARIABLE_BEGIN,
    MT_TPL_T_VARIABLE_END,
    MT_TPL_T_NAME,
    MT_TPL_T_STRING,
    MT_TPL_T_INTEGER,
    MT_TPL_T_FLOAT,
    MT_TPL_T_ADD,
    MT_TPL_T_SUB,
    MT_TPL_T_MUL,
    MT_TPL_T_DIV,
    MT_TPL_T_FLOORDIV,
    MT_TPL_T_MOD,
    MT_TPL_T_POW,
    MT_TPL_T_TILDE,
    MT_TPL_T_LPAREN,
    MT_TPL_T_RPAREN,
    MT_TPL_T_LBRACKET,
    MT_TPL_T_RBRACKET,
    MT_TPL_T_LBRACE,
    MT_TPL_T_RBRACE,
    MT_TPL_T_EQ,
    MT_TPL_T_NE,
    MT_TPL_T_LT,
    MT_TPL_T_LE,
    MT_TPL_T_GT,
    MT_TPL_T_GE,
    MT_TPL_T_ASSIGN,
    MT_TPL_T_DOT,
    MT_TPL_T_COLON,
    MT_TPL_T_PIPE,
    MT_TPL_T_COMMA,
    MT_TPL_T_SEMICOLON
} mt_tpl_token_type;

typedef struct mt_tpl_token {
    mt_tpl_token_type type;
    uint32_t line, column; /* from 1; columns count characters */
    mt_tpl_str *str;       /* of DATA, NAME and STRING */
    int64_t integer;
    double real;
} mt_tpl_token;

/* Reads the whole text, which must outlive the tokens. The last token is EOF. False: run->err says what is wrong and
   where. */
bool mt_tpl_lex(mt_tpl_run *run, const char *text, size_t len, mt_tpl_token **out);

/* How errors name a type of token, such as "end of statement block". */
const char *mt_tpl_token_text(mt_tpl_token_type type);

#endif
