/* The grammar of tool calls, as the layout of their format says. */
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "chat/limits.h"
#include "chat/shape_inside.h"

/* The layout to use; NULL: calls of this format cannot be generated. */
static const mt_layout *find(const mt_shape_writer *w)
{
    const mt_layout *l = mt_shape_format(w->shape)->write;
    uint32_t id;

    while (l && l->needs && !mt_shape_special(w, l->needs, strlen(l->needs), &id))
        l++;
    return l;
}

const char *mt_shape_head(const mt_shape *s)
{
    const mt_layout *l = mt_shape_harmony(s) ? mt_format_harmony.write : mt_shape_format(s)->write;

    return l && l->content ? l->content : "";
}

const char *mt_shape_trigger(mt_shape_writer *w)
{
    const mt_layout *l = find(w);

    return l ? l->trigger : "";
}

/* A tool's declaration, with or without the wrapper. */
static const json_t *function_of(const json_t *tool)
{
    const json_t *function = json_object_get(tool, "function");

    return function ? function : tool;
}

const char *mt_shape_name(const json_t *tool)
{
    return json_string_value(json_object_get(function_of(tool), "name"));
}

/* The number of a call and what follows it; NULL: there is none. */
static mt_expr number(mt_shape_writer *w, const char *end)
{
    mt_byteset digits = {0};

    if (!end)
        return mt_grammar_empty(w->g);
    mt_byteset_add(&digits, '0', '9');
    return mt_grammar_seq(w->g, mt_grammar_repeat(w->g, mt_grammar_bytes(w->g, &digits), 1, 2),
                          mt_shape_markup(w, end));
}

static bool write_arguments(mt_shape_writer *w, const mt_layout *l, const json_t *schema, bool strict, mt_expr *out)
{
    if (json_is_null(schema))
        schema = NULL;
    if (l->tags)
        return mt_shape_tagged(w, schema, strict, l->tags, out);
    return (l->keywords ? mt_shape_keywords : mt_shape_object)(w, schema, strict, out);
}

static bool write_call(mt_shape_writer *w, const mt_layout *l, const json_t *function, mt_expr *out)
{
    const char *name = json_string_value(json_object_get(function, "name"));
    const bool strict = json_is_true(json_object_get(function, "strict"));
    mt_expr arguments;

    if (!write_arguments(w, l, json_object_get(function, "parameters"), strict, &arguments))
        return mt_fail_within(w->err, "tool \"%.100s\"", name) || mt_fail_about(w->err, "tools");
    *out = MT_SHAPE_LIST(w, mt_shape_markup(w, l->before), number(w, l->number_first), mt_grammar_text(w->g, name),
                         mt_shape_markup(w, l->behind), number(w, l->number_last), arguments,
                         mt_shape_markup(w, l->after));
    return true;
}

/* Checks that the names of tool_choice are tools. False: *err. */
static bool check_names(const mt_shape *s, mt_error *err)
{
    json_t *missing = json_copy((json_t *)(uintptr_t)s->names);
    void *first;

    for (size_t i = 0; missing && i < json_array_size(s->tools); i++)
        if (mt_shape_name(json_array_get(s->tools, i)))
            json_object_del(missing, mt_shape_name(json_array_get(s->tools, i)));
    first = json_object_iter(missing);
    if (first)
        mt_fail(err, MT_E_INVALID, "\"tool_choice\" names the tool \"%.100s\", which \"tools\" does not have",
                json_object_iter_key(first));
    json_decref(missing);
    return !first || mt_fail_about(err, "tool_choice");
}

/* A call of any of the tools that may be called. */
static bool write_any(mt_shape_writer *w, const mt_layout *l, mt_expr *out)
{
    const mt_shape *s = w->shape;
    mt_expr *parts = mt_alloc_array(json_array_size(s->tools) + 1, sizeof(*parts));
    size_t count = 0;
    bool ok = check_names(s, w->err);

    for (size_t i = 0; ok && i < json_array_size(s->tools); i++) {
        const json_t *function = function_of(json_array_get(s->tools, i));
        const char *name = json_string_value(json_object_get(function, "name"));

        if (name && (!s->names || json_object_get(s->names, name)))
            ok = write_call(w, l, function, &parts[count++]);
    }
    *out = mt_grammar_any(w->g, parts, count);
    mt_free(parts);
    return ok;
}

bool mt_shape_write_calls(mt_shape_writer *w, mt_shape_call_exprs *out)
{
    const mt_layout *l = find(w);
    mt_rule rule;
    mt_expr any, more;

    if (!l)
        return mt_fail(w->err, MT_E_INVALID,
                       "\"tool_choice\" cannot be enforced for this model, whose format of calls is \"%s\": send auto "
                       "or none",
                       w->shape->formats.tools) ||
               mt_fail_about(w->err, "tool_choice");
    w->arguments = (mt_json){.g = w->g, .notation = l->notation, .quotes = mt_shape_markup(w, "<|\"|>")};
    rule = mt_grammar_rule(w->g); /* a rule, so that tools are written once, however many calls there are */
    if (!write_any(w, l, &any))
        return false;
    mt_grammar_define(w->g, rule, any);
    any = mt_grammar_call(w->g, rule);
    *out = (mt_shape_call_exprs){
        .trigger = l->trigger, .after = any, .each = l->each, .last = l->last, .between = l->between};
    if (l->each)
        return true;
    more = w->shape->one || !l->between
               ? mt_grammar_empty(w->g)
               : mt_grammar_repeat(w->g, mt_grammar_seq(w->g, mt_shape_markup(w, l->between), any), 0,
                                   MT_LIMIT_SHAPE_CALLS - 1);
    out->after = MT_SHAPE_LIST(w, mt_shape_markup(w, l->open), any, more, mt_shape_markup(w, l->close));
    return true;
}
