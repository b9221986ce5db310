/* Types, and which keywords mean something. */
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "sample/constraint/schema_inside.h"

static const struct {
    const char *name;
    unsigned types;
} type_names[] = {
    {"null", MT_TYPE_NULL},       {"boolean", MT_TYPE_BOOLEAN},
    {"integer", MT_TYPE_INTEGER}, {"number", MT_TYPE_INTEGER | MT_TYPE_NUMBER},
    {"string", MT_TYPE_STRING},   {"array", MT_TYPE_ARRAY},
    {"object", MT_TYPE_OBJECT},
};

/* Keywords that speak of one type: without "type", that is the one that is meant. */
static const struct {
    const char *name;
    unsigned types;
} typed[] = {
    {"properties", MT_TYPE_OBJECT},
    {"required", MT_TYPE_OBJECT},
    {"additionalProperties", MT_TYPE_OBJECT},
    {"patternProperties", MT_TYPE_OBJECT},
    {"minProperties", MT_TYPE_OBJECT},
    {"maxProperties", MT_TYPE_OBJECT},
    {"items", MT_TYPE_ARRAY},
    {"prefixItems", MT_TYPE_ARRAY},
    {"minItems", MT_TYPE_ARRAY},
    {"maxItems", MT_TYPE_ARRAY},
    {"minLength", MT_TYPE_STRING},
    {"maxLength", MT_TYPE_STRING},
    {"pattern", MT_TYPE_STRING},
    {"format", MT_TYPE_STRING},
    {"minimum", MT_TYPE_INTEGER | MT_TYPE_NUMBER},
    {"maximum", MT_TYPE_INTEGER | MT_TYPE_NUMBER},
    {"exclusiveMinimum", MT_TYPE_INTEGER | MT_TYPE_NUMBER},
    {"exclusiveMaximum", MT_TYPE_INTEGER | MT_TYPE_NUMBER},
};

/* Keywords that change what is valid, and that nothing here follows. Those nobody knows are annotations. */
static const char *const unsupported[] = {
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "contains",
    "minContains",
    "maxContains",
    "propertyNames",
    "$dynamicRef",
    "$recursiveRef",
    "multipleOf",
    "uniqueItems",
    "unevaluatedProperties",
    "unevaluatedItems",
};

bool mt_schema_type_name(const char *name, unsigned *types)
{
    for (size_t i = 0; name && i < MT_COUNT(type_names); i++)
        if (strcmp(name, type_names[i].name) == 0) {
            *types = type_names[i].types;
            return true;
        }
    return false;
}

/* Values with which such a keyword says nothing. */
static bool harmless(const json_t *schema, const char *keyword, const json_t *value)
{
    const json_t *most = json_object_get(schema, "maxItems");

    if (strcmp(keyword, "uniqueItems") == 0)
        return json_is_false(value) || (json_is_integer(most) && json_integer_value(most) <= 1);
    if (strcmp(keyword, "multipleOf") == 0)
        return json_is_number(value) && json_number_value(value) == 1 &&
               mt_schema_type_name(json_string_value(json_object_get(schema, "type")), &(unsigned){0}) &&
               strcmp(json_string_value(json_object_get(schema, "type")), "integer") == 0;
    if (strcmp(keyword, "then") == 0 || strcmp(keyword, "else") == 0)
        return !json_object_get(schema, "if");
    return strncmp(keyword, "unevaluated", 11) == 0 && json_is_true(value);
}

bool mt_schema_check_keywords(mt_schema_reader *r, const json_t *schema, const char *path)
{
    for (size_t i = 0; i < MT_COUNT(unsupported); i++) {
        const json_t *value = json_object_get(schema, unsupported[i]);

        if (value && !harmless(schema, unsupported[i], value))
            return mt_schema_fail(r, path, unsupported[i], "is not supported: leave it out");
    }
    return true;
}

static bool types_of(mt_schema_reader *r, const mt_schema_part *part, unsigned *types)
{
    const json_t *type = json_object_get(part->schema, "type");
    unsigned one;

    *types = type ? 0 : MT_TYPE_ANY;
    for (size_t i = 0; i < json_array_size(type); i++) {
        if (!mt_schema_type_name(json_string_value(json_array_get(type, i)), &one))
            return mt_schema_fail(r, part->path, "type", "names something that is no type of JSON");
        *types |= one;
    }
    if (type && !json_is_array(type) && !mt_schema_type_name(json_string_value(type), types))
        return mt_schema_fail(r, part->path, "type", "names something that is no type of JSON");
    if (json_is_true(json_object_get(part->schema, "nullable")))
        *types |= MT_TYPE_NULL;
    return true;
}

bool mt_schema_types(mt_schema_reader *r, const mt_schema_place *place, unsigned *types)
{
    unsigned implied = 0, own;
    bool given = false;

    *types = MT_TYPE_ANY;
    for (size_t i = 0; i < place->count; i++) {
        if (!types_of(r, &place->part[i], &own))
            return false;
        *types &= own;
        given |= json_object_get(place->part[i].schema, "type") != NULL;
        for (size_t k = 0; k < MT_COUNT(typed); k++)
            if (json_object_get(place->part[i].schema, typed[k].name))
                implied |= typed[k].types;
    }
    if (!given && implied)
        *types = implied;
    return true;
}

bool mt_schema_count(mt_schema_reader *r, const mt_schema_part *part, const char *keyword, uint32_t *out)
{
    const json_t *value = json_object_get(part->schema, keyword);
    const double number = json_number_value(value);

    if (!value)
        return true;
    if (!json_is_number(value) || number < 0 || number != floor(number))
        return mt_schema_fail(r, part->path, keyword, "is not a whole number from 0 on: give one");
    *out = number > UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)number;
    return true;
}
