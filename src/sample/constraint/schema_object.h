/* What the two files that read objects share. */
#ifndef MT_SAMPLE_CONSTRAINT_SCHEMA_OBJECT_H
#define MT_SAMPLE_CONSTRAINT_SCHEMA_OBJECT_H

#include "sample/constraint/schema_inside.h"

typedef struct mt_schema_pattern {
    size_t part; /* of the place */
    const mt_regex *regex;
    const json_t *schema;
    const char *path;
} mt_schema_pattern;

typedef struct mt_schema_object_reader {
    const mt_schema_place *place;
    const char **names;
    bool *required;
    mt_expr *members; /* "name": value */
    size_t count;
    mt_schema_pattern patterns[MT_LIMIT_SCHEMA_KEY_PATTERNS];
    size_t pattern_count;
    bool restricted;      /* there is a propertyNames */
    json_t *listed;       /* the only names that it allows; NULL: it does not list them */
    bool open;            /* others may follow */
    mt_expr other;        /* one of them */
    uint32_t least, most; /* properties in all */
} mt_schema_object_reader;

/* Adds what all schemas say about a key: by its name (NULL: it is none that is declared), and by the patterns it fits,
   a bit each. */
bool mt_schema_key_rules(mt_schema_reader *r, const mt_schema_object_reader *o, const char *name, uint32_t told,
                         mt_schema_place *own) MT_NODISCARD;

/* schema_keys.c: properties that are not declared. */
bool mt_schema_read_keys(mt_schema_reader *r, mt_schema_object_reader *o) MT_NODISCARD;

#endif
