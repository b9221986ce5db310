/* Shared by schema_object.c, schema_keys.c and schema_member.c, which read schemas of objects. */
#ifndef MT_CONSTRAINT_SCHEMA_OBJECT_H
#define MT_CONSTRAINT_SCHEMA_OBJECT_H

#include "constraint/limits.h"
#include "constraint/schema_inside.h"

typedef struct mt_schema_pattern {
    size_t part; /* index of the part that has it */
    const mt_regex *regex;
    const json_t *schema;
    const char *path;
} mt_schema_pattern;

typedef struct mt_schema_object_reader {
    const mt_schema_place *place;
    const char **names; /* declared property names */
    bool *required;
    mt_expr *members; /* expressions of "name": value, without what all names begin with */
    size_t count;
    mt_schema_pattern patterns[MT_LIMIT_SCHEMA_KEY_PATTERNS];
    size_t pattern_count;
    bool restricted;      /* there is a propertyNames */
    json_t *listed;       /* the only names that propertyNames allows; NULL: it does not list them */
    bool open;            /* undeclared properties may follow */
    mt_expr other;        /* expression of an undeclared property, likewise */
    uint32_t least, most; /* number of properties in all */
} mt_schema_object_reader;

/* Adds to `own` what all schemas say about a property: by its name (NULL: it is not declared), and by the patterns that
   its name matches (told: a bit for each). */
bool mt_schema_key_rules(mt_schema_reader *r, const mt_schema_object_reader *o, const char *name, uint32_t told,
                         mt_schema_place *own) MT_NODISCARD;

/* schema_keys.c: reads what is allowed as undeclared properties. */
bool mt_schema_read_keys(mt_schema_reader *r, mt_schema_object_reader *o) MT_NODISCARD;

#endif
