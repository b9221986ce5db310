/* The grammar of a call's arguments, from the tool's JSON schema: see shape_inside.h. */
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "chat/shape_inside.h"
#include "sample/constraint/schema.h"

/* A value as JSON. root: what references in the schema refer to; object: only an object. Where the schema cannot be
   followed at all, any value will do, unless strict. */
static bool json_value(mt_shape_writer *w, const json_t *schema, const json_t *root, bool object, bool strict,
                       mt_expr *out)
{
    mt_error ignored = {0};

    if (mt_schema_expr(&w->arguments, schema, root, object, strict, out, strict ? w->err : &ignored))
        return true;
    *out = object ? mt_json_object(&w->arguments) : mt_json_value(&w->arguments);
    return !strict;
}

/* A tool without a schema has no arguments. */
bool mt_shape_object(mt_shape_writer *w, const json_t *schema, bool strict, mt_expr *out)
{
    if (schema)
        return json_value(w, schema, schema, true, strict, out);
    *out = mt_grammar_text(w->g, "{}");
    return true;
}

/* Text that has to match a pattern or a format. Strings of Gemma's notation are written as they are, without `<`, with
   which a tag would begin; here they have no quotes either. */
static bool pattern_value(mt_shape_writer *w, const json_t *schema, const json_t *root, mt_expr *out)
{
    mt_json raw = {.g = w->g, .notation = MT_NOTATION_GEMMA, .quotes = mt_grammar_empty(w->g)};

    return mt_schema_expr(&raw, schema, root, false, true, out, w->err);
}

/* A value without quotes, up to its closing tag: one of the schema's strings, or any text where it lists none. */
static mt_expr text_value(mt_shape_writer *w, const json_t *schema, const char *close)
{
    const json_t *list = json_object_get(schema, "enum"), *constant = json_object_get(schema, "const");
    const size_t listed = constant ? 1 : json_array_size(list);
    mt_expr *parts = mt_alloc_array(listed + 1, sizeof(*parts)), any;
    size_t count = 0;

    for (size_t i = 0; i < listed; i++) {
        const json_t *one = constant ? constant : json_array_get(list, i);

        if (json_is_string(one))
            parts[count++] = mt_grammar_literal(w->g, json_string_value(one), json_string_length(one));
    }
    any = mt_grammar_any(w->g, parts, count);
    mt_free(parts);
    return count ? mt_grammar_seq(w->g, any, mt_grammar_text(w->g, close)) : mt_grammar_until(w->g, &close, 1);
}

/* A value and its closing tag. Strings stand as they are; what cannot be a string is JSON, since the parser reads it as
   such. The tag behind a string is spelled out and never a special token, so that the end is found in any text. */
static bool tagged_value(mt_shape_writer *w, const json_t *schema, const json_t *root, bool strict,
                         const mt_layout_tags *t, mt_expr *out)
{
    const char *type;
    mt_expr inner;

    schema = mt_parse_resolve(schema, root);
    type = json_string_value(json_object_get(schema, "type"));
    if (mt_parse_no_string(schema, root)) {
        if (!json_value(w, schema, root, false, strict, &inner))
            return false;
        *out = MT_SHAPE_LIST(w, mt_shape_markup(w, t->other), inner, mt_shape_markup(w, t->close));
    } else if (strict && type && strcmp(type, "string") == 0 &&
               (json_object_get(schema, "pattern") || json_object_get(schema, "format"))) {
        if (!pattern_value(w, schema, root, &inner))
            return false;
        *out = MT_SHAPE_LIST(w, mt_shape_markup(w, t->string), inner, mt_grammar_text(w->g, t->close));
    } else
        *out = mt_grammar_seq(w->g, mt_shape_markup(w, t->string), text_value(w, schema, t->close));
    return true;
}

static bool is_required(const json_t *schema, const char *key)
{
    const json_t *list = json_object_get(schema, "required");

    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_is_string(json_array_get(list, i)) && strcmp(json_string_value(json_array_get(list, i)), key) == 0)
            return true;
    return false;
}

/* Where arguments are written one by one, keywords about all of them together cannot be enforced. strict: that is an
   error. */
static bool check_top(mt_shape_writer *w, const json_t *schema, bool strict)
{
    static const char *const keywords[] = {"$ref",  "anyOf",         "oneOf",         "allOf",
                                           "const", "minProperties", "maxProperties", "patternProperties"};

    for (size_t i = 0; strict && i < MT_COUNT(keywords); i++)
        if (json_object_get(schema, keywords[i]))
            return mt_fail(w->err, MT_E_INVALID,
                           "\"%s\" at the top of the schema cannot be enforced in this model's format of calls: leave "
                           "it out",
                           keywords[i]);
    return true;
}

bool mt_shape_tagged(mt_shape_writer *w, const json_t *schema, bool strict, const mt_layout_tags *t, mt_expr *out)
{
    json_t *properties = json_object_get(schema, "properties"), *own;
    mt_expr *parts = mt_alloc_array(json_object_size(properties) + 1, sizeof(*parts)), one;
    const char *key;
    size_t count = 0;
    bool ok = check_top(w, schema, strict);

    json_object_foreach(properties, key, own) {
        ok = ok && tagged_value(w, own, schema, strict, t, &one);
        if (!ok)
            break;
        one = MT_SHAPE_LIST(w, mt_shape_markup(w, t->open), mt_grammar_text(w->g, key), mt_shape_markup(w, t->opened),
                            one);
        parts[count++] = is_required(schema, key) ? one : mt_grammar_maybe(w->g, one);
    }
    *out = mt_grammar_list(w->g, parts, count);
    mt_free(parts);
    return ok;
}

/* Whether a name can stand before "=" in Python, as the parser accepts it. */
static bool is_python_name(const char *name)
{
    size_t len = 0;

    if (!mt_parse_letter(name[0]))
        return false;
    while (mt_parse_name_byte(name[len]) && name[len] != '.' && name[len] != '-')
        len++;
    return name[len] == '\0';
}

/* Adds an argument before those in tail. tail[0]: what may follow where no argument was written yet; tail[1]: where one
   was. Called from the last argument to the first. */
static void prepend(mt_shape_writer *w, mt_expr tail[2], mt_expr one, bool needed)
{
    mt_grammar *g = w->g;
    const mt_rule behind = mt_grammar_rule(g); /* a rule, since it is used twice for each argument before */
    const mt_expr first = mt_grammar_seq(g, one, tail[1]);
    const mt_expr later = mt_grammar_list(g, (mt_expr[]){mt_grammar_text(g, ", "), one, tail[1]}, 3);

    mt_grammar_define(g, behind, needed ? later : mt_grammar_or(g, later, tail[1]));
    tail[0] = needed ? first : mt_grammar_or(g, first, tail[0]);
    tail[1] = mt_grammar_call(g, behind);
}

/* Adds key=value before the arguments in tail, as `prepend` does. An optional key that is no Python name is left out; a
   required one is an error. */
static bool add_keyword(mt_shape_writer *w, const char *key, const json_t *schema, const json_t *root, bool strict,
                        mt_expr tail[2])
{
    const bool needed = is_required(root, key);
    mt_rule rule;
    mt_expr one;

    if (!is_python_name(key))
        return !needed ||
               mt_fail(w->err, MT_E_INVALID,
                       "\"%.100s\" is no name that an argument can have in this model's format of calls: use letters",
                       key);
    if (!json_value(w, schema, root, false, strict, &one))
        return false;
    rule = mt_grammar_rule(w->g); /* a rule, since it is used twice */
    mt_grammar_define(w->g, rule, MT_SHAPE_LIST(w, mt_grammar_text(w->g, key), mt_grammar_text(w->g, "="), one));
    prepend(w, tail, mt_grammar_call(w->g, rule), needed);
    return true;
}

bool mt_shape_keywords(mt_shape_writer *w, const json_t *schema, bool strict, mt_expr *out)
{
    json_t *properties = json_object_get(schema, "properties"), *own;
    const size_t count = json_object_size(properties);
    const char **keys = mt_alloc_array(count + 1, sizeof(*keys)), *key;
    mt_expr tail[2] = {mt_grammar_empty(w->g), mt_grammar_empty(w->g)};
    bool ok = check_top(w, schema, strict);
    size_t i = 0;

    json_object_foreach(properties, key, own)
        keys[i++] = key;
    for (i = count; ok && i-- > 0;)
        ok = add_keyword(w, keys[i], json_object_get(properties, keys[i]), schema, strict, tail);
    mt_free(keys);
    *out = tail[0];
    return ok;
}
