/* Anthropic's messages as a chat: blocks become parts, calls and tool results. */
#include "api/anthropic.h"

#include <string.h>
#include <strings.h>

#include "api/chat_body.h"
#include "api/fields.h"
#include "api/json_body.h"
#include "chat/chat.h"

typedef struct reader {
    json_t *messages;
    const char *place; /* "system" or "messages" */
    size_t at;         /* the message */
    mt_failure *why;
} reader;

/* What the blocks of one message come to. calls or results are NULL where they may not stand. */
typedef struct turn {
    json_t *parts, *calls, *results;
} turn;

static bool bad(reader *r, const char *sentence, const char *what)
{
    if (strcmp(r->place, "system") == 0)
        return mt_failure_set(r->why, 400, "invalid_value", "system", "system: %s%s", sentence, what);
    return mt_failure_set(r->why, 400, "invalid_value", "messages", "messages.%zu: %s%s", r->at, sentence, what);
}

static bool add_part(turn *t, json_t *part)
{
    json_array_append_new(t->parts, part);
    return true;
}

/* A block whose text stands in a member; chats know both kinds by the same names. */
static bool share_block(reader *r, turn *t, const json_t *block, const char *member)
{
    if (!json_is_string(json_object_get(block, member)))
        return bad(r, "a block has no string as its ", member);
    return add_part(t, mt_body_share(block));
}

static bool add_text(reader *r, turn *t, const json_t *block)
{
    return share_block(r, t, block, "text");
}

static bool add_thinking(reader *r, turn *t, const json_t *block)
{
    return share_block(r, t, block, "thinking");
}

static bool add_image(reader *r, turn *t, const json_t *block)
{
    const json_t *source = json_object_get(block, "source");
    const char *type = mt_body_text(source, "type");

    if ((strcmp(type, "url") == 0 && json_is_string(json_object_get(source, "url"))) ||
        (strcmp(type, "base64") == 0 && json_is_string(json_object_get(source, "data"))))
        return add_part(t, mt_body_share(block));
    return bad(r, "the source of an image is neither base64 nor a url: send one of these", "");
}

static bool add_blocks(reader *r, turn *t, const json_t *content);

/* Its title, then what it says. */
static bool add_titled(reader *r, turn *t, const json_t *block, const json_t *content)
{
    const json_t *title = json_object_get(block, "title");

    if (json_string_length(title))
        add_part(t, mt_body_text_part(json_string_value(title), json_string_length(title)));
    return add_blocks(r, &(turn){.parts = t->parts}, content);
}

static bool add_document(reader *r, turn *t, const json_t *block)
{
    const json_t *source = json_object_get(block, "source");
    const char *type = mt_body_text(source, "type");

    if (strcmp(type, "text") == 0 && json_is_string(json_object_get(source, "data")))
        return add_titled(r, t, block, json_object_get(source, "data"));
    if (strcmp(type, "content") == 0)
        return add_titled(r, t, block, json_object_get(source, "content"));
    return bad(r, "documents are taken as text only: send a source of type text or content", "");
}

static bool add_search_result(reader *r, turn *t, const json_t *block)
{
    return add_titled(r, t, block, json_object_get(block, "content"));
}

/* What came of a call whose arguments were no object goes back as it was. */
static json_t *input_of(const json_t *input)
{
    const json_t *text = json_object_size(input) == 1 ? json_object_get(input, MT_CHAT_BROKEN) : NULL;

    if (!input)
        return json_object();
    return mt_body_share(json_is_string(text) ? text : input);
}

static bool add_call(reader *r, turn *t, const json_t *block)
{
    const json_t *name = json_object_get(block, "name"), *id = json_object_get(block, "id");
    const json_t *input = mt_body_get(block, "input");

    if (!t->calls)
        return bad(r, "a tool_use block stands where none may: only the assistant calls tools", "");
    if (!json_is_string(name) || !json_is_string(id))
        return bad(r, "a tool_use block has no string as its name or id", "");
    if (input && !json_is_object(input))
        return bad(r, "the input of a tool_use block is ", mt_json_kind(input));
    json_array_append_new(t->calls, mt_body_call(id, name, input_of(input)));
    return true;
}

/* Chats have no place for it, but models know what the word means. */
static void mark_error(json_t *parts)
{
    static const char word[] = "Error";

    if (strncasecmp(mt_body_text(json_array_get(parts, 0), "text"), word, sizeof(word) - 1) != 0)
        json_array_insert_new(parts, 0, mt_body_text_part("Error:", sizeof("Error:") - 1));
}

static bool add_result(reader *r, turn *t, const json_t *block)
{
    const json_t *content = mt_body_get(block, "content"), *id = json_object_get(block, "tool_use_id");
    const bool plain = json_is_string(content) && !json_is_true(json_object_get(block, "is_error"));
    json_t *parts = json_array(), *message;
    bool ok = true;

    if (!t->results || !json_is_string(id))
        ok = bad(r,
                 !t->results ? "a tool_result block stands where none may: results are the user's"
                             : "a tool_result block has no string as its tool_use_id",
                 "");
    else if (content)
        ok = add_blocks(r, &(turn){.parts = parts}, content);
    if (ok && json_is_true(json_object_get(block, "is_error")))
        mark_error(parts);
    if (ok) {
        message = mt_body_message(t->results, "tool", plain ? mt_body_share(content) : json_incref(parts));
        json_object_set_new(message, "tool_call_id", mt_body_share(id));
    }
    json_decref(parts);
    return ok;
}

static bool skip(reader *r, turn *t, const json_t *block)
{
    (void)r;
    (void)t;
    (void)block;
    return true;
}

static const struct {
    const char *type;
    bool (*add)(reader *r, turn *t, const json_t *block);
} block_types[] = {
    {"text", add_text},
    {"image", add_image},
    {"document", add_document},
    {"search_result", add_search_result},
    {"thinking", add_thinking},
    {"tool_use", add_call},
    {"tool_result", add_result},
    {"redacted_thinking", skip}, /* only who wrote it can read it */
    {"tool_reference", skip},    /* of tools that Anthropic's servers run, or look for */
    {"server_tool_use", skip},
    {"web_search_tool_result", skip},
    {"web_fetch_tool_result", skip},
    {"tool_search_tool_result", skip},
    {"code_execution_tool_result", skip},
};

static bool add_block(reader *r, turn *t, const json_t *block)
{
    const json_t *type = json_object_get(block, "type");

    if (!json_is_string(type))
        return bad(r, "a content block has no type", "");
    for (size_t i = 0; i < MT_COUNT(block_types); i++)
        if (strcmp(json_string_value(type), block_types[i].type) == 0)
            return block_types[i].add(r, t, block);
    return bad(r, "content blocks of this type are not known: ", json_string_value(type));
}

static bool add_blocks(reader *r, turn *t, const json_t *content)
{
    if (json_is_string(content))
        return add_part(t, mt_body_text_part(json_string_value(content), json_string_length(content)));
    if (!json_is_array(content))
        return bad(r, "content is neither a string nor a list of blocks but ", mt_json_kind(content));
    for (size_t i = 0; i < json_array_size(content); i++)
        if (!add_block(r, t, json_array_get(content, i)))
            return false;
    return true;
}

/* Results first: they answer calls of the message before, wherever a client puts them. */
static void add_turn(reader *r, const char *role, const turn *t, const json_t *content)
{
    const bool some = json_array_size(t->parts) || json_array_size(t->calls) || !json_array_size(t->results);
    json_t *message;

    if (t->results)
        json_array_extend(r->messages, t->results);
    if (!some)
        return;
    message =
        mt_body_message(r->messages, role, json_is_string(content) ? mt_body_share(content) : json_incref(t->parts));
    if (json_array_size(t->calls))
        json_object_set(message, "tool_calls", t->calls);
}

/* Claude Code begins its system text with a line that differs from request to request; with it, nothing behind it
   could be taken from the cache. */
static void drop_billing(json_t *parts)
{
    static const char billing[] = "x-anthropic-billing-header:";

    for (size_t i = json_array_size(parts); i-- > 0;) {
        const json_t *text = json_object_get(json_array_get(parts, i), "text");
        const char *all = json_string_value(text), *rest;

        if (!all || strncmp(all, billing, sizeof(billing) - 1) != 0)
            continue;
        rest = all + strcspn(all, "\n");
        rest += strspn(rest, "\n");
        if (*rest)
            json_array_set_new(parts, i, mt_body_text_part(rest, json_string_length(text) - (size_t)(rest - all)));
        else
            json_array_remove(parts, i);
    }
}

static bool read_system(reader *r, const json_t *content)
{
    turn t = {.parts = json_array()};
    const bool ok = add_blocks(r, &t, content);

    drop_billing(t.parts);
    if (ok && json_array_size(t.parts))
        mt_body_message(r->messages, "system", json_incref(t.parts));
    json_decref(t.parts);
    return ok;
}

static bool read_message(reader *r, const json_t *message)
{
    const char *role = mt_body_text(message, "role");
    const json_t *content = json_object_get(message, "content");
    turn t;
    bool ok;

    if (strcmp(role, "system") == 0)
        return read_system(r, content);
    if (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0)
        return bad(r, "the role is none of user, assistant and system", "");
    t = (turn){.parts = json_array(),
               .calls = *role == 'a' ? json_array() : NULL,
               .results = *role == 'u' ? json_array() : NULL};
    ok = add_blocks(r, &t, content);
    if (ok)
        add_turn(r, role, &t, content);
    json_decref(t.parts);
    json_decref(t.calls);
    json_decref(t.results);
    return ok;
}

static bool read_messages(const json_t *body, json_t *chat, mt_failure *why)
{
    const json_t *system = mt_body_get(body, "system"), *messages = json_object_get(body, "messages");
    reader r = {.messages = json_array(), .place = "system", .why = why};

    json_object_set_new(chat, "messages", r.messages);
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return mt_failure_set(why, 400, "invalid_type", "messages",
                              "messages: a list of at least one message is needed");
    if (system && !read_system(&r, system))
        return false;
    r.place = "messages";
    for (; r.at < json_array_size(messages); r.at++)
        if (!read_message(&r, json_array_get(messages, r.at)))
            return false;
    return true;
}

/* Tools with a schema are the client's; the others are run by Anthropic's servers, or described to its models only. */
static bool read_tools(mt_ask *ask, json_t *chat, mt_failure *why)
{
    const json_t *tools = mt_body_get(ask->body, "tools");
    json_t *list = json_array();

    json_object_set_new(chat, "tools", list);
    if (tools && !json_is_array(tools))
        return mt_failure_set(why, 400, "invalid_type", "tools", "tools: a list is needed, not %s",
                              mt_json_kind(tools));
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i), *schema = mt_body_get(tool, "input_schema");

        if (json_is_object(schema) && json_is_string(json_object_get(tool, "name")))
            json_array_append_new(list, mt_body_tool(tool, schema));
        else if (json_is_string(mt_body_get(tool, "type")) && !schema)
            mt_ask_ignore(ask, mt_body_text(tool, "type"));
        else
            return mt_failure_set(why, 400, "invalid_value", "tools", "tools.%zu: name and input_schema are needed", i);
    }
    return true;
}

static bool read_tool_choice(const json_t *body, json_t *chat, mt_failure *why)
{
    static const char *const names[][2] = {{"auto", "auto"}, {"any", "required"}, {"none", "none"}};
    const json_t *choice = mt_body_get(body, "tool_choice");
    const char *type = mt_body_text(choice, "type");

    if (!choice)
        return true;
    if (json_is_true(json_object_get(choice, "disable_parallel_tool_use")))
        json_object_set_new(chat, "parallel_tool_calls", json_false());
    for (size_t i = 0; i < MT_COUNT(names); i++)
        if (strcmp(type, names[i][0]) == 0)
            return json_object_set_new(chat, "tool_choice", json_string(names[i][1])) == 0;
    if (strcmp(type, "tool") == 0 && json_is_string(json_object_get(choice, "name")))
        return json_object_set_new(chat, "tool_choice", mt_body_named(json_object_get(choice, "name"))) == 0;
    return mt_failure_set(why, 400, "invalid_value", "tool_choice",
                          "tool_choice: the type is none of auto, any, tool (with a name) and none");
}

static bool read_thinking(const json_t *body, json_t *chat, mt_failure *why)
{
    const json_t *thinking = mt_body_get(body, "thinking");
    const char *type = mt_body_text(thinking, "type");

    if (!thinking)
        return true;
    if (strcmp(type, "enabled") != 0 && strcmp(type, "adaptive") != 0 && strcmp(type, "disabled") != 0)
        return mt_failure_set(why, 400, "invalid_value", "thinking",
                              "thinking: the type is none of enabled, adaptive and disabled");
    json_object_set_new(chat, "enable_thinking", json_boolean(*type != 'd'));
    return true;
}

/* Clients that would have the server hold the conversation send all of it when they hear this code. */
static bool refuse_thread(const json_t *body, mt_failure *why)
{
    return !mt_body_get(body, "thread") ||
           mt_failure_set(why, 400, "thread_unsupported_request", "thread",
                          "thread: conversations are not held here: leave it out, and send all messages");
}

static bool read_stops(const json_t *body, json_t *chat, mt_failure *why)
{
    const json_t *stops = mt_body_get(body, "stop_sequences");

    if (!stops)
        return true;
    if (!json_is_array(stops))
        return mt_failure_set(why, 400, "invalid_type", "stop_sequences", "stop_sequences: a list is needed, not %s",
                              mt_json_kind(stops));
    json_object_set_new(chat, "stop", mt_body_share(stops));
    return true;
}

/* How much to think, and what the answer must look like. The format stood elsewhere before. */
static void read_output(const json_t *body, json_t *chat)
{
    const json_t *config = mt_body_get(body, "output_config"), *effort = mt_body_get(config, "effort");
    const json_t *format = mt_body_get(config, "format");

    format = format ? format : mt_body_get(body, "output_format");
    if (effort)
        json_object_set_new(chat, "reasoning_effort", mt_body_share(effort));
    if (format) {
        json_t *schema = json_pack("{s:s, s:b}", "name", "answer", "strict", 1);

        json_object_set_new(schema, "schema", mt_body_share(json_object_get(format, "schema")));
        json_object_set_new(chat, "response_format",
                            json_pack("{s:s, s:o}", "type", mt_body_text(format, "type"), "json_schema", schema));
    }
}

static bool translate(mt_ask *ask, json_t *chat, mt_failure *why)
{
    static const char *const own[] = {"anthropic_beta", "anthropic_version",
                                      "betas",          "cache_control",
                                      "container",      "context_management",
                                      "diagnostics",    "fallbacks",
                                      "inference_geo",  "mcp_servers",
                                      "messages",       "output_config",
                                      "output_format",  "speed",
                                      "stop_sequences", "system",
                                      "thinking",       "thread",
                                      "tool_choice",    "tools"};
    const json_t *body = ask->body;

    if (!mt_body_share_others(ask, chat, own, MT_COUNT(own), why))
        return false;
    if (json_array_size(json_object_get(body, "mcp_servers")))
        mt_ask_ignore(ask, "mcp_servers");
    read_output(body, chat);
    return refuse_thread(body, why) && read_messages(body, chat, why) && mt_anthropic_prefill(body, chat, why) &&
           read_tools(ask, chat, why) && read_tool_choice(body, chat, why) && read_thinking(body, chat, why) &&
           read_stops(body, chat, why);
}

bool mt_anthropic_read(mt_ask *ask, mt_failure *why)
{
    json_t *chat;
    bool ok, fits;

    mt_json_guard_begin();
    chat = json_object();
    ok = translate(ask, chat, why);
    fits = mt_json_guard_end();
    if (ok && fits)
        return mt_body_read(ask, chat, why) || mt_failure_rename(why, "stop", "stop_sequences") ||
               mt_failure_rename(why, "response_format", "output_config.format");
    json_decref(chat);
    return fits ? ok
                : mt_failure_set(why, 413, "request_too_large", NULL,
                                 "the messages need more memory than a request may have: send fewer");
}
