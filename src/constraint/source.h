/* The source of an answer's constraint, whichever field of the request it came from. */
#ifndef MT_CONSTRAINT_SOURCE_H
#define MT_CONSTRAINT_SOURCE_H

#include "base/compiler.h"
#include "base/error.h"
#include "constraint/json.h"

typedef enum mt_source_kind {
    MT_SOURCE_NONE,
    MT_SOURCE_JSON,   /* any JSON object */
    MT_SOURCE_SCHEMA, /* value: a schema */
    MT_SOURCE_REGEX,  /* value: a string; the whole answer must match */
    MT_SOURCE_CHOICE, /* value: a list of strings; the answer is one of them */
    MT_SOURCE_GBNF,   /* value: a string with a grammar, in GBNF or in Lark's notation */
    MT_SOURCE_TAGS    /* value: an object, {"structures", "triggers"} or {"format"}: see source_tags.c */
} mt_source_kind;

typedef struct mt_source {
    mt_source_kind kind;
    const json_t *value; /* borrowed */
    bool strict;         /* of a schema: every keyword must be enforced */
} mt_source;

/* The source as a grammar expression. False with a sentence. */
bool mt_source_expr(const mt_source *source, mt_json *j, mt_expr *out, mt_error *err) MT_NODISCARD;

#endif
