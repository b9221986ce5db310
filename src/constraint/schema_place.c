/* Places: the schemas that apply to one position of the answer, and the rule of each place. See schema.c. */
#include <string.h>

#include "base/alloc.h"
#include "constraint/limits.h"
#include "constraint/schema_inside.h"

/* A missing target may be left out where not strict: then it allows everything. */
static const json_t *find_target(mt_schema_reader *r, const mt_schema_part *part, const json_t *ref)
{
    mt_error *err = r->err, ignored = {0};
    const json_t *target;

    r->err = r->strict ? err : &ignored;
    target = mt_schema_target(r, ref, part->path);
    r->err = err;
    return target || r->strict || !mt_schema_loosen(r, part->path, "$ref", "") ? target : json_true();
}

/* Adds the targets of a part's references, and its allOf. */
static bool add_all(mt_schema_reader *r, mt_schema_place *place, size_t at)
{
    const mt_schema_part part = place->part[at];
    const json_t *ref = json_object_get(part.schema, "$ref"), *all = json_object_get(part.schema, "allOf");
    const json_t *target;

    if (json_object_get(part.schema, "$dynamicRef") || json_object_get(part.schema, "$recursiveRef")) {
        const char *keyword = json_object_get(part.schema, "$dynamicRef") ? "$dynamicRef" : "$recursiveRef";

        if (!mt_schema_loosen(r, part.path, keyword, "is not supported: use \"$ref\""))
            return false;
    }
    if (ref) {
        target = find_target(r, &part, ref);
        if (!target || !mt_schema_add_below(r, place, target, json_string_value(ref), at))
            return false;
    }
    if (all && !json_is_array(all))
        return mt_schema_fail(r, part.path, "allOf", "is not a list: give a list of schemas");
    for (size_t k = 0; k < json_array_size(all); k++)
        if (!mt_schema_add_below(r, place, json_array_get(all, k), mt_schema_path_index(r, part.path, "allOf", k), at))
            return false;
    return true;
}

bool mt_schema_add_with_all(mt_schema_reader *r, mt_schema_place *place, const json_t *schema, const char *path,
                            size_t parent)
{
    size_t i = place->count;

    if (!mt_schema_add_below(r, place, schema, path, parent))
        return false;
    for (; i < place->count; i++) /* each may add more */
        if (!add_all(r, place, i) || !mt_schema_add_choices(r, place, i))
            return false;
    return true;
}

bool mt_schema_add(mt_schema_reader *r, mt_schema_place *place, const json_t *schema, const char *path)
{
    return mt_schema_add_with_all(r, place, schema, path, place->count);
}

static uint64_t hash_of(const mt_schema_place *place)
{
    uint64_t hash = place->count;

    for (size_t i = 0; i < place->count; i++) {
        hash = (hash ^ (uint64_t)(uintptr_t)place->part[i].schema) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29 ^ place->part[i].split;
    }
    return hash;
}

static bool same_place(const mt_schema_rule *a, const mt_schema_place *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->parts[i].schema != b->part[i].schema || a->parts[i].split != b->part[i].split ||
            a->parts[i].parent != b->part[i].parent)
            return false;
    return true;
}

/* Whether a place comes from a combination of schemas: several meet there, or an alternative of one was chosen. Of
   other places there are no more than the client and schema_not.c wrote schemas; combinations multiply. */
static bool is_combined(const mt_schema_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (parts[i].split || (i > 0 && parts[i].parent == i))
            return true;
    return false;
}

/* Counts one more place. False with a sentence: there are too many. */
static bool count_place(mt_schema_reader *r, const mt_schema_place *place)
{
    const size_t most = r->effort == MT_EFFORT_ALL ? MT_LIMIT_SCHEMA_COMBINED / 2 : MT_LIMIT_SCHEMA_COMBINED;

    r->combined += is_combined(place->part, place->count);
    r->crowded = r->combined > most || r->rule_count == MT_LIMIT_SCHEMA_RULES;
    if (r->combined > most)
        return mt_fail(r->err, MT_E_INVALID,
                       "the alternatives of the schema multiply to more than %d places; make it smaller",
                       MT_LIMIT_SCHEMA_COMBINED);
    return !r->crowded || mt_fail(r->err, MT_E_INVALID, "the schema has more than %u different places; make it smaller",
                                  MT_LIMIT_SCHEMA_RULES);
}

bool mt_schema_call(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out)
{
    const uint64_t hash = hash_of(place);
    uint32_t *slot = &r->rule_slots[(hash >> 20) % MT_SCHEMA_SLOTS];
    mt_schema_part *parts;

    if (place->never) {
        *out = mt_grammar_never(r->j->g);
        return true;
    }
    if (place->count == 0) {
        *out = mt_json_value(r->j);
        return true;
    }
    for (uint32_t i = *slot; i; i = r->rules[i - 1].same)
        if (r->rules[i - 1].hash == hash && same_place(&r->rules[i - 1], place)) {
            *out = mt_grammar_call(r->j->g, r->rules[i - 1].rule);
            return true;
        }
    if (!count_place(r, place))
        return false;
    r->rules = mt_grow(r->rules, &r->rule_cap, r->rule_count + 1, sizeof(*r->rules));
    parts = mt_arena_alloc(r->arena, place->count * sizeof(*parts));
    memcpy(parts, place->part, place->count * sizeof(*parts));
    r->rules[r->rule_count] = (mt_schema_rule){
        .parts = parts, .count = place->count, .hash = hash, .rule = mt_grammar_rule(r->j->g), .same = *slot};
    *out = mt_grammar_call(r->j->g, r->rules[r->rule_count].rule);
    *slot = (uint32_t)++r->rule_count;
    return true;
}

void mt_schema_forget_calls(mt_schema_reader *r, size_t count)
{
    while (r->rule_count > count) {
        const mt_schema_rule *last = &r->rules[--r->rule_count];

        r->rule_slots[(last->hash >> 20) % MT_SCHEMA_SLOTS] = last->same;
        r->combined -= is_combined(last->parts, last->count);
    }
}
