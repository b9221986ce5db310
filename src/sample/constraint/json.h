/* JSON as a grammar: values of any kind, and pieces to write schemas with.

   There is one way to write a string that a pattern or a key is about: characters stand for themselves but for
   quotes, backslashes and control characters, which have their shortest escape. Free strings may have any escape.
   White space is bounded: behind a brace, bracket or comma at most a blank, or a line break with up to 24 blanks or
   tabs; behind a colon at most a blank; nowhere else.

   The same values may be written in other notations, which models use for the arguments of tools. */
#ifndef MT_SAMPLE_CONSTRAINT_JSON_H
#define MT_SAMPLE_CONSTRAINT_JSON_H

#include <jansson.h>

#include "sample/constraint/grammar.h"

typedef enum mt_notation {
    MT_NOTATION_JSON,
    MT_NOTATION_PYTHON, /* True, False and None; no escapes that only JSON has */
    MT_NOTATION_GEMMA   /* names of properties without quotes, strings as they are; no white space */
} mt_notation;

/* A grammar with the rules that all of JSON shares; they are made when they are first needed. */
typedef struct mt_json {
    mt_grammar *g;
    mt_notation notation;
    mt_expr quotes; /* of Gemma's notation */
    bool has_value, has_object, has_array, has_string, has_number;
    mt_rule value, object, array, string, number;
} mt_json;

mt_expr mt_json_value(mt_json *j); /* any */
mt_expr mt_json_object(mt_json *j);
mt_expr mt_json_string(mt_json *j, uint32_t least, uint32_t most); /* so many characters */
mt_expr mt_json_number(mt_json *j);
mt_expr mt_json_integer(mt_json *j);
mt_expr mt_json_null(mt_json *j);
mt_expr mt_json_constant(mt_json *j, const json_t *value);
mt_expr mt_json_key(mt_json *j, const char *name);

mt_expr mt_json_space(mt_json *j); /* behind braces, brackets and commas, and before closing ones */
mt_expr mt_json_comma(mt_json *j); /* with the space behind it */
mt_expr mt_json_colon(mt_json *j); /* likewise */
mt_expr mt_json_quote(mt_json *j); /* around strings */

mt_char_writer *mt_json_chars(const mt_json *j); /* how characters are written inside of them */

#endif
