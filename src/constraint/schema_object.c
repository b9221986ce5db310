/* Objects: the declared properties in their order, of which those not required may be missing; then undeclared ones,
   where they are allowed (schema_keys.c). A property's value satisfies all schemas of the place.

   Where some schema declares properties and none has additionalProperties, no others are allowed: a
   schema that lists the properties of an answer is not meant to allow further ones. */
#include "constraint/schema_object.h"

#include <string.h>

#include "base/alloc.h"
#include "constraint/limits.h"

/* Returns the number of a name. index: the numbers of those there are. Counts one more than are allowed, and keeps no
   further ones. */
static size_t add_name(mt_schema_object_reader *o, json_t *index, const char *name)
{
    const json_t *there = json_object_get(index, name);

    if (there)
        return (size_t)json_integer_value(there);
    if (o->count > MT_LIMIT_SCHEMA_PROPERTIES)
        return 0;
    json_object_set_new(index, name, json_integer((json_int_t)o->count));
    o->names[o->count] = name;
    return o->count++;
}

/* Collects the names that schemas of the place declare, list and require. False with a sentence. */
static bool add_names(mt_schema_reader *r, mt_schema_object_reader *o, json_t *index)
{
    for (size_t i = 0; i < o->place->count; i++) {
        const char *key;
        json_t *value;

        json_object_foreach(json_object_get(o->place->part[i].schema, "properties"), key, value)
            add_name(o, index, key);
    }
    for (size_t k = 0; k < json_array_size(o->listed); k++)
        if (json_is_string(json_array_get(o->listed, k)))
            add_name(o, index, json_string_value(json_array_get(o->listed, k)));
    for (size_t i = 0; i < o->place->count; i++) {
        const json_t *list = json_object_get(o->place->part[i].schema, "required");

        for (size_t k = 0; k < json_array_size(list); k++) {
            const char *name = json_string_value(json_array_get(list, k));

            if (!name)
                return mt_schema_fail(r, o->place->part[i].path, "required", "is not a list of names: give one");
            o->required[add_name(o, index, name)] = true;
        }
    }
    return true;
}

/* Names that propertyNames lists are the only ones allowed. o->listed NULL: it lists none. */
static bool read_listed(mt_schema_reader *r, mt_schema_object_reader *o)
{
    mt_schema_place *names = mt_alloc(sizeof(*names));
    bool ok = true;

    for (size_t i = 0; ok && i < o->place->count; i++) {
        const json_t *schema = json_object_get(o->place->part[i].schema, "propertyNames");

        if (schema)
            ok = mt_schema_add(r, names, schema, mt_schema_path(r, o->place->part[i].path, "propertyNames", NULL));
    }
    o->restricted = names->count > 0 || names->never;
    if (ok && names->count > 0)
        o->listed = mt_schema_values(r, names, MT_LIMIT_SCHEMA_PROPERTIES);
    if (o->listed)
        mt_schema_keep(r, NULL, 0, o->listed);
    mt_free(names);
    return ok;
}

static bool read_names(mt_schema_reader *r, mt_schema_object_reader *o)
{
    size_t most = json_array_size(o->listed);
    json_t *index;
    bool ok;

    for (size_t i = 0; i < o->place->count; i++) {
        const json_t *schema = o->place->part[i].schema;
        const json_t *properties = json_object_get(schema, "properties"), *list = json_object_get(schema, "required");

        if (properties && !json_is_object(properties))
            return mt_schema_fail(r, o->place->part[i].path, "properties", "is not an object: give one");
        if (list && !json_is_array(list) && !json_is_boolean(list)) /* draft 3 had a boolean there */
            return mt_schema_fail(r, o->place->part[i].path, "required", "is not a list of names: give one");
        most += json_object_size(properties) + json_array_size(list);
    }
    r->members += most;
    if (r->members > MT_LIMIT_SCHEMA_MEMBERS)
        return mt_schema_fail(r, o->place->part[0].path, "properties", "are too many: use fewer");
    o->names = mt_arena_alloc(r->arena, (most + 1) * sizeof(*o->names));
    o->required = mt_arena_alloc(r->arena, (most + 1) * sizeof(*o->required));
    o->members = mt_arena_alloc(r->arena, (most + 1) * sizeof(*o->members));
    index = json_object();
    ok = add_names(r, o, index);
    json_decref(index);
    return ok && (o->count <= MT_LIMIT_SCHEMA_PROPERTIES ||
                  mt_schema_fail(r, o->place->part[0].path, "properties", "are too many: use fewer"));
}

static bool read_patterns(mt_schema_reader *r, mt_schema_object_reader *o)
{
    for (size_t i = 0; i < o->place->count; i++) {
        const mt_schema_part *part = &o->place->part[i];
        json_t *patterns = json_object_get(part->schema, "patternProperties"), *schema;
        const char *pattern;

        json_object_foreach(patterns, pattern, schema) {
            mt_schema_pattern *own = &o->patterns[o->pattern_count];

            if (o->pattern_count == MT_LIMIT_SCHEMA_KEY_PATTERNS)
                return mt_schema_fail(r, part->path, "patternProperties", "has too many patterns: use fewer");
            own->regex = mt_schema_regex(r, part->path, "patternProperties", pattern, strlen(pattern));
            if (!own->regex)
                return false;
            own->part = i;
            own->schema = schema;
            own->path = mt_schema_path(r, part->path, "patternProperties", pattern);
            o->pattern_count++;
        }
    }
    return true;
}

/* *told: the patterns that a name matches. */
static bool tell(mt_schema_reader *r, const mt_schema_object_reader *o, const char *name, uint32_t *told)
{
    *told = 0;
    for (size_t k = 0; k < o->pattern_count; k++) {
        bool fits;

        if (!mt_regex_matches(r->j->g, o->patterns[k].regex, name, strlen(name), &fits))
            return mt_schema_fail(r, o->patterns[k].path, "patternProperties", "is too large: simplify it");
        *told |= (uint32_t)fits << k;
    }
    return true;
}

/* Whether propertyNames allows a name; where that is unknown, it does not. */
static bool allowed(mt_schema_reader *r, const mt_schema_object_reader *o, const char *name)
{
    json_t *value = json_string(name);
    bool ok = true;

    for (size_t i = 0; ok && i < o->place->count; i++) {
        const json_t *schema = json_object_get(o->place->part[i].schema, "propertyNames");

        ok = !schema || mt_schema_judge(r, schema, value) == MT_JUDGED_YES;
    }
    json_decref(value);
    return ok;
}

/* A colon and a value, as a rule that all properties with this value share. */
static mt_expr write_value(mt_schema_reader *r, mt_expr value)
{
    mt_grammar *g = r->j->g;
    const bool called = g->nodes[value].kind == MT_EXPR_CALL;
    const mt_rule rule = called ? g->nodes[value].a : 0;
    uint32_t *slot = &r->member_slots[rule % MT_SCHEMA_SLOTS];
    mt_expr made;

    for (uint32_t i = *slot; called && i; i = r->member_rules[i - 1].same)
        if (r->member_rules[i - 1].value == rule)
            return mt_grammar_call(g, r->member_rules[i - 1].rule);
    made = mt_grammar_seq(g, mt_json_colon(r->j), value);
    if (!called)
        return made;
    r->member_rules = mt_grow(r->member_rules, &r->member_cap, r->member_count + 1, sizeof(*r->member_rules));
    r->member_rules[r->member_count] = (mt_schema_member){.value = rule, .rule = mt_grammar_rule(g), .same = *slot};
    mt_grammar_define(g, r->member_rules[r->member_count].rule, made);
    made = mt_grammar_call(g, r->member_rules[r->member_count].rule);
    *slot = (uint32_t)++r->member_count;
    return made;
}

static bool read_members(mt_schema_reader *r, mt_schema_object_reader *o)
{
    for (size_t n = 0; n < o->count; n++) {
        mt_schema_place own;
        mt_expr value = 0;
        uint32_t told;

        own.count = 0;
        own.never = o->restricted && !allowed(r, o, o->names[n]);
        if (!tell(r, o, o->names[n], &told) || !mt_schema_key_rules(r, o, o->names[n], told, &own) ||
            !mt_schema_call(r, &own, &value))
            return false;
        o->members[n] = own.never ? mt_grammar_never(r->j->g)
                                  : mt_grammar_seq(r->j->g, mt_json_key_rest(r->j, o->names[n]), write_value(r, value));
    }
    return true;
}

/* ---- the whole ---- */

/* The properties of an object are a chain of right-linear rules, two for each pair (i, had): properties before number i
   are written or left out, and `had` properties were written, counted up to `top`. What all properties begin with, a
   comma or white space and then a quote, is read before it is decided which property comes: so a state within the white
   space has one place for an object, not one for each of its optional properties. */
typedef enum chain_rule {
    REST, /* behind a value or the brace: some of the properties from number i on, and the end */
    NAME, /* behind the quote: one of these properties, and the rest */
    RULES
} chain_rule;

typedef struct chain {
    const mt_schema_object_reader *o;
    mt_rule first, end; /* end: the white space behind the last property */
    uint32_t top;
    size_t last; /* properties from this number on are all optional */
} chain;

static mt_rule rule_of(const chain *c, chain_rule which, size_t i, uint32_t had)
{
    return c->first + (mt_rule)(RULES * (i * (c->top + 1) + (had < c->top ? had : c->top)) + which);
}

static mt_expr follow(mt_schema_reader *r, const chain *c, chain_rule which, size_t i, uint32_t had)
{
    return mt_grammar_call(r->j->g, rule_of(c, which, i, had));
}

/* A property whose name and value are `what`, and the rest. */
static mt_expr member(mt_schema_reader *r, const chain *c, mt_expr what, size_t i, uint32_t had)
{
    if (had >= c->o->most)
        return mt_grammar_never(r->j->g);
    return mt_grammar_seq(r->j->g, what, follow(r, c, REST, i, had + 1));
}

static mt_expr name(mt_schema_reader *r, const chain *c, size_t i, uint32_t had)
{
    const mt_schema_object_reader *o = c->o;
    mt_expr all;

    if (i < o->count) {
        all = member(r, c, o->members[i], i + 1, had);
        return o->required[i] ? all : mt_grammar_or(r->j->g, all, follow(r, c, NAME, i + 1, had));
    }
    /* an undeclared key may come twice and counts once then: so at most one is relied on */
    return o->open && had + 1 >= o->least ? member(r, c, o->other, i, had) : mt_grammar_never(r->j->g);
}

static mt_expr rest(mt_schema_reader *r, const chain *c, size_t i, uint32_t had)
{
    mt_grammar *g = r->j->g;
    const mt_expr more = mt_grammar_list(g,
                                         (mt_expr[]){had ? mt_json_comma(r->j) : mt_json_space(r->j),
                                                     mt_json_key_begin(r->j), follow(r, c, NAME, i, had)},
                                         3);

    if (i < c->last || had < c->o->least)
        return more;
    return mt_grammar_or(g, more, had ? mt_grammar_call(g, c->end) : mt_grammar_empty(g));
}

/* Defines the rules of number i for each count of properties that can have been written before it. least: how many of
   them are required. */
static void define(mt_schema_reader *r, const chain *c, size_t i, uint32_t least)
{
    for (uint32_t had = least < c->top ? least : c->top; had <= c->top && (had <= i || i == c->o->count); had++) {
        mt_grammar_define(r->j->g, rule_of(c, NAME, i, had), name(r, c, i, had));
        mt_grammar_define(r->j->g, rule_of(c, REST, i, had), rest(r, c, i, had));
    }
}

static bool read_counts(mt_schema_reader *r, mt_schema_object_reader *o)
{
    o->most = MT_GRAMMAR_UNLIMITED;
    for (size_t i = 0; i < o->place->count; i++) {
        uint32_t low = 0, high = MT_GRAMMAR_UNLIMITED;
        bool single = false;
        const json_t *values = mt_schema_excluded(&o->place->part[i], &single);

        if (!mt_schema_count(r, &o->place->part[i], "minProperties", &low) ||
            !mt_schema_count(r, &o->place->part[i], "maxProperties", &high))
            return false;
        for (size_t k = 0; values && k < (single ? 1 : json_array_size(values)); k++) {
            const json_t *value = single ? values : json_array_get(values, k);

            if (json_is_object(value) && json_object_size(value) == 0 && low == 0)
                low = 1; /* {} is excluded; other objects: see schema.c */
        }
        o->least = low > o->least ? low : o->least;
        o->most = high < o->most ? high : o->most;
    }
    if (o->least > o->count + 1 && o->open) {
        if (!mt_schema_loosen(r, o->place->part[0].path, "minProperties",
                              "counts properties that are not declared, beyond the first of them, which is not "
                              "supported: leave it out"))
            return false;
        o->least = (uint32_t)o->count + 1;
    }
    return true;
}

bool mt_schema_object(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out)
{
    mt_grammar *g = r->j->g;
    mt_schema_object_reader o = {.place = place};
    chain c = {.o = &o};
    uint32_t needed = 0;

    if (!read_listed(r, &o) || !read_names(r, &o) || !read_patterns(r, &o) || !read_members(r, &o) ||
        !mt_schema_read_keys(r, &o) || !read_counts(r, &o))
        return false;
    c.top = o.most != MT_GRAMMAR_UNLIMITED ? o.most : o.least > 0 ? o.least : 1;
    if (c.top > o.count && !o.open)
        c.top = (uint32_t)o.count + 1;
    if ((uint64_t)(c.top + 1) * (o.count + 1) > MT_LIMIT_SCHEMA_COUNTED)
        return mt_schema_fail(r, place->part[0].path, "maxProperties", "is too large: make it smaller");
    c.end = mt_grammar_rule(g);
    mt_grammar_define(g, c.end, mt_json_space(r->j));
    c.first = (mt_rule)g->rule_count;
    for (size_t i = 0; i < RULES * (o.count + 1) * (c.top + 1); i++)
        mt_grammar_rule(g);
    for (size_t i = 0; i < o.count; i++)
        c.last = o.required[i] ? i + 1 : c.last;
    for (size_t i = 0; i <= o.count && !mt_grammar_full(g); i++) {
        define(r, &c, i, needed);
        needed += i < o.count && o.required[i];
    }
    *out =
        mt_grammar_list(g, (mt_expr[]){mt_grammar_text(g, "{"), follow(r, &c, REST, 0, 0), mt_grammar_text(g, "}")}, 3);
    return true;
}
