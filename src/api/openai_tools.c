#include "api/openai_tools.h"

#include <string.h>

#include "api/chat_body.h"
#include "base/compiler.h"

static bool read_word(const char *word, mt_shape_calls *calls)
{
    static const char *const words[] = {
        [MT_SHAPE_CALLS_AUTO] = "auto", [MT_SHAPE_CALLS_NONE] = "none", [MT_SHAPE_CALLS_REQUIRED] = "required"};

    for (size_t i = 0; word && i < MT_COUNT(words); i++)
        if (strcmp(word, words[i]) == 0) {
            *calls = (mt_shape_calls)i;
            return true;
        }
    return false;
}

/* The name in {"type":"function","function":{"name":..}}, which is sent flat as well; NULL: it is none. */
static const json_t *name_of(const json_t *tool)
{
    const json_t *type = mt_body_get(tool, "type"), *function = json_object_get(tool, "function");
    const json_t *name = json_object_get(function ? function : tool, "name");

    return json_is_string(name) && (!type || strcmp(mt_body_text(tool, "type"), "function") == 0) ? name : NULL;
}

static bool add_name(mt_ask *ask, const json_t *name)
{
    if (!ask->call_names)
        ask->call_names = json_object();
    return name && json_object_set_new(ask->call_names, json_string_value(name), json_true()) == 0;
}

/* All tools stay in the prompt, so that it is the same whatever is allowed, and found in the cache. */
static bool read_allowed(mt_ask *ask, const char *name, const json_t *allowed, mt_failure *why)
{
    const json_t *tools = json_object_get(allowed, "tools");
    bool ok = read_word(json_string_value(json_object_get(allowed, "mode")), &ask->calls) &&
              ask->calls != MT_SHAPE_CALLS_NONE && json_is_array(tools);

    for (size_t i = 0; ok && i < json_array_size(tools); i++)
        ok = add_name(ask, name_of(json_array_get(tools, i)));
    if (ok && json_array_size(tools) == 0 && ask->calls == MT_SHAPE_CALLS_AUTO)
        ask->calls = MT_SHAPE_CALLS_NONE;
    else if (ok && json_array_size(tools) == 0)
        ok = false;
    return ok || mt_failure_set(why, 400, "invalid_value", name,
                                "the allowed tools of \"%s\" are not a mode (auto or required) and a list of tools: "
                                "send both",
                                name);
}

bool mt_read_tool_choice(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const json_t *only = name_of(value);

    if (read_word(json_string_value(value), &ask->calls))
        return true;
    if (strcmp(mt_body_text(value, "type"), "allowed_tools") == 0)
        return read_allowed(ask, name, json_object_get(value, "allowed_tools"), why);
    ask->calls = MT_SHAPE_CALLS_REQUIRED;
    ask->parallel_calls = false;
    return (only && add_name(ask, only)) ||
           mt_failure_set(why, 400, "invalid_value", name,
                          "\"%s\" is none of auto, none, required, an object that names a function and one with "
                          "allowed tools: send one",
                          name);
}

static bool bad_functions(const char *field, const char *sentence, mt_failure *why)
{
    return mt_failure_set(why, 400, "invalid_value", field, "\"%s\" %s", field, sentence);
}

static bool add_tools(json_t *body, const json_t *functions, mt_failure *why)
{
    json_t *tools = json_array();

    json_object_set_new(body, "tools", tools);
    if (!json_is_array(functions))
        return bad_functions("functions", "is not a list of functions: send one", why);
    for (size_t i = 0; i < json_array_size(functions); i++) {
        json_t *function = json_array_get(functions, i);

        if (!json_is_string(json_object_get(function, "name")))
            return bad_functions("functions", "has an entry without a name: send objects with a name", why);
        json_array_append_new(tools, json_pack("{s:s, s:O}", "type", "function", "function", function));
    }
    return true;
}

static bool is_function(const json_t *functions, const char *name)
{
    for (size_t i = 0; i < json_array_size(functions); i++)
        if (strcmp(mt_body_text(json_array_get(functions, i), "name"), name) == 0)
            return true;
    return false;
}

static bool add_choice(json_t *body, const json_t *functions, const json_t *call, mt_failure *why)
{
    const char *word = json_string_value(call);

    if (word && (strcmp(word, "auto") == 0 || strcmp(word, "none") == 0))
        return json_object_set_new(body, "tool_choice", mt_body_share(call)) == 0;
    if (!json_is_string(json_object_get(call, "name")))
        return bad_functions("function_call", "is none of auto, none and an object with a name: send one", why);
    if (!is_function(functions, mt_body_text(call, "name")))
        return bad_functions("function_call", "names a function that \"functions\" does not have: send one of these",
                             why);
    return json_object_set_new(body, "tool_choice", mt_body_named(json_object_get(call, "name"))) == 0;
}

bool mt_functions_read(mt_ask *ask, mt_failure *why)
{
    const json_t *functions = mt_body_get(ask->body, "functions"), *call = mt_body_get(ask->body, "function_call");
    json_t *body;

    if (!functions && !call)
        return true;
    if (!functions || mt_body_get(ask->body, "tools") || mt_body_get(ask->body, "tool_choice"))
        return bad_functions(functions ? "functions" : "function_call",
                             functions ? "and \"tools\" are both given: send one of them"
                                       : "is given without \"functions\": send some, or leave it out",
                             why);
    body = json_copy((json_t *)(uintptr_t)ask->body); /* shares what is in it */
    json_decref(ask->owned);
    ask->owned = body;
    ask->body = body;
    ask->old_calls = true;
    json_object_set_new(body, "parallel_tool_calls", json_false());
    return add_tools(body, functions, why) && (!call || add_choice(body, functions, call, why));
}
