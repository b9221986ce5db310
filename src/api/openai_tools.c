/* See openai_tools.h. */
#include "api/openai_tools.h"

#include <string.h>

#include "api/chat_body.h"
#include "base/compiler.h"
#include "base/json_tree.h"

bool mt_tool_choice_word(mt_ask *ask, const char *word)
{
    static const char *const words[] = {
        [MT_SHAPE_CALLS_AUTO] = "auto", [MT_SHAPE_CALLS_NONE] = "none", [MT_SHAPE_CALLS_REQUIRED] = "required"};

    for (size_t i = 0; word && i < MT_COUNT(words); i++)
        if (strcmp(word, words[i]) == 0) {
            ask->calls = (mt_shape_calls)i;
            return true;
        }
    return false;
}

/* The name in {"type":"function","function":{"name":..}} or {"type":"function","name":..}; NULL: it is neither. */
static const json_t *name_of(const json_t *tool)
{
    const json_t *type = mt_body_get(tool, "type"), *function = json_object_get(tool, "function");
    const json_t *name = json_object_get(function ? function : tool, "name");

    return json_is_string(name) && (!type || strcmp(mt_body_text(tool, "type"), "function") == 0) ? name : NULL;
}

bool mt_tool_choice_add(mt_ask *ask, mt_chat_text name)
{
    if (!ask->call_names)
        ask->call_names = json_object();
    return name.data && json_object_set_new(ask->call_names, name.data, json_true()) == 0;
}

bool mt_tool_choice_only(mt_ask *ask, mt_chat_text name)
{
    ask->calls = MT_SHAPE_CALLS_REQUIRED;
    ask->parallel_calls = false;
    return mt_tool_choice_add(ask, name);
}

/* Tools that are not allowed stay in the prompt, so that it is the same whatever is allowed, and is found in the
   cache. */
bool mt_tool_choice_mode(mt_ask *ask, const char *field, const char *mode, bool ok, mt_failure *why)
{
    const bool none = json_object_size(ask->call_names) == 0;

    ok = mt_tool_choice_word(ask, mode) && ok && ask->calls != MT_SHAPE_CALLS_NONE;
    if (ok && none && ask->calls == MT_SHAPE_CALLS_AUTO)
        ask->calls = MT_SHAPE_CALLS_NONE;
    else if (none)
        ok = false;
    return ok || mt_failure_set(why, 400, "invalid_value", field,
                                "the allowed tools of \"%s\" are not a mode (auto or required) and a list of tools: "
                                "send both",
                                field);
}

static bool read_allowed(mt_ask *ask, const char *name, const json_t *allowed, mt_failure *why)
{
    const json_t *tools = json_object_get(allowed, "tools");
    bool ok = json_is_array(tools);

    for (size_t i = 0; ok && i < json_array_size(tools); i++)
        ok = mt_tool_choice_add(ask, mt_chat_text_of(name_of(json_array_get(tools, i))));
    return mt_tool_choice_mode(ask, name, mt_json_word(json_object_get(allowed, "mode")), ok, why);
}

bool mt_read_tool_choice(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const char *word = mt_json_word(value);

    if (mt_tool_choice_word(ask, word && strcmp(word, "any") == 0 ? "required" : word)) /* "any" is Mistral's word */
        return true;
    if (strcmp(mt_body_text(value, "type"), "allowed_tools") == 0)
        return read_allowed(ask, name, json_object_get(value, "allowed_tools"), why);
    return mt_tool_choice_only(ask, mt_chat_text_of(name_of(value))) ||
           mt_failure_value(
               why, name,
               "is none of auto, none, required, an object that names a function and one with allowed tools: send one");
}

static bool bad_functions(const char *field, const char *sentence, mt_failure *why)
{
    return mt_failure_value(why, field, "%s", sentence);
}

static bool add_tools(json_t *tools, const json_t *functions, mt_failure *why)
{
    if (!json_is_array(functions))
        return bad_functions("functions", "is not a list of functions: send one", why);
    for (size_t i = 0; i < json_array_size(functions); i++) {
        json_t *function = json_array_get(functions, i);

        if (json_string_length(json_object_get(function, "name")) == 0)
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

/* Reads "function_call". */
static bool read_choice(mt_ask *ask, const json_t *functions, const json_t *call, mt_failure *why)
{
    const json_t *name = json_object_get(call, "name");
    const char *word = mt_json_word(call);

    if (word && strcmp(word, "required") != 0 && mt_tool_choice_word(ask, word))
        return true;
    if (!json_is_string(name))
        return bad_functions("function_call", "is none of auto, none and an object with a name: send one", why);
    if (!is_function(functions, mt_json_word(name)))
        return bad_functions("function_call", "names a function that \"functions\" does not have: send one of these",
                             why);
    return mt_tool_choice_only(ask, mt_chat_text_of(name)) || mt_failure_memory(why, "function_call");
}

bool mt_functions_read(mt_ask *ask, const json_t **tools, mt_failure *why)
{
    const json_t *functions = mt_body_get(ask->body, "functions"), *call = mt_body_get(ask->body, "function_call");
    json_t *made;

    *tools = NULL;
    if (!functions && !call)
        return true;
    if (!functions || mt_body_get(ask->body, "tools") || mt_body_get(ask->body, "tool_choice"))
        return bad_functions(functions ? "functions" : "function_call",
                             functions ? "and \"tools\" are both given: send one of them"
                                       : "is given without \"functions\": send some, or leave it out",
                             why);
    ask->form.old_calls = true;
    made = json_array();
    *tools = mt_ask_own(ask, made);
    return add_tools(made, functions, why) && (!call || read_choice(ask, functions, call, why));
}
