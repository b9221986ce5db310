/* See openai_tools.h. */
#include "api/openai_tools.h"

#include <string.h>

#include "api/chat_body.h"
#include "base/compiler.h"
#include "base/json_tree.h"
#include "constraint/schema.h"

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

/* The name in {"type":"function","function":{"name":..}}, {"type":"function","name":..} or the same with "custom";
   NULL: it is none of these. */
static const json_t *name_of(const json_t *tool)
{
    const char *type = mt_body_get(tool, "type") ? mt_body_text(tool, "type") : "function";
    const json_t *inner = json_object_get(tool, type), *name = json_object_get(inner ? inner : tool, "name");

    return json_is_string(name) && (strcmp(type, "function") == 0 || strcmp(type, "custom") == 0) ? name : NULL;
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

/* ---- custom tools ---- */

static bool bad_custom(mt_failure *why, const char *sentence)
{
    return mt_failure_set(why, 400, "invalid_value", "tools", "%s", sentence);
}

/* Whether a regular expression has a "|" outside of all groups. */
static bool is_choice(const char *regex)
{
    size_t depth = 0;
    bool class = false;

    for (; *regex; regex++) {
        if (*regex == '\\' && regex[1])
            regex++;
        else if (class || *regex == '[')
            class = *regex != ']';
        else if (*regex == '|' && depth == 0)
            return true;
        else if (*regex == '(')
            depth++;
        else if (*regex == ')' && depth > 0)
            depth--;
    }
    return false;
}

/* The pattern with anchors, so that a whole text has to match it. */
static json_t *whole(const char *regex)
{
    const size_t len = strlen(regex);
    const bool anchored = len > 1 && regex[0] == '^' && regex[len - 1] == '$' && regex[len - 2] != '\\';

    return anchored && !is_choice(regex) ? json_string(regex) : json_sprintf("^(?:%s)$", regex);
}

/* Sets what the input has to look like. */
static bool add_format(const json_t *format, json_t *function, json_t *input, mt_failure *why)
{
    const json_t *inner = json_object_get(format, "grammar"), *grammar = inner ? inner : format; /* of a chat; flat */
    const char *type = mt_body_text(format, "type"), *syntax = mt_body_text(grammar, "syntax");
    json_t *definition = json_object_get(grammar, "definition");

    if (!format || json_is_null(format) || strcmp(type, "text") == 0)
        return true;
    if (strcmp(type, "grammar") != 0 || !mt_json_word(definition))
        return bad_custom(why, "the format of a custom tool is neither text nor a grammar with a definition");
    if (strcmp(syntax, "lark") == 0)
        json_object_set_new(input, MT_SCHEMA_GRAMMAR,
                            json_pack("{s:s, s:O}", "syntax", "lark", "definition", definition));
    else if (strcmp(syntax, "regex") == 0)
        json_object_set_new(input, "pattern", whole(json_string_value(definition)));
    else
        return bad_custom(why, "the syntax of a custom tool's grammar is neither regex nor lark");
    json_object_set_new(function, "strict", json_true());
    return true;
}

/* The input of a custom tool is text. Models write objects, so it becomes the only member of one. */
bool mt_custom_add(mt_ask *ask, const json_t *tool, json_t *list, mt_failure *why)
{
    const json_t *name = json_object_get(tool, "name");
    json_t *schema, *input, *made;

    if (json_string_length(name) == 0)
        return bad_custom(why, "a custom tool has no string as its name");
    input = json_pack("{s:s}", "type", "string");
    schema = json_pack("{s:s, s:{s:o}, s:[s]}", "type", "object", "properties", "input", input, "required", "input");
    made = mt_body_tool(tool, schema);
    json_array_append_new(list, made);
    json_decref(schema);
    if (!add_format(json_object_get(tool, "format"), json_object_get(made, "function"), input, why))
        return false;
    if (!ask->extra)
        ask->extra = json_object();
    if (!json_object_get(ask->extra, "tools"))
        json_object_set_new(ask->extra, "tools", json_object());
    json_object_set_new(json_object_get(ask->extra, "tools"), json_string_value(name), json_pack("{s:b}", "custom", 1));
    return true;
}

static bool is_custom(const json_t *tool)
{
    return strcmp(mt_body_text(tool, "type"), "custom") == 0 && json_is_object(json_object_get(tool, "custom"));
}

bool mt_custom_read(mt_ask *ask, mt_failure *why)
{
    const json_t *tools = json_object_get(ask->body, "tools");
    json_t *list, *body;
    size_t count = 0;
    bool ok = true;

    for (size_t i = 0; i < json_array_size(tools); i++)
        count += is_custom(json_array_get(tools, i));
    if (count == 0)
        return true;
    list = json_array();
    body = json_copy((json_t *)(uintptr_t)ask->body); /* not const for jansson; its members are shared */
    json_object_set_new(body, "tools", list);
    ask->body = mt_ask_own(ask, body);
    for (size_t i = 0; ok && i < json_array_size(tools); i++) {
        json_t *tool = json_array_get(tools, i);

        if (is_custom(tool))
            ok = mt_custom_add(ask, json_object_get(tool, "custom"), list, why);
        else
            json_array_append(list, tool);
    }
    return ok;
}

json_t *mt_custom_input(const mt_answer *a, const mt_speech_part *part)
{
    const json_t *tool =
        part->kind == MT_SPEECH_CALL ? json_object_get(json_object_get(a->extra, "tools"), part->name) : NULL;
    json_t *arguments, *input;

    if (!json_object_get(tool, "custom"))
        return NULL;
    arguments = mt_json_tree_try(part->text.data, part->text.len);
    input = json_incref(json_object_get(arguments, "input"));
    json_decref(arguments);
    if (json_is_string(input))
        return input;
    json_decref(input);
    return json_stringn_nocheck(part->text.len ? part->text.data : "", part->text.len);
}
