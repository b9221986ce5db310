/* Objects: the declared properties in their order, those that are not required may be missing; others behind them,
   where they are allowed. A property is what all schemas of the place say about it.

   Where some schema declares properties and none says additionalProperties, there are no others: nobody who lists
   the properties of an answer wants to be sent further ones. */
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "sample/constraint/charset.h"
#include "sample/constraint/regex.h"
#include "sample/constraint/schema_inside.h"

typedef struct object {
    const mt_schema_place *place;
    const char **names;
    bool *required;
    mt_expr *members; /* "name": value */
    size_t count;
    const mt_regex *pattern; /* of patternProperties, of which there is one; NULL: none */
    const char *pattern_path;
    const json_t *pattern_schema;
    bool open;            /* others may follow */
    mt_expr other;        /* one of them */
    uint32_t least, most; /* properties in all */
} object;

static bool find(const object *o, const char *name, size_t *at)
{
    for (*at = 0; *at < o->count; (*at)++)
        if (strcmp(o->names[*at], name) == 0)
            return true;
    return false;
}

static void add_name(object *o, const char *name)
{
    size_t at;

    if (!find(o, name, &at))
        o->names[o->count++] = name;
}

static bool read_names(mt_schema_reader *r, object *o)
{
    size_t most = 0, at;

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
    if (most > MT_LIMIT_SCHEMA_PROPERTIES || r->members > MT_LIMIT_SCHEMA_MEMBERS)
        return mt_schema_fail(r, o->place->part[0].path, "properties", "are too many: use fewer");
    o->names = mt_arena_alloc(r->arena, (most + 1) * sizeof(*o->names));
    o->required = mt_arena_alloc(r->arena, (most + 1) * sizeof(*o->required));
    o->members = mt_arena_alloc(r->arena, (most + 1) * sizeof(*o->members));
    for (size_t i = 0; i < o->place->count; i++) {
        const char *key;
        json_t *value;

        json_object_foreach(json_object_get(o->place->part[i].schema, "properties"), key, value) add_name(o, key);
    }
    for (size_t i = 0; i < o->place->count; i++) {
        const json_t *list = json_object_get(o->place->part[i].schema, "required");

        for (size_t k = 0; k < json_array_size(list); k++) {
            const char *name = json_string_value(json_array_get(list, k));

            if (!name)
                return mt_schema_fail(r, o->place->part[i].path, "required", "is not a list of names: give one");
            add_name(o, name);
            find(o, name, &at);
            o->required[at] = true;
        }
    }
    return true;
}

/* The pattern of patternProperties, read once. */
static bool read_pattern(mt_schema_reader *r, object *o)
{
    for (size_t i = 0; i < o->place->count; i++) {
        const mt_schema_part *part = &o->place->part[i];
        json_t *patterns = json_object_get(part->schema, "patternProperties");
        const char *pattern = json_object_iter_key(json_object_iter(patterns));

        if (json_object_size(patterns) == 0)
            continue;
        if (json_object_size(patterns) > 1)
            return mt_schema_fail(r, part->path, "patternProperties", "has several patterns: use one");
        if (o->place->count > 1)
            return mt_schema_fail(r, part->path, "patternProperties",
                                  "stands beside other schemas of the same place, which is not supported");
        o->pattern = mt_schema_regex(r, part->path, "patternProperties", pattern, strlen(pattern));
        o->pattern_path = mt_schema_path(r, part->path, "patternProperties", pattern);
        o->pattern_schema = json_object_get(patterns, pattern);
        return o->pattern != NULL;
    }
    return true;
}

/* A declared property that the pattern fits as well could come twice. */
static bool check_apart(mt_schema_reader *r, const object *o)
{
    bool fits = false;

    for (size_t i = 0; o->pattern && i < o->count && !fits; i++)
        if (!mt_regex_matches(o->pattern, o->names[i], strlen(o->names[i]), &fits))
            return mt_schema_fail(r, o->pattern_path, "patternProperties", "is too large: simplify it");
    return !fits || mt_schema_fail(r, o->pattern_path, "patternProperties",
                                   "has a pattern that a declared property fits, too: make it narrower");
}

/* What a schema says about a property: by its name, or as one of the others. */
static bool add_rules(mt_schema_reader *r, const mt_schema_part *part, const char *name, mt_schema_place *own)
{
    const json_t *schema = json_object_get(json_object_get(part->schema, "properties"), name);
    const json_t *others = json_object_get(part->schema, "additionalProperties");

    if (schema)
        return mt_schema_add(r, own, schema, mt_schema_path(r, part->path, "properties", name));
    return !others || mt_schema_add(r, own, others, mt_schema_path(r, part->path, "additionalProperties", NULL));
}

static bool read_members(mt_schema_reader *r, object *o)
{
    mt_grammar *g = r->j->g;

    for (size_t n = 0; n < o->count; n++) {
        mt_schema_place own = {.count = 0};
        mt_expr value = 0;
        bool ok = true;

        for (size_t i = 0; ok && i < o->place->count; i++)
            ok = add_rules(r, &o->place->part[i], o->names[n], &own);
        ok = ok && mt_schema_call(r, &own, &value);
        if (ok)
            o->members[n] =
                mt_grammar_list(g, (mt_expr[]){mt_json_key(r->j, o->names[n]), mt_json_colon(r->j), value}, 3);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- properties that are not declared ---- */

/* Keys that are none of the names: behind names[i] for i in live, which all begin with the same `depth` bytes. */
static mt_expr other_key(mt_schema_reader *r, const char *const *names, const size_t *offsets, size_t count)
{
    mt_grammar *g = r->j->g;
    mt_char_writer *const write = mt_json_chars(r->j);
    mt_charset taken = {0};
    const char **same = mt_alloc_array(count + 1, sizeof(*same));
    size_t *same_offsets = mt_alloc_array(count + 1, sizeof(*same_offsets));
    mt_expr all = mt_grammar_never(g), free_rest;
    bool ends = true;

    for (size_t i = 0; i < count; i++) {
        const char *at = names[i] + offsets[i];
        uint32_t code;
        size_t alike = 0;

        if (!*at) {
            ends = false;
            continue;
        }
        code = mt_utf8_at(at);
        if (mt_charset_has(&taken, code))
            continue;
        mt_charset_add(&taken, code, code);
        for (size_t k = i; k < count; k++) {
            const char *other = names[k] + offsets[k];

            if (!*other || mt_utf8_at(other) != code)
                continue;
            same[alike] = names[k];
            same_offsets[alike++] = offsets[k] + mt_utf8_size(*other);
        }
        all = mt_grammar_or(
            g, all,
            mt_grammar_seq(g, write(g, &(mt_char_range){code, code}, 1), other_key(r, same, same_offsets, alike)));
    }
    mt_charset_sort(&taken);
    mt_charset_invert(&taken);
    free_rest = mt_grammar_seq(
        g, mt_grammar_repeat_plain(g, write(g, &(mt_char_range){0, MT_CHAR_MAX}, 1), 0, MT_GRAMMAR_UNLIMITED),
        mt_json_quote(r->j));
    all = mt_grammar_or(g, all, mt_grammar_seq(g, write(g, taken.at, taken.count), free_rest));
    if (ends)
        all = mt_grammar_or(g, all, mt_json_quote(r->j));
    mt_charset_free(&taken);
    mt_free(same);
    mt_free(same_offsets);
    return all;
}

static bool check_names(mt_schema_reader *r, const object *o)
{
    for (size_t i = 0; i < o->count; i++)
        if (strlen(o->names[i]) > MT_LIMIT_PARSE_NAME)
            return mt_schema_fail(r, o->place->part[0].path, "properties", "has a name that is too long: shorten it");
    return true;
}

static bool read_others(mt_schema_reader *r, object *o, const mt_schema_place *values)
{
    mt_grammar *g = r->j->g;
    size_t *offsets;
    mt_expr value, key;

    if (!check_names(r, o) || !mt_schema_call(r, values, &value))
        return false;
    offsets = mt_alloc_array(o->count + 1, sizeof(*offsets));
    key = mt_grammar_seq(g, mt_json_quote(r->j), other_key(r, (const char *const *)o->names, offsets, o->count));
    mt_free(offsets);
    o->other = mt_grammar_list(g, (mt_expr[]){key, mt_json_colon(r->j), value}, 3);
    o->open = true;
    return true;
}

/* Keys that the pattern fits. */
static bool read_patterned(mt_schema_reader *r, object *o)
{
    mt_schema_place own = {.count = 0};
    mt_grammar *g = r->j->g;
    mt_expr value, key;

    if (!mt_schema_add(r, &own, o->pattern_schema, o->pattern_path) || !mt_schema_call(r, &own, &value))
        return false;
    key = mt_grammar_list(
        g, (mt_expr[]){mt_json_quote(r->j), mt_regex_expr(o->pattern, g, mt_json_chars(r->j)), mt_json_quote(r->j)}, 3);
    o->other = mt_grammar_list(g, (mt_expr[]){key, mt_json_colon(r->j), value}, 3);
    o->open = true;
    return true;
}

static bool read_rest(mt_schema_reader *r, object *o)
{
    mt_schema_place values = {.count = 0};
    bool declared = false, said = false;

    if (o->pattern)
        return read_patterned(r, o);
    for (size_t i = 0; i < o->place->count; i++) {
        const mt_schema_part *part = &o->place->part[i];
        const json_t *others = json_object_get(part->schema, "additionalProperties");

        declared |= json_object_get(part->schema, "properties") != NULL;
        said |= others != NULL;
        if (others && !mt_schema_add(r, &values, others, mt_schema_path(r, part->path, "additionalProperties", NULL)))
            return false;
    }
    if (values.never || (declared && !said))
        return true;
    return read_others(r, o, &values);
}

/* ---- the whole ---- */

/* properties[i ...] may follow `had` others; had counts up to `top`. Right-linear rules, one for each pair. */
typedef struct chain {
    const object *o;
    mt_rule first;
    uint32_t top;
} chain;

static mt_expr follow(mt_schema_reader *r, const chain *c, size_t i, uint32_t had)
{
    const uint32_t at = had < c->top ? had : c->top;

    return mt_grammar_call(r->j->g, c->first + (mt_rule)(i * (c->top + 1) + at));
}

static mt_expr member(mt_schema_reader *r, const chain *c, mt_expr what, size_t i, uint32_t had)
{
    mt_grammar *g = r->j->g;

    if (had >= c->o->most)
        return mt_grammar_never(g);
    return mt_grammar_list(
        g, (mt_expr[]){had ? mt_json_comma(r->j) : mt_json_space(r->j), what, follow(r, c, i, had + 1)}, 3);
}

static void define(mt_schema_reader *r, const chain *c, size_t i, uint32_t had)
{
    const object *o = c->o;
    mt_grammar *g = r->j->g;
    mt_expr all;

    if (i < o->count) {
        all = member(r, c, o->members[i], i + 1, had);
        if (!o->required[i])
            all = mt_grammar_or(g, all, follow(r, c, i + 1, had));
    } else {
        all = had < o->least ? mt_grammar_never(g) : had ? mt_json_space(r->j) : mt_grammar_empty(g);
        if (o->open)
            all = mt_grammar_or(g, member(r, c, o->other, i, had), all);
    }
    mt_grammar_define(g, c->first + (mt_rule)(i * (c->top + 1) + had), all);
}

static bool read_counts(mt_schema_reader *r, object *o)
{
    size_t required = 0;

    o->most = MT_GRAMMAR_UNLIMITED;
    for (size_t i = 0; i < o->place->count; i++) {
        uint32_t low = 0, high = MT_GRAMMAR_UNLIMITED;

        if (!mt_schema_count(r, &o->place->part[i], "minProperties", &low) ||
            !mt_schema_count(r, &o->place->part[i], "maxProperties", &high))
            return false;
        o->least = low > o->least ? low : o->least;
        o->most = high < o->most ? high : o->most;
    }
    for (size_t i = 0; i < o->count; i++)
        required += o->required[i];
    if (o->least > required && o->open) /* keys that are free may come twice and then count once */
        return mt_schema_fail(r, o->place->part[0].path, "minProperties",
                              "counts properties that are not declared, which is not supported: leave it out");
    return true;
}

bool mt_schema_object(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out)
{
    mt_grammar *g = r->j->g;
    object o = {.place = place};
    chain c = {.o = &o};

    if (!read_names(r, &o) || !read_pattern(r, &o) || !check_apart(r, &o) || !read_members(r, &o) ||
        !read_rest(r, &o) || !read_counts(r, &o))
        return false;
    c.top = o.most != MT_GRAMMAR_UNLIMITED ? o.most : o.least > 0 ? o.least : 1;
    if (c.top > o.count && !o.open)
        c.top = (uint32_t)o.count + 1;
    if ((uint64_t)(c.top + 1) * (o.count + 1) > MT_LIMIT_SCHEMA_COUNTED)
        return mt_schema_fail(r, place->part[0].path, "maxProperties", "is too large: make it smaller");
    c.first = (mt_rule)g->rule_count;
    for (size_t i = 0; i < (o.count + 1) * (c.top + 1); i++)
        mt_grammar_rule(g);
    for (size_t i = 0; i <= o.count && !mt_grammar_full(g); i++)
        for (uint32_t had = 0; had <= c.top; had++)
            define(r, &c, i, had);
    *out = mt_grammar_list(g, (mt_expr[]){mt_grammar_text(g, "{"), follow(r, &c, 0, 0), mt_grammar_text(g, "}")}, 3);
    return true;
}
