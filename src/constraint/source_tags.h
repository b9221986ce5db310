/* Structural tags: text in which certain markers begin parts that have to look as they should. */
#ifndef MT_CONSTRAINT_SOURCE_TAGS_H
#define MT_CONSTRAINT_SOURCE_TAGS_H

#include "base/compiler.h"
#include "base/error.h"
#include "constraint/json.h"

/* value: {"structures": [{"begin", "schema", "end"}], "triggers": [...]}, or {"format": {"type", ...}}. False with a
   sentence. */
bool mt_tags_expr(mt_json *j, const json_t *value, mt_expr *out, mt_error *err) MT_NODISCARD;

#endif
