/* Translates keywords that are choices to schemas with anyOf: oneOf is one alternative and the opposite of those that
   it may overlap, if is both condition and then, or the opposite, a dependency is a missing property or what it
   requires. */
#include "constraint/limits.h"
#include "constraint/schema_inside.h"

enum { KEPT_ONE = 16, KEPT_IF, KEPT_DEPENDS, COMBINATIONS = 24 };

/* How suitable a way of violating a schema is to keep it apart from schema `own`: 0: impossible, as own excludes it; 1:
   possible; 2: it leaves out a property that own does not require; 3: a property has another value. */
static int rate(mt_schema_reader *r, const json_t *own, const json_t *broken)
{
    const json_t *properties = json_object_get(broken, "properties"), *schema;
    const char *key = json_object_iter_key(json_object_iter((json_t *)properties));

    if (mt_schema_apart(r, own, broken) || mt_schema_clash(r, own, broken))
        return 0;
    if (json_object_size(properties) != 1 || json_object_get(broken, "allOf"))
        return 1;
    schema = json_object_get(properties, key);
    if (json_is_false(schema))
        return 2;
    return mt_schema_leaf_not(json_object_get(schema, "not")) &&
                   json_object_get(json_object_get(own, "properties"), key)
               ? 3
               : 1;
}

/* The ways of violating a schema that are possible within `own`; best: only the best of them. */
static json_t *keep_apart(mt_schema_reader *r, const json_t *own, const json_t *broken, bool best)
{
    const json_t *list = json_object_get(broken, "anyOf");
    json_t *kept = json_array();
    int rated = 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const int now = rate(r, own, json_array_get(list, i));

        if (now == 0 || (best && now <= rated))
            continue;
        if (best)
            json_array_clear(kept);
        rated = now;
        json_array_append(kept, json_array_get(list, i));
    }
    return kept;
}

/* The opposites of alternatives that overlap with number `at`, each as a list; NULL with a sentence. */
static json_t *find_overlaps(mt_schema_reader *r, const mt_schema_part *part, const mt_schema_union *u, size_t at,
                             bool best, size_t *product)
{
    const json_t *own = mt_schema_resolve(r, json_array_get(u->list, at));
    json_t *all = json_array();

    *product = 1;
    for (size_t i = 0; i < json_array_size(u->list); i++) {
        const json_t *other, *broken;
        json_t *kept;
        bool partly;

        if (i == at || mt_schema_union_apart(r, u, at, i))
            continue;
        other = mt_schema_resolve(r, json_array_get(u->list, i));
        if (r->effort == MT_EFFORT_NONE) {
            mt_grammar_leave_out(r->j->g, "oneOf");
            continue;
        }
        broken = mt_schema_make_not(r, other, part->path, &partly);
        kept = broken ? keep_apart(r, own, broken, best) : NULL;
        if (kept && json_array_size(kept) == 0 && partly) {
            json_decref(kept);
            if (!mt_schema_loosen(r, part->path, "oneOf",
                                  "has alternatives that a value may satisfy together: use \"anyOf\", or give each "
                                  "another type or a required property with another constant"))
                kept = NULL;
            else
                continue;
        }
        if (!kept) {
            json_decref(all);
            return NULL;
        }
        *product = *product > COMBINATIONS ? *product : *product * (json_array_size(kept) ? json_array_size(kept) : 1);
        json_array_append_new(all, kept);
    }
    return all;
}

/* One alternative without the values that it shares with others: in all ways, or in the best where there are too
   many. */
static bool exclude(mt_schema_reader *r, const mt_schema_part *part, const mt_schema_union *u, size_t at, json_t *all)
{
    size_t product;
    json_t *overlaps = find_overlaps(r, part, u, at, r->effort != MT_EFFORT_ALL, &product);

    if (overlaps && product > COMBINATIONS) {
        json_decref(overlaps);
        overlaps = find_overlaps(r, part, u, at, true, &product);
    }
    for (size_t i = 0; i < json_array_size(overlaps); i++) {
        json_t *made = mt_schema_new(NULL);

        json_object_set_new(made, MT_SCHEMA_OPPOSITE, json_true());
        json_object_set(made, "anyOf", json_array_get(overlaps, i));
        json_array_append_new(all, made);
    }
    json_decref(overlaps);
    return overlaps != NULL;
}

/* Whether all of several alternatives are about objects alone: any other value satisfies all of them, and so violates
   the oneOf. */
static bool about_objects(mt_schema_reader *r, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!mt_schema_about_objects(mt_schema_resolve(r, json_array_get(list, i))))
            return false;
    return json_array_size(list) > 1;
}

/* Translates oneOf: anyOf of its alternatives, each without the values that it shares with others. NULL with a
   sentence. */
static const json_t *make_one(mt_schema_reader *r, const mt_schema_part *part, const json_t *list)
{
    const json_t *there = mt_schema_kept(r, list, KEPT_ONE);
    mt_schema_union u = {.list = list};
    json_t *made, *any;

    if (there)
        return there;
    if (!json_is_array(list) || json_array_size(list) == 0) {
        mt_schema_fail(r, part->path, "oneOf", "is not a list of schemas: give one");
        return NULL;
    }
    if (json_array_size(list) > MT_LIMIT_SCHEMA_ONE_OF) {
        mt_schema_fail(r, part->path, "oneOf", "has too many alternatives: use \"anyOf\"");
        return NULL;
    }
    made = mt_schema_keep(r, list, KEPT_ONE, mt_schema_new(about_objects(r, list) ? "object" : NULL));
    mt_schema_union_read(r, json_object_get(made, "type") ? made : part->schema, &u);
    any = json_array();
    json_object_set_new(made, "anyOf", any);
    for (size_t i = 0; i < json_array_size(list) && !mt_grammar_stopped(r->j->g); i++) {
        json_t *all = json_pack("[O]", json_array_get(list, i)), *one = mt_schema_new(NULL);

        json_object_set_new(one, "allOf", all);
        json_array_append_new(any, one);
        if (!exclude(r, part, &u, i, all))
            return NULL;
        if (json_array_size(all) == 1)
            json_array_set(any, i, json_array_get(list, i));
    }
    return made;
}

/* *made NULL: there is nothing to add. */
static bool make_if(mt_schema_reader *r, const mt_schema_part *part, const json_t **made)
{
    const json_t *condition = json_object_get(part->schema, "if"), *then = json_object_get(part->schema, "then");
    const json_t *otherwise = json_object_get(part->schema, "else"), *broken;
    json_t *both, *none;
    bool partly;

    *made = mt_schema_kept(r, part->schema, KEPT_IF);
    if (*made || (!then && !otherwise))
        return true;
    broken = mt_schema_make_not(r, condition, mt_schema_path(r, part->path, "if", NULL), &partly);
    if (!broken)
        return false;
    if (partly && json_array_size(json_object_get(broken, "anyOf")) == 0)
        return mt_schema_loosen(r, part->path, "if", "has a condition whose opposite is not supported: leave it out");
    both = mt_schema_new(NULL);
    if (!then) /* validators disagree whether the condition alone evaluates properties */
        json_object_set_new(both, MT_SCHEMA_OPPOSITE, json_true());
    none = mt_schema_new(NULL);
    json_object_set_new(both, "allOf", json_pack("[OO]", condition, then ? then : json_true()));
    json_object_set_new(none, "allOf",
                        json_pack("[OO]", mt_schema_wrap_not(r, condition), otherwise ? otherwise : json_true()));
    *made = mt_schema_keep(r, part->schema, KEPT_IF, mt_schema_new(NULL));
    json_object_set_new((json_t *)*made, "anyOf", json_pack("[oo]", both, none));
    return true;
}

static void add_dependencies(const json_t *list, json_t *all)
{
    const char *key;
    json_t *wanted;

    json_object_foreach((json_t *)list, key, wanted) {
        json_t *without = mt_schema_new(NULL), *with = mt_schema_new(NULL), *one = mt_schema_new(NULL);
        json_t *required = json_pack("[s]", key), *properties = json_object();

        json_object_set_new(properties, key, json_false());
        json_object_set_new(without, "properties", properties);
        json_object_set_new(with, "required", required);
        if (json_is_array(wanted))
            json_array_extend(required, wanted);
        else if (json_is_string(wanted)) /* draft 3 */
            json_array_append(required, wanted);
        else
            json_object_set_new(with, "allOf", json_pack("[O]", wanted));
        json_object_set_new(one, "anyOf", json_pack("[oo]", without, with));
        json_array_append_new(all, one);
    }
}

/* Only objects have properties: without a type, dependencies do not make the value an object. */
static const json_t *make_depends(mt_schema_reader *r, const json_t *schema)
{
    static const char *const keywords[] = {"dependentRequired", "dependentSchemas", "dependencies"};
    const json_t *there = mt_schema_kept(r, schema, KEPT_DEPENDS);
    json_t *made, *all;

    if (there)
        return there;
    made = mt_schema_keep(r, schema, KEPT_DEPENDS, mt_schema_new(NULL));
    all = json_array();
    json_object_set_new(made, "allOf", all);
    for (size_t i = 0; i < 3; i++)
        add_dependencies(json_object_get(schema, keywords[i]), all);
    return made;
}

/* Adds the opposite of a part's "not" to the place, unless other code handles that "not" (mt_schema_leaf_not). */
static bool add_not(mt_schema_reader *r, mt_schema_place *place, size_t at)
{
    const mt_schema_part part = place->part[at];
    const json_t *schema = json_object_get(part.schema, "not"), *made;
    bool partly;

    if (mt_schema_leaf_not(schema))
        return true;
    if (r->effort == MT_EFFORT_NONE && json_is_object(schema) && !json_object_get(part.schema, MT_SCHEMA_MADE)) {
        mt_grammar_leave_out(r->j->g, "not");
        return true;
    }
    if (!json_is_object(schema) && !json_is_boolean(schema))
        return mt_schema_fail(r, part.path, "not", "is no schema: give one");
    made = mt_schema_make_not(r, schema, mt_schema_path(r, part.path, "not", NULL), &partly);
    if (!made)
        return false;
    if (partly && json_array_size(json_object_get(made, "anyOf")) == 0)
        return mt_schema_loosen(r, part.path, "not", "is about keywords whose opposite is not supported: leave it out");
    return mt_schema_add_below(r, place, made, part.path, at);
}

bool mt_schema_add_choices(mt_schema_reader *r, mt_schema_place *place, size_t at)
{
    const mt_schema_part part = place->part[at];
    const json_t *one = json_object_get(part.schema, "oneOf"), *made;

    if (one) {
        made = make_one(r, &part, one);
        if (!made || !mt_schema_add_below(r, place, made, part.path, at))
            return false;
    }
    if (json_object_get(part.schema, "not") && !add_not(r, place, at))
        return false;
    if (json_object_get(part.schema, "if") && r->effort == MT_EFFORT_NONE)
        mt_grammar_leave_out(r->j->g, "if");
    else if (json_object_get(part.schema, "if")) {
        if (!make_if(r, &part, &made) || (made && !mt_schema_add_below(r, place, made, part.path, at)))
            return false;
    }
    if (json_object_get(part.schema, "dependentRequired") || json_object_get(part.schema, "dependentSchemas") ||
        json_object_get(part.schema, "dependencies"))
        return mt_schema_add_below(r, place, make_depends(r, part.schema), part.path, at);
    return true;
}
