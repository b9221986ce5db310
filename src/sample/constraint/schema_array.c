#include "base/alloc.h"
#include "sample/constraint/schema_inside.h"

/* prefixItems, or the list that items was before there was prefixItems. */
static const json_t *prefix_of(const json_t *schema)
{
    const json_t *items = json_object_get(schema, "items");

    return json_is_array(items) ? items : json_object_get(schema, "prefixItems");
}

/* What applies behind the prefix; NULL: anything. */
static const json_t *rest_of(const json_t *schema)
{
    const json_t *items = json_object_get(schema, "items");

    return json_is_array(items) ? json_object_get(schema, "additionalItems") : items;
}

/* What is valid as the index-th item. */
static bool item(mt_schema_reader *r, const mt_schema_place *place, size_t index, mt_expr *out)
{
    mt_schema_place own = {.count = 0};

    for (size_t i = 0; i < place->count; i++) {
        const mt_schema_part *part = &place->part[i];
        const json_t *prefix = prefix_of(part->schema), *rest = rest_of(part->schema);

        if (index < json_array_size(prefix)) {
            if (!mt_schema_add(r, &own, json_array_get(prefix, index),
                               mt_schema_path_index(r, part->path, "prefixItems", index)))
                return false;
        } else if (rest && !mt_schema_add(r, &own, rest, mt_schema_path(r, part->path, "items", NULL))) {
            return false;
        }
    }
    return mt_schema_call(r, &own, out);
}

static bool bounds(mt_schema_reader *r, const mt_schema_place *place, size_t *prefix, uint32_t *least, uint32_t *most)
{
    *prefix = *least = 0;
    *most = MT_GRAMMAR_UNLIMITED;
    for (size_t i = 0; i < place->count; i++) {
        uint32_t low = 0, high = MT_GRAMMAR_UNLIMITED;
        const json_t *list = prefix_of(place->part[i].schema);

        if (list && !json_is_array(list))
            return mt_schema_fail(r, place->part[i].path, "prefixItems", "is not a list: give one");
        if (!mt_schema_count(r, &place->part[i], "minItems", &low) ||
            !mt_schema_count(r, &place->part[i], "maxItems", &high))
            return false;
        *prefix = json_array_size(list) > *prefix ? json_array_size(list) : *prefix;
        *least = low > *least ? low : *least;
        *most = high < *most ? high : *most;
    }
    if (*prefix > MT_LIMIT_SCHEMA_PROPERTIES)
        return mt_schema_fail(r, place->part[0].path, "prefixItems", "is too long: shorten it");
    return true;
}

/* Built from the end: what may follow the first n items. */
bool mt_schema_array(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out)
{
    mt_json *j = r->j;
    mt_grammar *g = j->g;
    size_t prefix;
    uint32_t least, most;
    mt_expr tail, rest;

    if (!bounds(r, place, &prefix, &least, &most) || !item(r, place, prefix, &rest))
        return false;
    if (most < prefix)
        prefix = most;
    if (prefix == 0) { /* the first has no comma before it */
        const uint32_t more = most == MT_GRAMMAR_UNLIMITED ? most : most ? most - 1 : 0;

        tail = mt_grammar_seq(
            g, rest, mt_grammar_repeat(g, mt_grammar_seq(g, mt_json_comma(j), rest), least ? least - 1 : 0, more));
        if (most == 0)
            tail = least ? mt_grammar_never(g) : mt_grammar_empty(g);
    } else {
        const uint32_t shorter = (uint32_t)prefix;

        tail = mt_grammar_repeat(g, mt_grammar_seq(g, mt_json_comma(j), rest), least > shorter ? least - shorter : 0,
                                 most == MT_GRAMMAR_UNLIMITED ? most : most - shorter);
        for (size_t i = prefix; i-- > 0;) {
            mt_rule rule = mt_grammar_rule(g);
            mt_expr value;

            if (!item(r, place, i, &value))
                return false;
            tail = mt_grammar_seq(g, i ? mt_grammar_seq(g, mt_json_comma(j), value) : value, tail);
            mt_grammar_define(g, rule, i && i >= least ? mt_grammar_maybe(g, tail) : tail);
            tail = mt_grammar_call(g, rule);
        }
    }
    tail = mt_grammar_list(g, (mt_expr[]){mt_json_space(j), tail, mt_json_space(j)}, 3);
    if (least == 0)
        tail = mt_grammar_maybe(g, tail);
    *out = mt_grammar_list(g, (mt_expr[]){mt_grammar_text(g, "["), tail, mt_grammar_text(g, "]")}, 3);
    return true;
}
