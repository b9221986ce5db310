/* Collects what all schemas of a place say about one property. */
#include "constraint/schema_object.h"

#include <string.h>

bool mt_schema_below(const mt_schema_place *place, size_t part, size_t above)
{
    while (part != above && place->part[part].parent != part) {
        if (json_object_get(place->part[part].schema, MT_SCHEMA_OPPOSITE))
            return false;
        part = place->part[part].parent;
    }
    return part == above;
}

/* Whether some schema that part `above` applies to the place says something about a key: by its name (NULL:
   undeclared), by one of the matched patterns, or by additionalProperties. */
static bool evaluated(const mt_schema_object_reader *o, size_t above, const char *name, uint32_t told)
{
    for (size_t i = 0; i < o->place->count; i++) {
        const json_t *schema = o->place->part[i].schema;

        if (!mt_schema_below(o->place, i, above) || json_object_get(schema, MT_SCHEMA_MADE))
            continue;
        if ((name && json_object_get(json_object_get(schema, "properties"), name)) ||
            json_object_get(schema, "additionalProperties") ||
            (i != above && json_object_get(schema, "unevaluatedProperties")))
            return true;
        for (size_t k = 0; k < o->pattern_count; k++)
            if (o->patterns[k].part == i && told >> k & 1)
                return true;
    }
    return false;
}

/* Adds what one part says about a key. */
static bool add_rules(mt_schema_reader *r, const mt_schema_object_reader *o, size_t at, const char *name, uint32_t told,
                      mt_schema_place *own)
{
    const mt_schema_part *part = &o->place->part[at];
    const json_t *schema = name ? json_object_get(json_object_get(part->schema, "properties"), name) : NULL;
    const json_t *others = json_object_get(part->schema, "additionalProperties");
    const json_t *rest = json_object_get(part->schema, "unevaluatedProperties");
    bool said = schema != NULL;

    if (schema && !mt_schema_add(r, own, schema, mt_schema_path(r, part->path, "properties", name)))
        return false;
    for (size_t k = 0; k < o->pattern_count; k++) {
        if (o->patterns[k].part != at || !(told >> k & 1))
            continue;
        said = true;
        if (!mt_schema_add(r, own, o->patterns[k].schema, o->patterns[k].path))
            return false;
    }
    if (!said && others && !mt_schema_add(r, own, others, mt_schema_path(r, part->path, "additionalProperties", NULL)))
        return false;
    return !rest || evaluated(o, at, name, told) ||
           mt_schema_add(r, own, rest, mt_schema_path(r, part->path, "unevaluatedProperties", NULL));
}

bool mt_schema_key_rules(mt_schema_reader *r, const mt_schema_object_reader *o, const char *name, uint32_t told,
                         mt_schema_place *own)
{
    for (size_t i = 0; i < o->place->count; i++)
        if (!add_rules(r, o, i, name, told, own))
            return false;
    return true;
}
