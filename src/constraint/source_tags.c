/* See source_tags.h. Both shapes of response_format "structural_tag" that vLLM, SGLang and xgrammar take: a list of
   structures with triggers, which becomes a triggered_tags of the other, and a tree of formats. Text is free up to a
   trigger, which begins one of the tags that start with it. */
#include "constraint/source_tags.h"

#include <string.h>

#include "base/alloc.h"
#include "constraint/limits.h"
#include "constraint/schema.h"
#include "constraint/source_text.h"

typedef struct reader {
    mt_json *j;
    size_t depth;
    mt_error *err;
} reader;

static bool read_format(reader *r, const json_t *format, mt_expr *out);

static bool lacks(reader *r, const char *type, const char *what)
{
    return mt_fail(r->err, MT_E_INVALID, "the structural tag's \"%s\" has no %s: send one", type, what);
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* The end of a tag: a text, or the first of a list of texts. */
static const char *end_of(const json_t *tag)
{
    const json_t *end = json_object_get(tag, "end");

    return json_string_value(json_is_array(end) ? json_array_get(end, 0) : end);
}

/* A tag from behind the first `from` bytes of its beginning on. */
static bool read_tag(reader *r, const json_t *tag, size_t from, mt_expr *out)
{
    mt_grammar *g = r->j->g;
    const char *begin = text_of(tag, "begin"), *end = end_of(tag);
    const json_t *content = json_object_get(tag, "content");
    mt_expr inner = 0;

    if (!begin || !end)
        return lacks(r, "tag", "begin or end that is a string");
    if (content && *end && strcmp(text_of(content, "type") ? text_of(content, "type") : "", "any_text") == 0) {
        *out = mt_grammar_seq(g, mt_grammar_text(g, begin + from), mt_grammar_until(g, &end, 1));
        return true;
    }
    if (!read_format(r, content, &inner))
        return false;
    *out = mt_grammar_list(g, (mt_expr[]){mt_grammar_text(g, begin + from), inner, mt_grammar_text(g, end)}, 3);
    return true;
}

/* Whether the grammar has no room or no time left, which its maker reports to the client. */
static bool is_over(const reader *r)
{
    return mt_grammar_full(r->j->g) || mt_grammar_stopped(r->j->g);
}

/* One of the tags that begin with the trigger, from behind it on. */
static bool read_tags(reader *r, const json_t *tags, const char *trigger, mt_expr *out)
{
    mt_expr *parts = mt_alloc_array(json_array_size(tags) + 1, sizeof(*parts));
    const size_t from = strlen(trigger);
    size_t count = 0;
    bool ok = true;

    for (size_t i = 0; ok && i < json_array_size(tags) && !is_over(r); i++) {
        const char *begin = text_of(json_array_get(tags, i), "begin");

        if (!begin || strncmp(begin, trigger, from) == 0)
            ok = read_tag(r, json_array_get(tags, i), begin ? from : 0, &parts[count++]);
    }
    if (ok && count == 0 && !is_over(r))
        ok = mt_fail(r->err, MT_E_INVALID, "no structural tag begins with the trigger \"%.60s\": send one", trigger);
    *out = mt_grammar_any(r->j->g, parts, count);
    mt_free(parts);
    return ok;
}

static bool flag(const json_t *format, const char *name)
{
    return json_is_true(json_object_get(format, name));
}

/* Collects a list of strings that are not empty; false: it is something else. */
static bool strings_of(const json_t *list, const char **out, size_t *count)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        out[*count] = json_string_value(json_array_get(list, i));
        if (!out[*count] || !*out[*count])
            return false;
        ++*count;
    }
    return true;
}

/* Free text with tags in it. marks: the triggers, then what the text must not have. */
static bool write_triggered(reader *r, const json_t *format, const char **marks, size_t triggers, size_t count,
                            mt_expr *out)
{
    mt_grammar *g = r->j->g;
    mt_expr *parts = mt_alloc_array(triggers + 1, sizeof(*parts)), any;
    const uint32_t least = flag(format, "at_least_one");
    bool ok = true;

    for (size_t i = 0; ok && i < triggers && !is_over(r); i++) {
        const char *first = marks[i];
        mt_expr tags = 0;

        ok = read_tags(r, json_object_get(format, "tags"), first, &tags);
        marks[i] = marks[0]; /* the marker that the text ends with stands first */
        marks[0] = first;
        parts[i] = ok ? mt_grammar_seq(g, mt_grammar_until(g, marks, count), tags) : 0;
        marks[0] = marks[i];
        marks[i] = first;
    }
    any = mt_grammar_any(g, parts, triggers);
    mt_free(parts);
    if (flag(format, "stop_after_first"))
        *out = least ? any : mt_grammar_or(g, any, mt_grammar_without(g, marks, count));
    else
        *out = mt_grammar_seq(g, mt_grammar_repeat(g, any, least, MT_GRAMMAR_UNLIMITED),
                              mt_grammar_without(g, marks, count));
    return ok;
}

static bool read_triggered(reader *r, const json_t *format, mt_expr *out)
{
    const json_t *triggers = json_object_get(format, "triggers"), *excludes = json_object_get(format, "excludes");
    const char **marks = mt_alloc_array(json_array_size(triggers) + json_array_size(excludes) + 1, sizeof(*marks));
    size_t count = 0;
    const bool known = strings_of(triggers, marks, &count) && count > 0 && strings_of(excludes, marks, &count);
    const bool ok = known ? write_triggered(r, format, marks, json_array_size(triggers), count, out)
                          : lacks(r, "triggered_tags", "triggers that are strings");

    mt_free(marks);
    return ok;
}

static bool read_separated(reader *r, const json_t *format, mt_expr *out)
{
    mt_grammar *g = r->j->g;
    const char *separator = text_of(format, "separator");
    mt_expr any = 0, more;

    if (!separator)
        return lacks(r, "tags_with_separator", "separator");
    if (!read_tags(r, json_object_get(format, "tags"), "", &any))
        return false;
    more = mt_grammar_repeat(g, mt_grammar_seq(g, mt_grammar_text(g, separator), any), 0, MT_GRAMMAR_UNLIMITED);
    *out = flag(format, "stop_after_first") ? any : mt_grammar_seq(g, any, more);
    if (!flag(format, "at_least_one"))
        *out = mt_grammar_maybe(g, *out);
    return true;
}

/* "sequence" and "or". */
static bool read_elements(reader *r, const json_t *format, bool any, mt_expr *out)
{
    const json_t *list = json_object_get(format, "elements");
    mt_expr *parts = mt_alloc_array(json_array_size(list) + 1, sizeof(*parts));
    bool ok = json_array_size(list) > 0 || lacks(r, any ? "or" : "sequence", "elements");

    for (size_t i = 0; ok && i < json_array_size(list); i++)
        ok = read_format(r, json_array_get(list, i), &parts[i]);
    *out = ok ? (any ? mt_grammar_any : mt_grammar_list)(r->j->g, parts, json_array_size(list)) : 0;
    mt_free(parts);
    return ok;
}

static bool read_repeated(reader *r, const json_t *format, uint32_t least, uint32_t most, mt_expr *out)
{
    const json_t *content = json_object_get(format, "content");
    mt_expr one = 0;

    if (!read_format(r, content, &one))
        return false;
    *out = mt_grammar_repeat(r->j->g, one, least, most);
    return true;
}

static bool read_schema(reader *r, const json_t *schema, mt_expr *out)
{
    if (!json_is_object(schema) && !json_is_boolean(schema))
        return lacks(r, "json_schema", "schema");
    return mt_schema_expr(r->j, schema, schema, false, false, out, r->err);
}

static bool read_text(reader *r, const char *type, const json_t *text, mt_expr *out)
{
    const char *s = json_string_value(text);
    const size_t len = json_string_length(text);

    if (!s)
        return lacks(r, type, "text");
    if (strcmp(type, "regex") == 0)
        return mt_regex_text_expr(r->j->g, s, len, out, r->err);
    if (strcmp(type, "grammar") == 0)
        return mt_grammar_text_expr(r->j->g, s, len, out, r->err);
    *out = mt_grammar_literal(r->j->g, s, len);
    return true;
}

static bool read_type(reader *r, const char *type, const json_t *format, mt_expr *out)
{
    if (strcmp(type, "const_string") == 0)
        return read_text(r, type, json_object_get(format, "value"), out);
    if (strcmp(type, "regex") == 0)
        return read_text(r, type, json_object_get(format, "pattern"), out);
    if (strcmp(type, "grammar") == 0)
        return read_text(r, type, json_object_get(format, "grammar"), out);
    if (strcmp(type, "json_schema") == 0)
        return read_schema(r, json_object_get(format, "json_schema"), out);
    if (strcmp(type, "tag") == 0)
        return read_tag(r, format, 0, out);
    if (strcmp(type, "triggered_tags") == 0)
        return read_triggered(r, format, out);
    if (strcmp(type, "tags_with_separator") == 0)
        return read_separated(r, format, out);
    if (strcmp(type, "sequence") == 0 || strcmp(type, "or") == 0)
        return read_elements(r, format, *type == 'o', out);
    if (strcmp(type, "optional") == 0 || strcmp(type, "star") == 0 || strcmp(type, "plus") == 0)
        return read_repeated(r, format, *type == 'p', *type == 'o' ? 1 : MT_GRAMMAR_UNLIMITED, out);
    if (strcmp(type, "any_text") == 0) {
        *out = mt_grammar_anything(r->j->g);
        return true;
    }
    return mt_fail(r->err, MT_E_INVALID,
                   "the structural tag has a format \"%.60s\", which is not supported: send another", type);
}

static bool read_format(reader *r, const json_t *format, mt_expr *out)
{
    const char *type = text_of(format, "type");
    bool ok;

    if (!type)
        return mt_fail(r->err, MT_E_INVALID, "the structural tag has a format without a type: send one");
    if (++r->depth > MT_LIMIT_GRAMMAR_NESTING)
        return mt_fail(r->err, MT_E_INVALID, "the structural tag has too many formats within one another");
    if (is_over(r)) { /* formats within tags that several triggers begin are read for each of them */
        r->depth--;
        *out = mt_grammar_never(r->j->g);
        return true;
    }
    ok = read_type(r, type, format, out);
    r->depth--;
    return ok;
}

/* The older shape as the newer: structures as tags. */
static json_t *tags_of(const json_t *structures)
{
    json_t *tags = json_array();

    for (size_t i = 0; i < json_array_size(structures); i++) {
        const json_t *one = json_array_get(structures, i);

        json_array_append_new(tags, json_pack("{s:O?, s:{s:s, s:O?}, s:O?}", "begin", json_object_get(one, "begin"),
                                              "content", "type", "json_schema", "json_schema",
                                              json_object_get(one, "schema"), "end", json_object_get(one, "end")));
    }
    return tags;
}

bool mt_tags_expr(mt_json *j, const json_t *value, mt_expr *out, mt_error *err)
{
    reader r = {.j = j, .err = err};
    const json_t *format = json_object_get(value, "format");
    json_t *older;
    bool ok;

    if (format)
        return read_format(&r, format, out);
    older = json_pack("{s:s, s:o, s:O?}", "type", "triggered_tags", "tags",
                      tags_of(json_object_get(value, "structures")), "triggers", json_object_get(value, "triggers"));
    ok = read_format(&r, older, out);
    json_decref(older);
    return ok;
}
