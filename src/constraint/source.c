/* Translates what a request asks for to a grammar expression (source.h). */
#include "constraint/source.h"

#include "base/alloc.h"
#include "constraint/limits.h"
#include "constraint/schema.h"
#include "constraint/source_tags.h"
#include "constraint/source_text.h"

static bool choices(const json_t *list, mt_grammar *g, mt_expr *out, mt_error *err)
{
    const size_t count = json_array_size(list);
    mt_expr *parts;

    if (count == 0 || count > MT_LIMIT_CHOICE_LIST)
        return mt_fail(err, MT_E_INVALID, "there are %zu choices; give a list of 1 to %u", count, MT_LIMIT_CHOICE_LIST);
    for (size_t i = 0; i < count; i++)
        if (!json_is_string(json_array_get(list, i)))
            return mt_fail(err, MT_E_INVALID, "a choice is no string; give a list of strings");
    parts = mt_alloc_array(count, sizeof(*parts));
    for (size_t i = 0; i < count; i++)
        parts[i] = mt_grammar_literal(g, json_string_value(json_array_get(list, i)),
                                      json_string_length(json_array_get(list, i)));
    *out = mt_grammar_any(g, parts, count);
    mt_free(parts);
    return true;
}

bool mt_source_expr(const mt_source *source, mt_json *j, mt_expr *out, mt_error *err)
{
    switch (source->kind) {
    case MT_SOURCE_NONE: break;
    case MT_SOURCE_JSON: *out = mt_json_object(j); return true;
    case MT_SOURCE_SCHEMA: return mt_schema_expr(j, source->value, source->value, false, source->strict, out, err);
    case MT_SOURCE_REGEX:
        return mt_regex_text_expr(j->g, json_string_value(source->value), json_string_length(source->value), out, err);
    case MT_SOURCE_CHOICE: return choices(source->value, j->g, out, err);
    case MT_SOURCE_GBNF:
        return mt_grammar_text_expr(j->g, json_string_value(source->value), json_string_length(source->value), out,
                                    err);
    case MT_SOURCE_TAGS: return mt_tags_expr(j, source->value, out, err);
    }
    *out = mt_grammar_anything(j->g);
    return true;
}
