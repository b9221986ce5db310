/* JSON Schema as a grammar: texts that are valid JSON and validate. docs/constraints.md lists the keywords. */
#ifndef MT_SAMPLE_CONSTRAINT_SCHEMA_H
#define MT_SAMPLE_CONSTRAINT_SCHEMA_H

#include "base/compiler.h"
#include "base/error.h"
#include "sample/constraint/json.h"

/* root: what references refer to; schema may be a part of it. object: nothing but objects, whatever the schema allows
   besides. strict: a keyword that cannot be followed is a sentence that names it and its place; else it is left out
   and the grammar says so (mt_grammar_leave_out). Borrows both schemas for the call. */
bool mt_schema_expr(mt_json *j, const json_t *schema, const json_t *root, bool object, bool strict, mt_expr *out,
                    mt_error *err) MT_NODISCARD;

#endif
