/* Strings: patterns, formats and lengths. A single expression is written directly; lengths are worked into it where
   possible; all else becomes an automaton that follows all expressions at once and counts characters. */
#include <string.h>

#include "base/buf.h"
#include "constraint/lark.h"
#include "constraint/limits.h"
#include "constraint/schema_inside.h"

static bool add_regex(mt_schema_reader *r, const mt_schema_part *part, const char *keyword, const char *text,
                      size_t len, const mt_regex **list, size_t *count)
{
    mt_error *err = r->err, why = {0};

    if (*count == MT_LIMIT_SCHEMA_STRINGS)
        return mt_schema_fail(r, part->path, keyword, "is one of too many patterns for one place");
    r->err = r->strict ? err : &why;
    list[*count] = mt_schema_regex(r, part->path, keyword, text, len);
    r->err = err;
    if (list[*count]) {
        ++*count;
        return true;
    }
    return !r->strict && mt_schema_loosen(r, part->path, keyword, "");
}

/* most: maxLength, as far as known. */
static bool add_format(mt_schema_reader *r, const mt_schema_part *part, uint32_t most, mt_schema_strings *s)
{
    const json_t *format = json_object_get(part->schema, "format");
    const char *regex, *short_texts;
    uint32_t shorter;

    if (!json_is_string(format))
        return true;
    regex = mt_schema_format(json_string_value(format), &short_texts, &shorter);
    if (!regex)
        return true;
    if (short_texts && most < 200) {
        regex = short_texts;
        s->most = s->most < shorter ? s->most : shorter;
    }
    return add_regex(r, part, "format", regex, strlen(regex), s->all, &s->all_count);
}

/* Adds excluded strings, each as an expression. */
static bool add_excluded(mt_schema_reader *r, const mt_schema_part *part, mt_schema_strings *s)
{
    const json_t *pattern = json_object_get(json_object_get(part->schema, "not"), "pattern");
    bool single = false;
    const json_t *values = mt_schema_excluded(part, &single);
    const size_t count = !values ? 0 : single ? 1 : json_array_size(values);
    mt_buf text;
    bool ok = true, any = false;

    if (json_is_string(pattern) && mt_schema_leaf_not(json_object_get(part->schema, "not")))
        return add_regex(r, part, "not", json_string_value(pattern), json_string_length(pattern), s->none,
                         &s->none_count);
    mt_buf_init(&text, 1 << 20);
    mt_buf_puts(&text, "^(?:");
    for (size_t i = 0; i < count; i++) {
        const json_t *value = single ? values : json_array_get(values, i);

        if (!json_is_string(value))
            continue;
        mt_buf_puts(&text, any ? "|" : "");
        any = true;
        for (const char *at = json_string_value(value); *at; at++) {
            if (strchr("\\^$.|?*+()[]{}/", *at))
                mt_buf_puts(&text, "\\");
            mt_buf_add(&text, at, 1);
        }
    }
    mt_buf_puts(&text, ")$");
    if (any)
        ok = add_regex(r, part, "not", mt_arena_printf(r->arena, "%s", text.data), text.len, s->none, &s->none_count);
    mt_buf_free(&text);
    return ok;
}

bool mt_schema_strings_read(mt_schema_reader *r, const mt_schema_place *place, mt_schema_strings *s)
{
    *s = (mt_schema_strings){.most = MT_GRAMMAR_UNLIMITED, .path = place->count ? place->part[0].path : "#"};
    for (size_t i = 0; i < place->count; i++) {
        uint32_t least = 0, most = MT_GRAMMAR_UNLIMITED;

        if (!mt_schema_count(r, &place->part[i], "minLength", &least) ||
            !mt_schema_count(r, &place->part[i], "maxLength", &most))
            return false;
        s->least = least > s->least ? least : s->least;
        s->most = most < s->most ? most : s->most;
    }
    for (size_t i = 0; i < place->count; i++) {
        const mt_schema_part *part = &place->part[i];
        const json_t *pattern = json_object_get(part->schema, "pattern");

        if (pattern && !json_is_string(pattern))
            return mt_schema_fail(r, part->path, "pattern", "is not a string: give one");
        if (!add_format(r, part, s->most, s) || !add_excluded(r, part, s))
            return false;
        if (pattern && !add_regex(r, part, "pattern", json_string_value(pattern), json_string_length(pattern), s->all,
                                  &s->all_count))
            return false;
        if (pattern || json_object_get(part->schema, "format"))
            s->path = part->path;
    }
    return true;
}

/* Drops limits on the length that an expression keeps by itself. */
static void drop_bounds(mt_schema_strings *s)
{
    for (size_t i = 0; i < s->all_count; i++) {
        uint32_t least, most;

        if (s->all[i]->aware)
            continue;
        mt_regex_length(s->all[i], &least, &most);
        s->least = s->least <= least ? 0 : s->least;
        s->most = s->most >= most ? MT_GRAMMAR_UNLIMITED : s->most;
    }
}

static bool automaton(mt_schema_reader *r, const mt_schema_strings *s, mt_expr *out)
{
    const mt_regex_query query = {.all = s->all,
                                  .all_count = s->all_count,
                                  .none = s->none,
                                  .none_count = s->none_count,
                                  .least = s->least,
                                  .most = s->most};

    return mt_regex_query_expr(&query, r->j->g, mt_json_chars(r->j), out);
}

/* Allows fewer texts than possible, where all of them need too many states. Without bounds there is nothing to try. */
static bool narrow(mt_schema_reader *r, mt_schema_strings *s, mt_expr *out)
{
    if (s->most == MT_GRAMMAR_UNLIMITED)
        return false;
    for (size_t i = 0; i < s->all_count && s->most != MT_GRAMMAR_UNLIMITED; i++) {
        const mt_regex *fitted = mt_regex_fit(r->arena, s->all[i], 0, s->most, true);

        if (fitted) {
            s->all[i] = fitted;
            s->most = MT_GRAMMAR_UNLIMITED;
            drop_bounds(s);
        }
    }
    if (s->most != MT_GRAMMAR_UNLIMITED)
        return false;
    if (s->all_count == 1 && s->none_count == 0 && s->least == 0 && !s->all[0]->aware) {
        *out = mt_regex_expr(s->all[0], r->j->g, mt_json_chars(r->j));
        return true;
    }
    return automaton(r, s, out);
}

static bool inside(mt_schema_reader *r, mt_schema_strings *s, mt_expr *out)
{
    const mt_regex *fitted = NULL;

    drop_bounds(s);
    if (s->all_count == 1 && s->none_count == 0)
        fitted = mt_regex_fit(r->arena, s->all[0], s->least, s->most, false);
    if (fitted) {
        *out = mt_regex_expr(fitted, r->j->g, mt_json_chars(r->j));
        return true;
    }
    return automaton(r, s, out) || narrow(r, s, out);
}

const json_t *mt_schema_grammar(const json_t *schema)
{
    const json_t *definition = json_object_get(json_object_get(schema, MT_SCHEMA_GRAMMAR), "definition");

    return json_is_string(definition) ? definition : NULL;
}

/* A string whose text has a grammar. What else is said of it is not looked at: custom tools say nothing else. */
static bool grammar_string(mt_schema_reader *r, const json_t *definition, mt_expr *out)
{
    const mt_lark_text how = {.write = mt_json_chars(r->j)};
    mt_expr text;

    if (!mt_lark_expr(r->j->g, &how, json_string_value(definition), json_string_length(definition), &text, r->err))
        return false;
    *out = mt_grammar_list(r->j->g, (mt_expr[]){mt_json_quote(r->j), text, mt_json_quote(r->j)}, 3);
    return true;
}

bool mt_schema_string(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out)
{
    mt_grammar *g = r->j->g;
    mt_schema_strings s;
    mt_expr text;

    for (size_t i = 0; i < place->count; i++)
        if (mt_schema_grammar(place->part[i].schema))
            return grammar_string(r, mt_schema_grammar(place->part[i].schema), out);
    if (!mt_schema_strings_read(r, place, &s))
        return false;
    *out = mt_json_string(r->j, s.least, s.most);
    if (s.all_count == 0 && s.none_count == 0)
        return true;
    if (!inside(r, &s, &text))
        return mt_schema_loosen(
            r, s.path, "pattern",
            "is too large together with the bounds on the length, or with another one: simplify it");
    *out = mt_grammar_list(g, (mt_expr[]){mt_json_quote(r->j), text, mt_json_quote(r->j)}, 3);
    return true;
}
