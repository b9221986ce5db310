#include <string.h>

#include "base/alloc.h"
#include "chat/shape_inside.h"
#include "sample/constraint/schema.h"

/* Without a schema there are no arguments. */
bool mt_shape_arguments(mt_shape_writer *w, const json_t *schema, bool strict, mt_expr *out)
{
    mt_error ignored = {0};

    if (!schema) {
        *out = mt_grammar_text(w->g, "{}");
        return true;
    }
    if (mt_schema_expr(&w->j, schema, schema, true, out, strict ? w->err : &ignored))
        return true;
    *out = mt_json_object(&w->j); /* what the schema says is then the model's affair */
    return !strict;
}

static bool is_type(const json_t *schema, const char *type)
{
    const char *own = json_string_value(json_object_get(schema, "type"));

    return own && strcmp(own, type) == 0;
}

/* Values that are written without quotes: those of a list of strings, or any text. */
static mt_expr text_value(mt_shape_writer *w, const json_t *schema, const char *close)
{
    const json_t *list = json_object_get(schema, "enum"), *constant = json_object_get(schema, "const");
    mt_expr *parts, any;
    size_t count = 0;

    if (!json_is_array(list) && !json_is_string(constant))
        return mt_grammar_until(w->g, close, strlen(close));
    parts = mt_alloc_array(json_array_size(list) + 1, sizeof(*parts));
    if (json_is_string(constant))
        parts[count++] = mt_grammar_text(w->g, json_string_value(constant));
    for (size_t i = 0; !json_is_string(constant) && i < json_array_size(list); i++)
        if (json_is_string(json_array_get(list, i)))
            parts[count++] = mt_grammar_text(w->g, json_string_value(json_array_get(list, i)));
    any = mt_grammar_any(w->g, parts, count);
    mt_free(parts);
    return mt_grammar_seq(w->g, any, mt_grammar_text(w->g, close));
}

/* A type that text cannot be taken for: numbers, booleans, lists, objects. */
static bool is_json(const json_t *schema)
{
    static const char *const types[] = {"integer", "number", "boolean", "array", "object", "null"};

    for (size_t i = 0; i < MT_COUNT(types); i++)
        if (is_type(schema, types[i]))
            return true;
    return false;
}

static bool value(mt_shape_writer *w, const json_t *schema, const json_t *root, bool strict, const mt_shape_tags *t,
                  mt_expr *out)
{
    mt_error ignored = {0};
    mt_expr json;

    if (!is_json(schema)) {
        *out = mt_grammar_seq(w->g, mt_shape_markup(w, t->string), text_value(w, schema, t->close));
        return true;
    }
    if (!mt_schema_expr(&w->j, schema, root, false, &json, strict ? w->err : &ignored)) {
        if (strict)
            return false;
        json = mt_json_value(&w->j);
    }
    *out = mt_grammar_list(w->g, (mt_expr[]){mt_shape_markup(w, t->other), json, mt_shape_markup(w, t->close)}, 3);
    return true;
}

static bool required(const json_t *schema, const char *key)
{
    const json_t *list = json_object_get(schema, "required");

    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_is_string(json_array_get(list, i)) && strcmp(json_string_value(json_array_get(list, i)), key) == 0)
            return true;
    return false;
}

bool mt_shape_tagged(mt_shape_writer *w, const json_t *schema, bool strict, const mt_shape_tags *t, mt_expr *out)
{
    json_t *properties = json_object_get(schema, "properties"), *own;
    mt_expr *parts = mt_alloc_array(json_object_size(properties) + 1, sizeof(*parts)), one;
    const char *key;
    size_t count = 0;
    bool ok = true;

    json_object_foreach(properties, key, own)
    {
        ok = ok && value(w, own, schema, strict, t, &one);
        if (!ok)
            break;
        one = mt_grammar_list(
            w->g,
            (mt_expr[]){mt_shape_markup(w, t->open), mt_grammar_text(w->g, key), mt_shape_markup(w, t->opened), one},
            4);
        parts[count++] = required(schema, key) ? one : mt_grammar_maybe(w->g, one);
    }
    *out = mt_grammar_list(w->g, parts, count);
    mt_free(parts);
    return ok;
}
