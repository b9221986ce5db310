/* What the files that read schemas share. */
#ifndef MT_SAMPLE_CONSTRAINT_SCHEMA_INSIDE_H
#define MT_SAMPLE_CONSTRAINT_SCHEMA_INSIDE_H

#include "base/arena.h"
#include "base/limits.h"
#include "sample/constraint/schema.h"

/* A schema that applies to a place, and where it stands. */
typedef struct mt_schema_part {
    const json_t *schema;
    const char *path;
    bool split; /* its anyOf or oneOf has been dealt with */
    bool split_one;
} mt_schema_part;

/* All schemas that apply to one place together. */
typedef struct mt_schema_place {
    mt_schema_part part[MT_LIMIT_SCHEMA_PARTS];
    size_t count;
    bool never; /* one of them allows nothing */
} mt_schema_place;

enum {
    MT_TYPE_NULL = 1,
    MT_TYPE_BOOLEAN = 2,
    MT_TYPE_INTEGER = 4,
    MT_TYPE_NUMBER = 8, /* with a fraction */
    MT_TYPE_STRING = 16,
    MT_TYPE_ARRAY = 32,
    MT_TYPE_OBJECT = 64,
    MT_TYPE_ANY = 127
};

typedef struct mt_schema_todo {
    mt_schema_place place;
    mt_rule rule;
} mt_schema_todo;

typedef struct mt_schema_reader {
    mt_json *j;
    mt_arena *arena; /* paths, places */
    const json_t *root;
    mt_schema_todo **todo;
    size_t todo_count, todo_cap;
    size_t patterns, members; /* regular expressions and properties so far */
    mt_error *err;
} mt_schema_reader;

/* Names keyword and place; returns false. */
bool mt_schema_fail(mt_schema_reader *r, const char *path, const char *keyword, const char *what);

/* Adds a schema, with all that it refers to. False with a sentence. */
bool mt_schema_add(mt_schema_reader *r, mt_schema_place *place, const json_t *schema, const char *path) MT_NODISCARD;
const char *mt_schema_path(mt_schema_reader *r, const char *path, const char *keyword, const char *key);
const char *mt_schema_path_index(mt_schema_reader *r, const char *path, const char *keyword, size_t index);

/* What is valid at a place, as a call of its rule. False with a sentence. */
bool mt_schema_call(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out) MT_NODISCARD;

/* What a $ref stands for; NULL with a sentence. */
const json_t *mt_schema_target(mt_schema_reader *r, const json_t *ref, const char *path);

/* The regular expression of a keyword; NULL with a sentence. */
const struct mt_regex *mt_schema_regex(mt_schema_reader *r, const char *path, const char *keyword, const char *text,
                                       size_t len);

/* schema_types.c: types that a place allows; those whose keywords it has, where none is given. */
bool mt_schema_types(mt_schema_reader *r, const mt_schema_place *place, unsigned *types) MT_NODISCARD;
bool mt_schema_type_name(const char *name, unsigned *type);
bool mt_schema_check_keywords(mt_schema_reader *r, const json_t *schema, const char *path) MT_NODISCARD;
bool mt_schema_count(mt_schema_reader *r, const mt_schema_part *part, const char *keyword, uint32_t *out) MT_NODISCARD;

/* schema_scalar.c */
bool mt_schema_numbers(mt_schema_reader *r, const mt_schema_place *place, bool fractions, mt_expr *out) MT_NODISCARD;
bool mt_schema_string(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out) MT_NODISCARD;
bool mt_schema_constants(mt_schema_reader *r, const mt_schema_place *place, unsigned types, bool *has,
                         mt_expr *out) MT_NODISCARD;

/* schema_object.c, schema_array.c */
bool mt_schema_object(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out) MT_NODISCARD;
bool mt_schema_array(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out) MT_NODISCARD;

/* schema_apart.c: whether no value is valid under both. */
bool mt_schema_apart(mt_schema_reader *r, const json_t *a, const json_t *b);

#endif
