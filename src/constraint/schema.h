/* JSON Schema as a grammar: texts that are valid JSON and satisfy the schema. docs/constraints.md lists the
   keywords. */
#ifndef MT_CONSTRAINT_SCHEMA_H
#define MT_CONSTRAINT_SCHEMA_H

#include "base/compiler.h"
#include "base/error.h"
#include "constraint/json.h"

/* root: what references refer to; schema may be a part of it. object: only objects, whatever else the schema allows.
   strict: a keyword that cannot be enforced is an error that names it and where it is; else it is left out and recorded
   (mt_grammar_leave_out). Borrows both schemas during the call. False with a sentence. */
bool mt_schema_expr(mt_json *j, const json_t *schema, const json_t *root, bool object, bool strict, mt_expr *out,
                    mt_error *err) MT_NODISCARD;

/* Keyword of a string that custom tools are given: {"syntax": "lark", "definition": text}, a grammar of its text. */
#define MT_SCHEMA_GRAMMAR "x-grammar"

/* The definition of such a grammar; NULL: the schema has none. */
const json_t *mt_schema_grammar(const json_t *schema);

/* The value that a JSON pointer such as "/$defs/a" names below root, with ~0, ~1 and %XX decoded; NULL: nothing. */
const json_t *mt_schema_pointer(const json_t *root, const char *pointer);

#endif
