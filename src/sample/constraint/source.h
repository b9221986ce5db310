/* What a request may be constrained by, whatever field it came in. */
#ifndef MT_SAMPLE_CONSTRAINT_SOURCE_H
#define MT_SAMPLE_CONSTRAINT_SOURCE_H

#include "base/compiler.h"
#include "base/error.h"
#include "sample/constraint/json.h"

typedef enum mt_source_kind {
    MT_SOURCE_NONE,
    MT_SOURCE_JSON,   /* any JSON object */
    MT_SOURCE_SCHEMA, /* value: a schema */
    MT_SOURCE_REGEX,  /* value: a string that the whole answer matches */
    MT_SOURCE_CHOICE, /* value: a list of strings, of which the answer is one */
    MT_SOURCE_GBNF    /* value: a string */
} mt_source_kind;

typedef struct mt_source {
    mt_source_kind kind;
    const json_t *value; /* borrowed */
    bool strict;         /* of a schema: all of it has to be followed */
} mt_source;

/* What the source allows. False with a sentence. */
bool mt_source_expr(const mt_source *source, mt_json *j, mt_expr *out, mt_error *err) MT_NODISCARD;

#endif
