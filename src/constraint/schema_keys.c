/* Undeclared properties: any key but the declared ones; or, with patterns or propertyNames, an automaton over keys that
   knows at their end which patterns they match, and so what their values must be. */
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "constraint/charset.h"
#include "constraint/limits.h"
#include "constraint/schema_object.h"

/* Any key that is none of the names. names: sorted; offsets: the bytes of each that were matched so far. */
static mt_expr other_key(mt_schema_reader *r, const char *const *names, const size_t *offsets, size_t count)
{
    mt_grammar *g = r->j->g;
    mt_char_writer *const write = mt_json_chars(r->j);
    mt_charset taken = {0};
    const char **same = mt_alloc_array(count + 1, sizeof(*same));
    size_t *same_offsets = mt_alloc_array(count + 1, sizeof(*same_offsets));
    mt_expr all = mt_grammar_never(g), free_rest;
    bool ends = true;

    for (size_t i = 0; i < count && !mt_grammar_full(g); i++) {
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

static bool check_names(mt_schema_reader *r, const mt_schema_object_reader *o)
{
    for (size_t i = 0; i < o->count; i++)
        if (strlen(o->names[i]) > MT_LIMIT_PARSE_NAME)
            return mt_schema_fail(r, o->place->part[0].path, "properties", "has a name that is too long: shorten it");
    return true;
}

/* Whether keys that match no pattern are excluded: some schema declares properties and none allows others. */
static bool closed(const mt_schema_object_reader *o)
{
    bool declared = false, said = false;

    for (size_t i = 0; i < o->place->count; i++) {
        const json_t *schema = o->place->part[i].schema;
        const bool made = json_object_get(schema, MT_SCHEMA_MADE) != NULL;

        declared |= !made && (json_object_get(schema, "properties") || json_object_get(schema, "patternProperties"));
        said |= json_object_get(schema, "additionalProperties") || json_object_get(schema, "unevaluatedProperties");
    }
    return declared && !said;
}

/* Any key but the declared ones. */
static bool read_others(mt_schema_reader *r, mt_schema_object_reader *o)
{
    mt_grammar *g = r->j->g;
    mt_schema_place values;
    size_t *offsets;
    mt_expr value, key;

    values.count = 0;
    values.never = closed(o);
    if (!mt_schema_key_rules(r, o, NULL, 0, &values))
        return false;
    if (values.never)
        return true;
    if (!check_names(r, o) || !mt_schema_call(r, &values, &value))
        return false;
    offsets = mt_alloc_array(o->count + 1, sizeof(*offsets));
    key = mt_grammar_seq(g, mt_json_key_open(r->j), other_key(r, (const char *const *)o->names, offsets, o->count));
    mt_free(offsets);
    o->other = mt_grammar_list(g, (mt_expr[]){key, mt_json_colon(r->j), value}, 3);
    o->open = true;
    return true;
}

/* ---- keys that patterns or propertyNames speak of ---- */

/* Context of `behind`. closed: keys that match no pattern are excluded. */
typedef struct keys {
    mt_schema_reader *r;
    const mt_schema_object_reader *o;
    bool closed, failed;
} keys;

/* The rest of a member whose key matches these patterns: a colon and the value. */
static mt_expr behind(void *context, uint32_t told)
{
    keys *k = context;
    mt_grammar *g = k->r->j->g;
    mt_schema_place own;
    mt_expr value;

    own.count = 0;
    own.never = told == 0 && k->closed;
    if (!k->failed && !own.never && !mt_schema_key_rules(k->r, k->o, NULL, told, &own))
        k->failed = true;
    if (k->failed || own.never || !mt_schema_call(k->r, &own, &value))
        return mt_grammar_never(g);
    return mt_grammar_list(g, (mt_expr[]){mt_json_quote(k->r->j), mt_json_colon(k->r->j), value}, 3);
}

/* An expression that matches the declared names. */
static const mt_regex *names_regex(mt_schema_reader *r, const mt_schema_object_reader *o)
{
    mt_error ignored = {0};
    const mt_regex *regex;
    mt_buf text;

    mt_buf_init(&text, 1 << 20);
    mt_buf_puts(&text, "^(?:");
    for (size_t i = 0; i < o->count; i++) {
        mt_buf_puts(&text, i ? "|" : "");
        for (const char *at = o->names[i]; *at; at++) {
            if (strchr("\\^$.|?*+()[]{}/", *at))
                mt_buf_puts(&text, "\\");
            mt_buf_add(&text, at, 1);
        }
    }
    mt_buf_puts(&text, ")$");
    regex = mt_regex_read(r->arena, text.data, text.len, true, &ignored);
    mt_buf_free(&text);
    return regex;
}

/* What propertyNames says, where it is about strings without alternatives. */
static bool read_restriction(mt_schema_reader *r, const mt_schema_object_reader *o, mt_schema_strings *s, bool *never)
{
    mt_schema_place *names = mt_alloc(sizeof(*names));
    unsigned types = MT_TYPE_STRING;
    bool ok = true, choices = false;

    for (size_t i = 0; ok && i < o->place->count; i++) {
        const json_t *schema = json_object_get(o->place->part[i].schema, "propertyNames");

        if (schema)
            ok = mt_schema_add(r, names, schema, mt_schema_path(r, o->place->part[i].path, "propertyNames", NULL));
    }
    for (size_t i = 0; ok && i < names->count; i++) {
        unsigned own;

        choices |= json_object_get(names->part[i].schema, "anyOf") || json_object_get(names->part[i].schema, "enum") ||
                   json_object_get(names->part[i].schema, "const");
        ok = mt_schema_own_types(r, &names->part[i], &own);
        types &= own;
    }
    *never = names->never || !types;
    if (ok && choices)
        ok = mt_schema_loosen(r, o->place->part[0].path, "propertyNames",
                              "has alternatives that are not all constants, which is not supported: use a pattern");
    ok = ok && mt_schema_strings_read(r, names, s);
    mt_free(names);
    return ok;
}

/* *done: there was only one pattern, which no declared name matches, and it was written directly. */
static bool read_single(mt_schema_reader *r, mt_schema_object_reader *o, bool *done)
{
    mt_grammar *g = r->j->g;
    const mt_regex *regex = o->patterns[0].regex;
    mt_schema_place values;
    mt_expr value;
    bool fits = o->pattern_count != 1 || o->restricted || regex->aware;

    for (size_t i = 0; i < o->count && !fits; i++)
        if (!mt_regex_matches(r->j->g, regex, o->names[i], strlen(o->names[i]), &fits))
            fits = true;
    values.count = 0;
    values.never = closed(o);
    if (!fits && !mt_schema_key_rules(r, o, NULL, 0, &values))
        return false;
    *done = !fits && values.never;
    if (!*done)
        return true;
    values.count = 0;
    values.never = false;
    if (!mt_schema_key_rules(r, o, NULL, 1, &values) || !mt_schema_call(r, &values, &value))
        return false;
    o->other = mt_grammar_list(g,
                               (mt_expr[]){mt_json_key_open(r->j), mt_regex_expr(regex, g, mt_json_chars(r->j)),
                                           mt_json_quote(r->j), mt_json_colon(r->j), value},
                               5);
    o->open = !values.never;
    return true;
}

/* Writes the automaton over keys. Where it is too large it is removed from the grammar, together with the rules that
   `behind` made for values; so these are forgotten here as well. */
static bool write_keys(mt_schema_reader *r, const mt_regex_query *query, mt_expr *out)
{
    const mt_json before = *r->j;
    const size_t rules = r->rule_count;

    if (mt_regex_query_expr(query, r->j->g, mt_json_chars(r->j), out))
        return true;
    *r->j = before;
    mt_schema_forget_calls(r, rules);
    return false;
}

/* Undeclared keys that patterns or propertyNames are about, as an automaton; where that is too large, they are left
   out. */
static bool read_patterned(mt_schema_reader *r, mt_schema_object_reader *o)
{
    const mt_regex *told[MT_LIMIT_SCHEMA_KEY_PATTERNS];
    keys k = {.r = r, .o = o, .closed = closed(o)};
    mt_schema_strings s;
    mt_regex_query query = {.told = told, .told_count = o->pattern_count, .behind = behind, .context = &k};
    bool never, done;

    if (!read_single(r, o, &done))
        return false;
    if (done)
        return true;
    if (!read_restriction(r, o, &s, &never))
        return false;
    if (never)
        return true;
    for (size_t i = 0; i < o->pattern_count; i++)
        told[i] = o->patterns[i].regex;
    if (o->count > 0 && s.none_count < MT_LIMIT_SCHEMA_STRINGS) {
        s.none[s.none_count] = names_regex(r, o);
        s.none_count += s.none[s.none_count] != NULL;
    }
    query.all = s.all;
    query.all_count = s.all_count;
    query.none = s.none;
    query.none_count = s.none_count;
    query.least = s.least;
    query.most = s.most;
    if ((o->count > 0 && s.none_count == 0) || !write_keys(r, &query, &o->other))
        return k.failed ? false
                        : mt_schema_loosen(r, o->place->part[0].path,
                                           o->pattern_count ? "patternProperties" : "propertyNames",
                                           "takes an automaton that is too large: simplify it") &&
                              read_others(r, o);
    o->other = mt_grammar_seq(r->j->g, mt_json_key_open(r->j), o->other);
    o->open = true;
    return !k.failed;
}

bool mt_schema_read_keys(mt_schema_reader *r, mt_schema_object_reader *o)
{
    if (o->listed)
        return true;
    return o->pattern_count || o->restricted ? read_patterned(r, o) : read_others(r, o);
}
