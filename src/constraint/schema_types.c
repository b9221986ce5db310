/* Types of values: given by "type", or implied by keywords. */
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/words.h"
#include "constraint/schema_inside.h"

/* Names of types in schemas. */
static const struct {
    const char *name;
    unsigned types;
} type_names[] = {
    {"null", MT_TYPE_NULL},       {"boolean", MT_TYPE_BOOLEAN},
    {"integer", MT_TYPE_INTEGER}, {"number", MT_TYPE_INTEGER | MT_TYPE_NUMBER},
    {"string", MT_TYPE_STRING},   {"array", MT_TYPE_ARRAY},
    {"object", MT_TYPE_OBJECT},   {"motet:fraction", MT_TYPE_NUMBER},
};

/* Keywords about one type: without "type", values of that type are meant. */
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
    {"propertyNames", MT_TYPE_OBJECT},
    {"dependentRequired", MT_TYPE_OBJECT},
    {"dependentSchemas", MT_TYPE_OBJECT},
    {"dependencies", MT_TYPE_OBJECT},
    {"unevaluatedProperties", MT_TYPE_OBJECT},
    {"items", MT_TYPE_ARRAY},
    {"prefixItems", MT_TYPE_ARRAY},
    {"minItems", MT_TYPE_ARRAY},
    {"maxItems", MT_TYPE_ARRAY},
    {"uniqueItems", MT_TYPE_ARRAY},
    {"contains", MT_TYPE_ARRAY},
    {"unevaluatedItems", MT_TYPE_ARRAY},
    {"minLength", MT_TYPE_STRING},
    {"maxLength", MT_TYPE_STRING},
    {"pattern", MT_TYPE_STRING},
    {"format", MT_TYPE_STRING},
    {"minimum", MT_TYPE_INTEGER | MT_TYPE_NUMBER},
    {"maximum", MT_TYPE_INTEGER | MT_TYPE_NUMBER},
    {"exclusiveMinimum", MT_TYPE_INTEGER | MT_TYPE_NUMBER},
    {"exclusiveMaximum", MT_TYPE_INTEGER | MT_TYPE_NUMBER},
    {"multipleOf", MT_TYPE_INTEGER | MT_TYPE_NUMBER},
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

bool mt_schema_own_types(mt_schema_reader *r, const mt_schema_part *part, unsigned *types)
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
        if (!mt_schema_own_types(r, &place->part[i], &own))
            return false;
        *types &= own;
        if (json_is_string(json_object_get(json_object_get(place->part[i].schema, "not"), "pattern")) &&
            mt_schema_leaf_not(json_object_get(place->part[i].schema, "not"))) { /* only strings can fail to match */
            *types &= MT_TYPE_STRING;
            given = true;
        }
        given |= json_object_get(place->part[i].schema, "type") != NULL;
        for (size_t k = 0; k < MT_COUNT(typed); k++)
            if (json_object_get(place->part[i].schema, typed[k].name))
                implied |= typed[k].types;
    }
    if (!given && implied)
        *types = implied;
    return true;
}

bool mt_schema_says_nothing(const char *keyword)
{
    static const char *const keywords[] = {"title",     "description",  "default",    "examples",
                                           "example",   "$comment",     "deprecated", "readOnly",
                                           "writeOnly", MT_SCHEMA_MADE, NULL};

    return mt_words_have(keywords, keyword);
}

bool mt_schema_about_objects(const json_t *schema)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)schema, key, value) {
        size_t k = 0;

        while (k < MT_COUNT(typed) && strcmp(typed[k].name, key) != 0)
            k++;
        if (k < MT_COUNT(typed) ? typed[k].types != MT_TYPE_OBJECT : !mt_schema_says_nothing(key))
            return false;
    }
    return json_object_size(schema) > 0;
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

bool mt_schema_leaf_not(const json_t *schema)
{
    return json_object_size(schema) == 1 &&
           (json_is_string(json_object_get(schema, "pattern")) || json_is_array(json_object_get(schema, "enum")) ||
            json_object_get(schema, "const"));
}
