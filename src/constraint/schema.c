/* Translates JSON Schema (schema.h). Schemas that apply to the same place of the answer (a schema, what it refers to,
   allOf, the properties of several) are collected in a list. Alternatives multiply such lists, one at a time: anyOf,
   and what schema_choice.c translates to anyOf (oneOf, if, not, dependencies). A list without alternatives says what
   values look like. Each different list becomes one rule, found again by its schemas, so that recursion ends; rules
   wait in a queue, so that this code does not recurse, however deep a schema is.

   Everything that the grammar allows is valid; not everything valid is allowed. A keyword that cannot be enforced is an
   error, or is left out and recorded, as the caller wants. */
#include "constraint/schema.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "constraint/schema_inside.h"

/* A place with alternatives becomes the alternatives of places that each have one of them added. */
static bool split(mt_schema_reader *r, const mt_schema_place *place, size_t at, const json_t *list, const char *keyword,
                  mt_expr *out)
{
    const size_t count = json_array_size(list);
    mt_schema_place *other = mt_alloc(sizeof(*other));
    mt_expr *parts = mt_alloc_array(count + 1, sizeof(*parts));
    size_t made = 0;
    bool ok = true;

    for (size_t i = 0; ok && i < count && !mt_grammar_full(r->j->g); i++) {
        *other = *place;
        other->part[at].split = true;
        ok = mt_schema_add_with_all(r, other, json_array_get(list, i),
                                    mt_schema_path_index(r, place->part[at].path, keyword, i), at);
        if (ok && !mt_schema_dead(r, other))
            ok = mt_schema_call(r, other, &parts[made++]);
    }
    if (ok)
        *out = mt_grammar_any(r->j->g, parts, made);
    mt_free(parts);
    mt_free(other);
    return ok;
}

/* MT_SCHEMA_OUTSIDE: one of the properties that schemas of the place declare or require, other than the names,
   exists. */
static bool split_outside(mt_schema_reader *r, const mt_schema_place *place, size_t at, mt_expr *out)
{
    const json_t *outside = json_object_get(place->part[at].schema, MT_SCHEMA_OUTSIDE);
    const json_t *names = json_object_get(outside, "names"), *schema = json_object_get(outside, "schema");
    json_t *seen = json_object(), *list = json_array(), *value;
    const char *key;
    bool ok;

    for (size_t i = 0; i < place->count; i++) {
        const json_t *required = json_object_get(place->part[i].schema, "required");

        json_object_foreach(json_object_get(place->part[i].schema, "properties"), key, value)
            json_object_set_new(seen, key, json_null());
        for (size_t k = 0; k < json_array_size(required); k++)
            if (json_is_string(json_array_get(required, k)))
                json_object_set_new(seen, json_string_value(json_array_get(required, k)), json_null());
    }
    json_object_foreach(seen, key, value)
        if (!json_object_get(names, key)) {
            json_t *one = mt_schema_new("object"), *properties = json_object();

            json_object_set(properties, key, (json_t *)schema);
            json_object_set_new(one, "properties", properties);
            json_object_set_new(one, "required", json_pack("[s]", key));
            json_array_append_new(list, one);
        }
    json_decref(seen);
    ok = split(r, place, at, mt_schema_keep(r, NULL, 0, list), MT_SCHEMA_OUTSIDE, out);
    return ok;
}

/* Takes away the types of values that a "not" lists: null, and arrays or objects where it lists one that is not empty.
   Which other arrays are allowed then cannot be told, so none is; but where a client's "not" would leave no type at
   all, it cannot be enforced. Other values are excluded where their type is written, as are [] and {}. */
static bool take_away(mt_schema_reader *r, const mt_schema_place *place, unsigned *types)
{
    const mt_schema_part *client = NULL; /* has such a "not" that was not made here */
    unsigned left = *types;

    for (size_t i = 0; i < place->count; i++) {
        const bool made = json_object_get(place->part[i].schema, MT_SCHEMA_MADE);
        bool single = false;
        const json_t *values = mt_schema_excluded(&place->part[i], &single);

        for (size_t k = 0; values && k < (single ? 1 : json_array_size(values)); k++) {
            const json_t *value = single ? values : json_array_get(values, k);
            const unsigned type = json_array_size(value)    ? MT_TYPE_ARRAY
                                  : json_object_size(value) ? MT_TYPE_OBJECT
                                  : json_is_null(value)     ? MT_TYPE_NULL
                                                            : 0;

            left &= ~type;
            if (made || type == MT_TYPE_NULL)
                *types &= ~type;
            else if (*types & type)
                client = &place->part[i];
        }
    }
    if (left == 0 && *types && client)
        return mt_schema_loosen(r, client->path, "not",
                                "excludes an array or object that is not empty, which is supported only where other "
                                "types are allowed too: leave it out");
    *types = left;
    return true;
}

/* The types of values that a place without alternatives allows. */
static bool kinds(mt_schema_reader *r, const mt_schema_place *place, unsigned types, mt_expr *out)
{
    mt_json *j = r->j;
    mt_expr parts[8];
    size_t count = 0;

    if (!take_away(r, place, &types))
        return false;
    if (types & MT_TYPE_OBJECT && !mt_schema_object(r, place, &parts[count++]))
        return false;
    if (types & MT_TYPE_ARRAY && !mt_schema_array(r, place, &parts[count++]))
        return false;
    if (types & MT_TYPE_STRING && !mt_schema_string(r, place, &parts[count++]))
        return false;
    if (types & (MT_TYPE_INTEGER | MT_TYPE_NUMBER) && !mt_schema_numbers(r, place, types, &parts[count++]))
        return false;
    if (types & MT_TYPE_BOOLEAN) {
        for (int value = 1; value >= 0; value--) {
            json_t *boolean = value ? json_true() : json_false();
            bool out_of = false;

            for (size_t i = 0; i < place->count; i++) {
                bool single;
                const json_t *values = mt_schema_excluded(&place->part[i], &single);

                for (size_t k = 0; values && k < (single ? 1 : json_array_size(values)); k++)
                    out_of |= mt_value_equal(single ? values : json_array_get(values, k), boolean);
            }
            if (!out_of)
                parts[count++] = mt_json_constant(j, boolean);
        }
    }
    if (types & MT_TYPE_NULL)
        parts[count++] = mt_json_null(j);
    *out = mt_grammar_any(j->g, parts, count);
    return true;
}

/* Writes the rule of a place: splits an alternative, or writes its values. */
static bool write_place(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out)
{
    unsigned types;
    bool constants;

    if (!mt_schema_constants(r, place, &constants, out))
        return false;
    if (constants)
        return true;
    for (size_t i = 0; i < place->count; i++) {
        const json_t *list = json_object_get(place->part[i].schema, "anyOf");

        if (place->part[i].split)
            continue;
        if (list && (!json_is_array(list) || json_array_size(list) == 0) &&
            !json_object_get(place->part[i].schema, MT_SCHEMA_MADE))
            return mt_schema_fail(r, place->part[i].path, "anyOf", "is not a list of schemas: give one");
        if (list)
            return split(r, place, i, list, "anyOf", out);
    }
    for (size_t i = 0; i < place->count; i++)
        if (!place->part[i].split && json_object_get(place->part[i].schema, MT_SCHEMA_OUTSIDE))
            return split_outside(r, place, i, out);
    return mt_schema_types(r, place, &types) && kinds(r, place, types, out);
}

static bool read_all(mt_schema_reader *r, const json_t *schema, bool object, mt_expr *out)
{
    json_t *only = json_pack("{s:s}", "type", "object");
    mt_schema_place *place = mt_alloc(sizeof(*place));
    mt_expr value;
    bool ok = mt_schema_add(r, place, schema, "#") && (!object || mt_schema_add(r, place, only, "#")) &&
              mt_schema_call(r, place, out);

    for (size_t i = 0; ok && i < r->rule_count && !mt_grammar_full(r->j->g) && !mt_grammar_stopped(r->j->g);
         i++) { /* each may add more rules */
        const mt_rule rule = r->rules[i].rule;

        place->count = r->rules[i].count;
        memcpy(place->part, r->rules[i].parts, place->count * sizeof(*place->part));
        place->never = false;
        ok = write_place(r, place, &value);
        if (ok)
            mt_grammar_define(r->j->g, rule, value);
    }
    mt_free(place);
    json_decref(only);
    return ok;
}

/* *crowded: it failed since there are too many places, or too many schemas at one. */
static bool read_schema(mt_json *j, const json_t *schema, const json_t *root, bool object, bool strict,
                        mt_schema_effort effort, bool *crowded, mt_expr *out, mt_error *err)
{
    mt_schema_reader *r = mt_alloc(sizeof(*r));
    bool ok;

    *r = (mt_schema_reader){
        .j = j, .arena = mt_arena_new(0), .root = root, .strict = strict, .effort = effort, .err = err};
    ok = read_all(r, schema, object, out);
    *crowded = r->crowded;
    for (size_t i = 0; i < r->made_count; i++)
        json_decref(r->made[i].schema);
    for (size_t i = 0; i < MT_COUNT(r->sets); i++)
        mt_value_set_free(r->sets[i].set);
    mt_free(r->made);
    mt_free(r->rules);
    mt_free(r->member_rules);
    mt_free(r->numbers);
    mt_arena_free(r->arena);
    mt_free(r);
    return ok;
}

/* Where there are too many places, or schemas at one, tries again with less effort. */
bool mt_schema_expr(mt_json *j, const json_t *schema, const json_t *root, bool object, bool strict, mt_expr *out,
                    mt_error *err)
{
    const mt_json before = *j;
    mt_grammar *g = j->g;
    const size_t nodes = g->node_count, parts = g->part_count, rules = g->rule_count;
    const mt_schema_effort least = strict ? MT_EFFORT_BEST : MT_EFFORT_NONE;
    bool crowded = true;

    for (mt_schema_effort effort = MT_EFFORT_ALL; crowded && effort <= least; effort++) {
        *j = before;
        g->node_count = nodes;
        g->part_count = parts;
        g->rule_count = rules;
        if (read_schema(j, schema, root, object, strict, effort, &crowded, out, err))
            return true;
        if (mt_grammar_stopped(g))
            return mt_grammar_say_stopped(g->patience, err);
        if (mt_grammar_full(g)) /* which may have caused another error */
            return mt_grammar_say_full(g, err);
    }
    return false;
}
