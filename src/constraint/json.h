/* JSON as a grammar: values of any type, and pieces for schemas.

   A string that a pattern or key determines has one spelling: characters are written literally, except quotes,
   backslashes and control characters, which have their shortest escape. Free strings may have any escape. White space
   is limited: behind a brace, bracket or comma one space, or a line break with up to 24 spaces or tabs; behind a colon
   one space; nowhere else.

   The same values can be written in other notations, which some models use for arguments of tools. */
#ifndef MT_CONSTRAINT_JSON_H
#define MT_CONSTRAINT_JSON_H

#include <jansson.h>

#include "constraint/grammar.h"

typedef enum mt_notation {
    MT_NOTATION_JSON,
    MT_NOTATION_PYTHON, /* True, False and None; without escapes that only JSON has */
    MT_NOTATION_GEMMA   /* property names without quotes, strings unescaped; no white space */
} mt_notation;

/* A grammar with JSON's common rules, which are made when first needed. */
typedef struct mt_json {
    mt_grammar *g;
    mt_notation notation;
    mt_expr quotes; /* the quotes of Gemma's notation */
    bool has_value, has_object, has_array, has_string, has_number;
    mt_rule value, object, array, string, number;
} mt_json;

mt_expr mt_json_value(mt_json *j); /* any value */
mt_expr mt_json_object(mt_json *j);
mt_expr mt_json_string(mt_json *j, uint32_t least, uint32_t most); /* with so many characters */
mt_expr mt_json_number(mt_json *j);
mt_expr mt_json_integer(mt_json *j);
mt_expr mt_json_null(mt_json *j);
mt_expr mt_json_constant(mt_json *j, const json_t *value);

/* Names of properties are written in two parts, so that alternatives can share the first: what every name begins with,
   a quote, or nothing in Gemma's notation; then the rest of a name. The rest of an unknown name begins with
   mt_json_key_open: nothing, or the quotes of Gemma's notation. */
mt_expr mt_json_key_begin(mt_json *j);
mt_expr mt_json_key_rest(mt_json *j, const char *name);
mt_expr mt_json_key_open(mt_json *j);

mt_expr mt_json_space(mt_json *j); /* white space behind braces, brackets and commas, and before closing ones */
mt_expr mt_json_comma(mt_json *j); /* with the space behind it */
mt_expr mt_json_colon(mt_json *j); /* with the space behind it */
mt_expr mt_json_quote(mt_json *j); /* the quote around strings */

mt_char_writer *mt_json_chars(const mt_json *j); /* how characters are written within strings */

#endif
