/* Arrays. In the plain case each item of the prefix has its own expression, and one for all items behind the prefix is
   repeated. With contains there is a rule for each pair of numbers: of items so far, and of those that match. With
   uniqueItems there is one for each set of values that were written, or, where they are written in their listed order,
   for each pair of numbers: of values passed, and of values written. */

#include "base/alloc.h"
#include "constraint/limits.h"
#include "constraint/schema_inside.h"

enum { SUBSETS = 7, VALUES = 512 }; /* most values of uniqueItems in any order; most values in their listed order */

/* The constraints on arrays of all schemas of a place. */
typedef struct arrays {
    const mt_schema_place *place;
    size_t prefix;
    uint32_t least, most;
    const json_t *contains;
    const char *contains_path;
    uint32_t contains_least, contains_most;
    bool unique;
    const char *unique_path;
} arrays;

/* prefixItems, or a list under items, as older drafts have it. */
static const json_t *prefix_of(const json_t *schema)
{
    const json_t *items = json_object_get(schema, "items");

    return json_is_array(items) ? items : json_object_get(schema, "prefixItems");
}

/* The schema of items behind the prefix; NULL: any. */
static const json_t *rest_of(const json_t *schema)
{
    const json_t *items = json_object_get(schema, "items");

    return json_is_array(items) ? json_object_get(schema, "additionalItems") : items;
}

/* Whether some schema that part `above` applies to the place says something about an item. */
static bool evaluated(const mt_schema_place *place, size_t above, size_t index)
{
    for (size_t i = 0; i < place->count; i++) {
        const json_t *schema = place->part[i].schema;

        if (!mt_schema_below(place, i, above) || json_object_get(schema, MT_SCHEMA_MADE))
            continue;
        if (index < json_array_size(prefix_of(schema)) || rest_of(schema) ||
            (i != above && json_object_get(schema, "unevaluatedItems")))
            return true;
    }
    return false;
}

/* Collects the schemas of item number `index`. */
static bool item_place(mt_schema_reader *r, const mt_schema_place *place, size_t index, mt_schema_place *own)
{
    own->count = 0;
    own->never = false;
    for (size_t i = 0; i < place->count; i++) {
        const mt_schema_part *part = &place->part[i];
        const json_t *prefix = prefix_of(part->schema), *rest = rest_of(part->schema);
        const json_t *others = json_object_get(part->schema, "unevaluatedItems");

        if (index < json_array_size(prefix)) {
            if (!mt_schema_add(r, own, json_array_get(prefix, index),
                               mt_schema_path_index(r, part->path, "prefixItems", index)))
                return false;
        } else if (rest && !mt_schema_add(r, own, rest, mt_schema_path(r, part->path, "items", NULL))) {
            return false;
        }
        if (others && !evaluated(place, i, index) &&
            !mt_schema_add(r, own, others, mt_schema_path(r, part->path, "unevaluatedItems", NULL)))
            return false;
    }
    return true;
}

static bool item(mt_schema_reader *r, const mt_schema_place *place, size_t index, mt_expr *out)
{
    mt_schema_place own;

    return item_place(r, place, index, &own) && mt_schema_call(r, &own, out);
}

static bool read_contains(mt_schema_reader *r, const mt_schema_part *part, arrays *a)
{
    const json_t *contains = json_object_get(part->schema, "contains");
    uint32_t least = 1, most = MT_GRAMMAR_UNLIMITED;

    if (!contains)
        return true;
    if (!mt_schema_count(r, part, "minContains", &least) || !mt_schema_count(r, part, "maxContains", &most))
        return false;
    if (least == 0 && most == MT_GRAMMAR_UNLIMITED)
        return true;
    if (a->contains && a->contains != contains)
        return mt_schema_loosen(r, part->path, "contains", "is one of several for one place: use one");
    a->contains = contains;
    a->contains_path = mt_schema_path(r, part->path, "contains", NULL);
    a->contains_least = least;
    a->contains_most = most;
    return true;
}

static bool read_part(mt_schema_reader *r, const mt_schema_part *part, arrays *a)
{
    const json_t *list = prefix_of(part->schema);
    uint32_t low = 0, high = MT_GRAMMAR_UNLIMITED;
    bool single = false;
    const json_t *values = mt_schema_excluded(part, &single);

    if (list && !json_is_array(list))
        return mt_schema_fail(r, part->path, "prefixItems", "is not a list: give one");
    if (!mt_schema_count(r, part, "minItems", &low) || !mt_schema_count(r, part, "maxItems", &high))
        return false;
    for (size_t k = 0; values && k < (single ? 1 : json_array_size(values)); k++) {
        const json_t *value = single ? values : json_array_get(values, k);

        if (json_is_array(value) && json_array_size(value) == 0 && low == 0)
            low = 1; /* [] is excluded; other arrays: see schema.c */
    }
    a->prefix = json_array_size(list) > a->prefix ? json_array_size(list) : a->prefix;
    a->least = low > a->least ? low : a->least;
    a->most = high < a->most ? high : a->most;
    if (json_is_true(json_object_get(part->schema, "uniqueItems"))) {
        a->unique = true;
        a->unique_path = part->path;
    }
    return read_contains(r, part, a);
}

static mt_expr brackets(mt_json *j, mt_expr inside)
{
    return mt_grammar_list(j->g, (mt_expr[]){mt_grammar_text(j->g, "["), inside, mt_grammar_text(j->g, "]")}, 3);
}

/* An item and the rule that follows; first: without a comma. */
static mt_expr step(mt_json *j, bool first, mt_expr value, mt_rule next)
{
    return mt_grammar_list(
        j->g, (mt_expr[]){first ? mt_json_space(j) : mt_json_comma(j), value, mt_grammar_call(j->g, next)}, 3);
}

/* ---- contains ---- */

/* Rules for (items so far, matching items so far), both up to where more makes no difference. *why: NULL, or, where
   that takes too many rules and nothing is written, a sentence's end that says so. False with a sentence. */
static bool write_contains(mt_schema_reader *r, const arrays *a, const char **why, mt_expr *out)
{
    mt_json *j = r->j;
    mt_grammar *g = j->g;
    const bool limited = a->contains_most != MT_GRAMMAR_UNLIMITED;
    const size_t fits = limited ? a->contains_most : a->contains_least;
    size_t items = a->least > a->prefix ? a->least : a->prefix;
    mt_rule first;

    *why = NULL;
    if (a->most != MT_GRAMMAR_UNLIMITED && a->most > items)
        items = a->most;
    items = items ? items : 1;
    if ((uint64_t)(items + 1) * (fits + 1) > MT_LIMIT_SCHEMA_COUNTED) {
        *why = "takes too many states together with the numbers of items: make them smaller";
        return true;
    }
    first = (mt_rule)g->rule_count;
    for (size_t i = 0; i < (items + 1) * (fits + 1); i++)
        mt_grammar_rule(g);
    for (size_t i = 0; i <= items && !mt_grammar_full(g); i++) {
        mt_schema_place fitting, others;
        mt_expr yes, no; /* an item that matches; one that need not, or, where matching items are limited, does not */

        if (!item_place(r, a->place, i, &others))
            return false;
        fitting = others;
        if (!mt_schema_add(r, &fitting, a->contains, a->contains_path) || !mt_schema_call(r, &fitting, &yes))
            return false;
        if (limited && !mt_schema_add(r, &others, mt_schema_wrap_not(r, a->contains), a->contains_path))
            return false;
        if (!mt_schema_call(r, &others, &no))
            return false;
        for (size_t c = 0; c <= fits; c++) {
            const size_t then = i < items ? i + 1 : i;
            mt_expr parts[3];
            size_t count = 0;

            if (i >= a->least && c >= a->contains_least)
                parts[count++] = i ? mt_json_space(j) : mt_grammar_empty(g);
            if (a->most == MT_GRAMMAR_UNLIMITED || i < a->most) {
                parts[count++] = step(j, i == 0, no, first + (mt_rule)(then * (fits + 1) + c));
                if (c < fits)
                    parts[count++] = step(j, i == 0, yes, first + (mt_rule)(then * (fits + 1) + c + 1));
            }
            mt_grammar_define(g, first + (mt_rule)(i * (fits + 1) + c), mt_grammar_any(g, parts, count));
        }
    }
    *out = brackets(j, mt_grammar_call(g, first));
    return true;
}

/* ---- uniqueItems ---- */

/* Each value at most once, in any order: a state is the set of values used. */
static void write_subsets(mt_json *j, const arrays *a, const mt_expr *values, size_t count, mt_expr *out)
{
    mt_grammar *g = j->g;
    const mt_rule first = (mt_rule)g->rule_count;

    for (size_t s = 0; s < (size_t)1 << count; s++)
        mt_grammar_rule(g);
    for (size_t s = 0; s < (size_t)1 << count; s++) {
        mt_expr parts[SUBSETS + 1];
        size_t made = 0, had = 0;

        for (size_t i = 0; i < count; i++)
            had += s >> i & 1;
        if (had >= a->least && had <= a->most)
            parts[made++] = had ? mt_json_space(j) : mt_grammar_empty(g);
        for (size_t i = 0; i < count && had < a->most; i++)
            if (!(s >> i & 1))
                parts[made++] = step(j, had == 0, values[i], first + (mt_rule)(s | (size_t)1 << i));
        mt_grammar_define(g, first + (mt_rule)s, mt_grammar_any(g, parts, made));
    }
    *out = brackets(j, mt_grammar_call(g, first));
}

/* Each value at most once, in the listed order. False: that takes too many rules. */
static bool write_ordered(mt_json *j, const arrays *a, const mt_expr *values, size_t count, mt_expr *out)
{
    mt_grammar *g = j->g;
    /* items are counted up to `top`: a higher number makes no difference */
    size_t top = a->most != MT_GRAMMAR_UNLIMITED ? a->most : a->least ? a->least : 1;
    mt_rule first;

    top = top > count ? count + 1 : top ? top : 1;
    if ((count + 1) * (top + 1) > MT_LIMIT_SCHEMA_COUNTED)
        return false;
    first = (mt_rule)g->rule_count;
    for (size_t i = 0; i < (count + 1) * (top + 1); i++)
        mt_grammar_rule(g);
    for (size_t i = 0; i <= count && !mt_grammar_full(g); i++)
        for (size_t had = 0; had <= top; had++) {
            const size_t more = had < top ? had + 1 : had;
            mt_expr parts[2];
            size_t made = 0;

            if (i == count && had >= a->least)
                parts[made++] = had ? mt_json_space(j) : mt_grammar_empty(g);
            if (i < count)
                parts[made++] = mt_grammar_call(g, first + (mt_rule)((i + 1) * (top + 1) + had));
            if (i < count && had < a->most)
                parts[made++] = step(j, had == 0, values[i], first + (mt_rule)((i + 1) * (top + 1) + more));
            mt_grammar_define(g, first + (mt_rule)(i * (top + 1) + had), mt_grammar_any(g, parts, made));
        }
    *out = brackets(j, mt_grammar_call(g, first));
    return true;
}

/* Each item is one of listed values, and each value comes at most once. *why: NULL, or, where that cannot be written, a
   sentence's end that says why. False with a sentence. */
static bool write_unique(mt_schema_reader *r, const arrays *a, const char **why, mt_expr *out)
{
    mt_schema_place own;
    json_t *list;
    mt_expr *values;
    size_t count;

    *why = "is supported for listed values only (\"enum\", \"const\"): leave it out";
    if (a->prefix > 0 || a->contains)
        return true;
    if (!item_place(r, a->place, 0, &own))
        return false;
    list = own.never ? json_array() : own.count ? mt_schema_values(r, &own, VALUES) : NULL;
    if (!list)
        return true;
    count = json_array_size(list);
    values = mt_alloc_array(count + 1, sizeof(*values));
    for (size_t i = 0; i < count; i++)
        values[i] = mt_json_constant(r->j, json_array_get(list, i));
    *why = NULL;
    if (count <= SUBSETS)
        write_subsets(r->j, a, values, count, out);
    else if (!write_ordered(r->j, a, values, count, out))
        *why = "takes too many states together with the number of values and of items: make them smaller";
    mt_free(values);
    json_decref(list);
    return true;
}

/* ---- the plain case ---- */

/* Built from the end: what may follow the first n items. */
static bool write_plain(mt_schema_reader *r, const arrays *a, mt_expr *out)
{
    mt_json *j = r->j;
    mt_grammar *g = j->g;
    const uint32_t least = a->least, most = a->most;
    const size_t prefix = most < a->prefix ? most : a->prefix;
    mt_expr tail, rest;

    if (!item(r, a->place, a->prefix, &rest))
        return false;
    if (prefix == 0) { /* the first item has no comma */
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

            if (!item(r, a->place, i, &value))
                return false;
            tail = mt_grammar_seq(g, i ? mt_grammar_seq(g, mt_json_comma(j), value) : value, tail);
            mt_grammar_define(g, rule, i && i >= least ? mt_grammar_maybe(g, tail) : tail);
            tail = mt_grammar_call(g, rule);
        }
    }
    tail = mt_grammar_list(g, (mt_expr[]){mt_json_space(j), tail, mt_json_space(j)}, 3);
    *out = brackets(j, least == 0 ? mt_grammar_maybe(g, tail) : tail);
    return true;
}

bool mt_schema_array(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out)
{
    arrays a = {.place = place, .most = MT_GRAMMAR_UNLIMITED};
    const char *why;

    for (size_t i = 0; i < place->count; i++)
        if (!read_part(r, &place->part[i], &a))
            return false;
    if (a.prefix > MT_LIMIT_SCHEMA_PROPERTIES)
        return mt_schema_fail(r, place->part[0].path, "prefixItems", "is too long: shorten it");
    if (a.unique && a.most > 1) {
        if (!write_unique(r, &a, &why, out))
            return false;
        if (!why)
            return true;
        if (!mt_schema_loosen(r, a.unique_path, "uniqueItems", why))
            return false;
    }
    if (a.contains) {
        if (!write_contains(r, &a, &why, out))
            return false;
        if (!why)
            return true;
        if (!mt_schema_loosen(r, a.contains_path, "contains", why))
            return false;
    }
    return write_plain(r, &a, out);
}
