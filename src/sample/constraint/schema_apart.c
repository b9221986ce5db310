/* Whether two schemas can be told apart: no value is valid under both. Only what is plain to see counts. */
#include <string.h>

#include "sample/constraint/schema_inside.h"
#include "sample/constraint/value_set.h"

/* What a lone $ref stands for, a few steps deep. */
static const json_t *resolve(mt_schema_reader *r, const json_t *schema)
{
    mt_error *err = r->err, ignored = {0};

    r->err = &ignored;
    for (int steps = 0; steps < 8 && json_object_get(schema, "$ref"); steps++) {
        const json_t *target = mt_schema_target(r, json_object_get(schema, "$ref"), "");

        if (!target)
            break;
        schema = target;
    }
    r->err = err;
    return schema;
}

/* Only types that are given: a schema that implies one still lets every other pass. */
static unsigned types_of(mt_schema_reader *r, const json_t *schema)
{
    mt_schema_place place = {.part = {{.schema = schema, .path = ""}}, .count = 1};
    mt_error *err = r->err, ignored = {0};
    unsigned types = MT_TYPE_ANY;

    r->err = &ignored;
    if (!json_object_get(schema, "type") || !mt_schema_types(r, &place, &types))
        types = MT_TYPE_ANY;
    r->err = err;
    return types;
}

/* The values that a schema allows at most; NULL where it lists none. *single: it is a value, not a list. */
static const json_t *values_of(const json_t *schema, bool *single)
{
    const json_t *constant = json_object_get(schema, "const");

    *single = constant != NULL;
    return constant ? constant : json_object_get(schema, "enum");
}

static bool values_apart(const json_t *a, const json_t *b)
{
    bool one, other;
    const json_t *x = values_of(a, &one), *y = values_of(b, &other);

    mt_value_set *set;
    bool apart = true;

    if (!x || !y)
        return false;
    if (one && other)
        return !mt_value_equal(x, y);
    set = mt_value_set_new(one ? y : x); /* a list; the other one may be a value */
    for (size_t i = 0; apart && i < (one || other ? 1 : json_array_size(y)); i++)
        apart = !mt_value_set_has(set, one ? x : other ? y : json_array_get(y, i));
    mt_value_set_free(set);
    return apart;
}

static bool requires(const json_t *schema, const char *key)
{
    const json_t *list = json_object_get(schema, "required");

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));

        if (name && strcmp(name, key) == 0)
            return true;
    }
    return false;
}

/* A property that one requires and the other does not know, and is closed. */
static bool closed_to(const json_t *a, const json_t *b)
{
    const json_t *list = json_object_get(a, "required");

    if (!json_is_false(json_object_get(b, "additionalProperties")) || json_object_get(b, "patternProperties"))
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));

        if (name && !json_object_get(json_object_get(b, "properties"), name))
            return true;
    }
    return false;
}

static bool objects_apart(mt_schema_reader *r, const json_t *a, const json_t *b)
{
    const json_t *mine = json_object_get(a, "properties"), *other;
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)mine, key, value)
    {
        other = json_object_get(json_object_get(b, "properties"), key);
        if (!other || !requires(a, key) || !requires(b, key))
            continue;
        value = (json_t *)resolve(r, value);
        other = resolve(r, other);
        if (values_apart(value, other) || !(types_of(r, value) & types_of(r, other)))
            return true;
    }
    return closed_to(a, b) || closed_to(b, a);
}

bool mt_schema_apart(mt_schema_reader *r, const json_t *a, const json_t *b)
{
    unsigned shared;

    a = resolve(r, a);
    b = resolve(r, b);
    if (json_is_false(a) || json_is_false(b))
        return true;
    if (!json_is_object(a) || !json_is_object(b))
        return false;
    shared = types_of(r, a) & types_of(r, b);
    if (shared == 0 || values_apart(a, b))
        return true;
    return shared == MT_TYPE_OBJECT && objects_apart(r, a, b);
}
