/* Values listed by enum and const; each is checked against the other schemas of the place. */
#include <string.h>

#include "base/alloc.h"
#include "constraint/limits.h"
#include "constraint/schema_inside.h"

enum { LOOK = 64 }; /* values between two checks of patience */

const json_t *mt_schema_excluded(const mt_schema_part *part, bool *single)
{
    const json_t *schema = json_object_get(part->schema, "not"), *constant;

    if (!mt_schema_leaf_not(schema))
        return NULL;
    constant = json_object_get(schema, "const");
    *single = constant != NULL;
    return constant ? constant : json_object_get(schema, "enum");
}

/* Finds the shortest list, or a constant; *at: the part that has it. Both NULL: there is none. */
static bool find_list(mt_schema_reader *r, const mt_schema_place *place, const json_t **list, const json_t **constant,
                      size_t *at)
{
    *list = *constant = NULL;
    for (size_t i = 0; i < place->count; i++) {
        const json_t *own = json_object_get(place->part[i].schema, "enum");
        const json_t *single = json_object_get(place->part[i].schema, "const");

        if (own && !json_is_array(own))
            return mt_schema_fail(r, place->part[i].path, "enum", "is not a list: give one");
        if (own && !*constant && (!*list || json_array_size(own) < json_array_size(*list))) {
            *list = own;
            *at = i;
        }
        if (single && !*constant) {
            *constant = single;
            *at = i;
        }
    }
    return true;
}

/* Whether nothing besides the list has to be checked. */
static bool alone(const mt_schema_place *place, size_t at)
{
    const char *key;
    json_t *value;

    if (place->count > 1)
        return false;
    json_object_foreach((json_t *)place->part[at].schema, key, value) {
        if (strcmp(key, "enum") != 0 && strcmp(key, "const") != 0 && !mt_schema_says_nothing(key))
            return false;
    }
    return !(json_object_get(place->part[at].schema, "enum") && json_object_get(place->part[at].schema, "const"));
}

/* Checks a value that part `at` lists against all else. rest: that part without its list. */
static mt_judged judge_all(mt_schema_reader *r, const mt_schema_place *place, size_t at, const json_t *rest,
                           const json_t *value)
{
    mt_judged all = mt_schema_judge(r, rest, value);

    for (size_t i = 0; i < place->count && all != MT_JUDGED_NO; i++) {
        const mt_judged one = i == at ? MT_JUDGED_YES : mt_schema_judge(r, place->part[i].schema, value);

        all = one == MT_JUDGED_YES ? all : one;
    }
    return all;
}

/* The values of the list that are valid at the place, as a new list; unknown: gets those of which that cannot be
   said. */
static json_t *valid_values(mt_schema_reader *r, const mt_schema_place *place, size_t at, const json_t *list,
                            const json_t *constant, json_t *unknown)
{
    const size_t total = constant ? 1 : json_array_size(list);
    json_t *rest = json_copy((json_t *)place->part[at].schema), *kept = json_array();
    const bool free_of_others = alone(place, at);

    json_object_del(rest, constant ? "const" : "enum");
    for (size_t i = 0; i < total && (i % LOOK != 0 || !mt_grammar_stopped(r->j->g)); i++) {
        const json_t *value = constant ? constant : json_array_get(list, i);
        const mt_judged judged = free_of_others ? MT_JUDGED_YES : judge_all(r, place, at, rest, value);

        if (judged != MT_JUDGED_NO)
            json_array_append(judged == MT_JUDGED_YES ? kept : unknown, (json_t *)value);
    }
    json_decref(rest);
    return kept;
}

/* Adds to `kept` the values of which cannot be said whether they are valid, where no other is, or where there were too
   many to look at them all. False: that is refused. */
static bool keep_unknown(mt_schema_reader *r, const char *path, const char *keyword, json_t *kept, json_t *unknown)
{
    if (json_array_size(unknown) == 0 || (json_array_size(kept) > 0 && r->judged <= MT_LIMIT_SCHEMA_JUDGED))
        return true;
    json_array_extend(kept, unknown);
    return mt_schema_loosen(r, path, keyword,
                            "stands beside keywords of which cannot be said whether they allow its values: leave "
                            "them out");
}

bool mt_schema_constants(mt_schema_reader *r, const mt_schema_place *place, bool *has, mt_expr *out)
{
    const json_t *list, *constant;
    json_t *kept, *unknown;
    mt_expr *parts;
    size_t at = 0, count;
    bool ok;

    if (!find_list(r, place, &list, &constant, &at))
        return false;
    *has = list || constant;
    if (!*has)
        return true;
    unknown = json_array();
    kept = valid_values(r, place, at, list, constant, unknown);
    ok = keep_unknown(r, place->part[at].path, constant ? "const" : "enum", kept, unknown);
    json_decref(unknown);
    count = json_array_size(kept);
    parts = mt_alloc_array(count + 1, sizeof(*parts));
    for (size_t i = 0; ok && i < count && !mt_grammar_full(r->j->g); i++)
        parts[i] = mt_json_constant(r->j, json_array_get(kept, i));
    if (ok)
        *out = mt_grammar_any(r->j->g, parts, count);
    mt_free(parts);
    json_decref(kept);
    return ok;
}

/* Adds what one schema lists, regardless of others: its own values, those of its target, of its alternatives. */
static bool list_values(mt_schema_reader *r, const json_t *schema, size_t most, size_t depth, json_t *out)
{
    const json_t *list = json_object_get(schema, "enum"), *constant = json_object_get(schema, "const");
    const json_t *any = json_object_get(schema, "anyOf"), *type = json_object_get(schema, "type"), *target;
    mt_error *err = r->err, ignored = {0};

    if (depth > 8 || json_array_size(out) > most)
        return false;
    if (constant)
        return json_array_append(out, (json_t *)constant) == 0;
    if (list)
        return json_array_extend(out, (json_t *)list) == 0;
    if (json_object_get(schema, "$ref")) {
        r->err = &ignored;
        target = mt_schema_target(r, json_object_get(schema, "$ref"), "");
        r->err = err;
        return target && list_values(r, target, most, depth + 1, out);
    }
    any = any ? any : json_object_get(schema, "oneOf");
    for (size_t i = 0; i < json_array_size(any); i++)
        if (!list_values(r, json_array_get(any, i), most, depth + 1, out))
            return false;
    if (json_array_size(any))
        return true;
    if (json_is_string(type) && strcmp(json_string_value(type), "boolean") == 0)
        return json_array_append_new(out, json_true()) == 0 && json_array_append_new(out, json_false()) == 0;
    return json_is_string(type) && strcmp(json_string_value(type), "null") == 0 &&
           json_array_append_new(out, json_null()) == 0;
}

json_t *mt_schema_values(mt_schema_reader *r, const mt_schema_place *place, size_t most)
{
    json_t *all = NULL, *kept;
    mt_value_set *seen;

    for (size_t i = 0; i < place->count && !all; i++) {
        all = json_array();
        if (!list_values(r, place->part[i].schema, most, 0, all)) {
            json_decref(all);
            all = NULL;
        }
    }
    if (!all)
        return NULL;
    kept = json_array();
    seen = mt_value_set_empty(json_array_size(all));
    r->judged += json_array_size(all);
    for (size_t i = 0; i < json_array_size(all) && json_array_size(kept) <= most; i++) {
        const json_t *value = json_array_get(all, i);
        mt_judged judged = mt_value_set_add(seen, value) ? MT_JUDGED_YES : MT_JUDGED_NO;

        for (size_t k = 0; k < place->count && judged == MT_JUDGED_YES; k++)
            judged = mt_schema_judge(r, place->part[k].schema, value);
        if (judged == MT_JUDGED_YES)
            json_array_append(kept, (json_t *)value);
    }
    mt_value_set_free(seen);
    json_decref(all);
    if (json_array_size(kept) > most || r->judged > MT_LIMIT_SCHEMA_JUDGED) {
        json_decref(kept);
        return NULL;
    }
    return kept;
}
