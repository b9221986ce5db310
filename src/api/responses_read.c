/* Reads the body of /v1/responses; responses_items.c reads the items of its input. Fields that the answer repeats have
   their types checked by responses_echo.c first. */
#include <string.h>

#include "api/chat_body.h"
#include "api/fields.h"
#include "api/json_body.h"
#include "api/limits.h"
#include "api/openai_tools.h"
#include "api/responses.h"
#include "base/buf.h"
#include "base/json_tree.h"

/* The body while it is read. */
typedef struct reader {
    mt_ask *ask;
    const json_t *body;
    json_t *extra;    /* ask->extra */
    json_t *tools;    /* in the form that chats have */
    const char *last; /* what the user says behind the input, where that is to be compacted; NULL: nothing */
    mt_failure *why;
} reader;

static bool bad_tool(reader *r, const char *sentence)
{
    return mt_failure_set(r->why, 400, "invalid_value", "tools", "%s", sentence);
}

/* Remembers in extra how the client knows a tool. Owns how. */
static void remember(reader *r, const char *known, json_t *how)
{
    json_object_set_new(json_object_get(r->extra, "tools"), known, how);
}

static bool add_function(reader *r, const json_t *tool, const json_t *space)
{
    const json_t *name = json_object_get(tool, "name"), *schema = mt_body_get(tool, "parameters");
    json_t *made;

    if (json_string_length(name) == 0)
        return bad_tool(r, "a function has no string as its name");
    if (schema && !json_is_object(schema))
        return bad_tool(r, "the parameters of a function are not an object");
    made = mt_body_tool(tool, schema);
    if (space) {
        const mt_chat_text known = mt_responses_name(r->ask, space, name);

        json_object_set_new(json_object_get(made, "function"), "name", json_stringn_nocheck(known.data, known.len));
        remember(r, known.data, json_pack("{s:O, s:O}", "name", name, "namespace", space));
    }
    json_array_append_new(r->tools, made);
    return true;
}

/* space: the namespace that the tool is in, or NULL. */
static bool add_tool(reader *r, const json_t *tool, const json_t *space)
{
    const char *type = mt_body_text(tool, "type");
    const json_t *inner = json_object_get(tool, "tools");

    if (strcmp(type, "function") == 0)
        return add_function(r, tool, space);
    if (strcmp(type, "custom") == 0)
        return mt_custom_add(r->ask, tool, r->tools, r->why);
    if (strcmp(type, "namespace") == 0 && !space && json_is_string(json_object_get(tool, "name"))) {
        for (size_t i = 0; i < json_array_size(inner); i++)
            if (!add_tool(r, json_array_get(inner, i), json_object_get(tool, "name")))
                return false;
        return true;
    }
    if (!*type)
        return bad_tool(r, "a tool has no type: send function or custom");
    mt_ask_ignore(r->ask, type);
    return true;
}

/* Notes members of tools that nothing reads. Of tools that OpenAI's servers run the type is noted. */
static void note_tools(reader *r, const json_t *tools)
{
    static const char *const members[] = {"description", "format", "name", "parameters",
                                          "strict",      "tools",  "type", NULL};

    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);

        if (json_is_string(json_object_get(tool, "name")))
            mt_fields_note(r->ask, "tools[].", tool, NULL, 0, (const char *const *const[3]){members});
    }
}

static bool read_tools(reader *r)
{
    const json_t *tools = mt_body_get(r->body, "tools");

    r->tools = json_array();
    mt_ask_own(r->ask, r->tools);
    if (tools && !json_is_array(tools))
        return bad_tool(r, "\"tools\" is not a list");
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (!add_tool(r, json_array_get(tools, i), NULL))
            return false;
    r->ask->chat.tools = json_array_size(r->tools) ? r->tools : NULL;
    note_tools(r, tools);
    return true;
}

/* The name of a tool of the client's in a tool_choice; data is NULL where it is none, or is run by OpenAI's servers. */
static mt_chat_text tool_name(reader *r, const json_t *tool)
{
    const char *type = mt_body_text(tool, "type");
    const json_t *name = json_object_get(tool, "name");

    if ((strcmp(type, "function") != 0 && strcmp(type, "custom") != 0) || !json_is_string(name))
        return (mt_chat_text){.data = NULL};
    return mt_responses_name(r->ask, mt_body_get(tool, "namespace"), name);
}

/* Tools that OpenAI's servers run are left out: they are never offered here. */
static bool read_allowed(reader *r, const json_t *choice)
{
    const json_t *tools = mt_body_get(choice, "tools");

    for (size_t i = 0; i < json_array_size(tools); i++) {
        const mt_chat_text name = tool_name(r, json_array_get(tools, i));

        if (name.data && !mt_tool_choice_add(r->ask, name))
            return mt_failure_memory(r->why, "tool_choice");
    }
    return mt_tool_choice_mode(r->ask, "tool_choice", mt_json_word(json_object_get(choice, "mode")), true, r->why);
}

static bool read_tool_choice(reader *r)
{
    const json_t *choice = mt_body_get(r->body, "tool_choice");

    if (!choice)
        return true;
    if (strcmp(mt_body_text(choice, "type"), "allowed_tools") == 0)
        return read_allowed(r, choice);
    if (!json_is_object(choice))
        return mt_read_tool_choice(r->ask, "tool_choice", choice, r->why);
    return mt_tool_choice_only(r->ask, tool_name(r, choice)) ||
           mt_failure_value(r->why, "tool_choice",
                            "is neither a word nor a function or custom tool with a name: send one");
}

/* text.format is {"type","name","schema"}, one level less than response_format of a chat. */
static bool read_format(reader *r)
{
    static const char *const members[] = {"format", NULL};
    const json_t *text = mt_body_get(r->body, "text"), *format = mt_body_get(text, "format");

    mt_fields_note(r->ask, "text.", text, NULL, 0, (const char *const *const[3]){members});
    if (!format)
        return true;
    if (!json_is_string(json_object_get(format, "type")))
        return mt_failure_value(r->why, "text.format", "has no type: send one");
    return mt_read_format(r->ask, "text.format", mt_body_text(format, "type"), mt_body_get(format, "schema"),
                          json_is_true(json_object_get(format, "strict")), r->why);
}

static bool read_reasoning(reader *r)
{
    const json_t *reasoning = mt_body_get(r->body, "reasoning"), *effort = mt_body_get(reasoning, "effort");

    if (reasoning && !mt_read_reasoning(r->ask, "reasoning", reasoning, r->why))
        return false;
    r->ask->chat.effort = effort;
    json_object_set_new(r->extra, "summary",
                        json_boolean(mt_body_get(reasoning, "summary") || mt_body_get(reasoning, "generate_summary")));
    return true;
}

/* Logprobs, and reasoning in a string that clients can send back, are written only where "include" asks for them. */
static bool read_include(reader *r)
{
    const json_t *include = mt_body_get(r->body, "include"), *top = mt_body_get(r->body, "top_logprobs");

    if (include && !json_is_array(include))
        return mt_failure_type(r->why, "include", include, "a list");
    for (size_t i = 0; i < json_array_size(include); i++) {
        const char *what = mt_json_word(json_array_get(include, i));

        if (what && strcmp(what, "reasoning.encrypted_content") == 0)
            json_object_set_new(r->extra, "carried", json_true());
        if (!what || strcmp(what, "message.output_text.logprobs") != 0)
            continue;
        r->ask->sampling.logprobs = 0;
        if (top && !mt_read_top_logprobs(r->ask, "top_logprobs", top, r->why))
            return false;
    }
    return true;
}

/* Fields that are not supported. */
static bool refuse_others(reader *r)
{
    static const char *const names[] = {"conversation", "messages", "prompt"};

    for (size_t i = 0; i < MT_COUNT(names); i++)
        if (mt_body_get(r->body, names[i]))
            return mt_failure_unsupported(r->why, names[i],
                                          "is not supported: send \"input\", and \"previous_response_id\" to go on");
    return true;
}

/* JSON as text in a string, which outlives the body. */
static json_t *dump(const json_t *value)
{
    mt_buf text = {.limit = MT_LIMIT_BODY_BYTES * 2ul};
    json_t *string = NULL;

    if (value && mt_json_tree_write(&text, value))
        string = json_stringn_nocheck(text.data, text.len);
    mt_buf_free(&text);
    return string;
}

/* Reads "store", "background" and previous_response_id; keeps the input where the response is to be kept. */
static bool read_store(reader *r)
{
    const json_t *store = mt_body_get(r->body, "store"), *previous = mt_body_get(r->body, "previous_response_id");

    if (json_is_string(previous) && !mt_json_word(previous))
        return mt_failure_nul(r->why, "previous_response_id");
    r->ask->form.background = json_is_true(json_object_get(r->body, "background"));
    if (json_is_false(store) && r->ask->form.background)
        return mt_failure_value(r->why, "background",
                                "is true, but the response is not to be kept: leave \"store\" out");
    if (json_is_false(store))
        return true;
    json_object_set_new(r->extra, "input", dump(mt_body_get(r->body, "input")));
    if (previous)
        json_object_set_new(r->extra, "previous", mt_body_share(previous));
    return true;
}

static bool read_messages(reader *r)
{
    const json_t *instructions = mt_body_get(r->body, "instructions");
    mt_chat_message system = {.role = MT_CHAT_SYSTEM}, last = {.role = MT_CHAT_USER};
    json_t *all;
    bool ok;

    if (instructions) {
        mt_chat_add_text(&r->ask->chat, &system, mt_chat_text_of(instructions));
        mt_chat_put(&r->ask->chat, &system);
    }
    ok = mt_responses_items(r->ask, &all, r->why);
    if (ok && (r->ask->recent || r->last))
        json_object_set_new(r->extra, "all", dump(all));
    json_decref(all);
    if (r->last) {
        mt_chat_add_text(&r->ask->chat, &last, (mt_chat_text){.data = r->last, .len = strlen(r->last)});
        mt_chat_put(&r->ask->chat, &last);
    }
    return ok;
}

static bool read_body(reader *r)
{
    /* Fields that this reader reads, or that are ignored without a note. */
    static const char *const own[] = {
        "background",   "client_metadata",   "conversation",   "include",  "input",
        "instructions", "max_output_tokens", "max_tool_calls", "messages", "previous_response_id",
        "prompt",       "reasoning",         "stream_options", "text",     "tool_choice",
        "tools",        "top_logprobs",      "truncation",     "type",     NULL};
    const json_t *most = mt_body_get(r->body, "max_output_tokens");

    mt_chat_begin(&r->ask->chat, r->ask->arena, "input");
    json_object_set_new(r->extra, "tools", json_object());
    r->ask->forgets = strcmp(mt_body_text(r->body, "truncation"), "auto") == 0;
    return refuse_others(r) && mt_body_refuse(r->ask, r->why) && mt_responses_echo(r->body, r->extra, r->why) &&
           read_store(r) && read_tools(r) && read_messages(r) && mt_body_fields(r->ask, own, r->why) &&
           read_include(r) && read_reasoning(r) && read_format(r) && read_tool_choice(r) &&
           (!most || mt_read_max_tokens(r->ask, "max_output_tokens", most, r->why)) && mt_body_end(r->ask, r->why);
}

bool mt_responses_read_with(mt_ask *ask, const char *last, mt_failure *why)
{
    reader r = {.ask = ask, .body = ask->body, .last = last, .why = why};
    bool ok;

    mt_json_guard_begin();
    ask->extra = r.extra = json_object();
    ok = read_body(&r);
    if (!mt_json_guard_end())
        return mt_failure_set(why, 413, "request_too_large", NULL,
                              "the items need more memory than a request may have: send fewer");
    if (ok)
        mt_responses_echo_settings(ask);
    return ok;
}

bool mt_responses_read(mt_ask *ask, mt_failure *why)
{
    return mt_responses_read_with(ask, NULL, why);
}
