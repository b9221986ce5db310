/* The messages of a request in OpenAI's shape, as clients really send them. */
#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "chat/chat.h"
#include "chat/ending.h"

const char *mt_chat_role_name(mt_chat_role role)
{
    static const char *const names[MT_CHAT_ROLES] = {[MT_CHAT_SYSTEM] = "system",
                                                     [MT_CHAT_USER] = "user",
                                                     [MT_CHAT_ASSISTANT] = "assistant",
                                                     [MT_CHAT_TOOL] = "tool"};

    return names[role];
}

/* What a value is, with its article. */
static const char *kind_of(const json_t *value)
{
    if (!value)
        return "missing";
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    case JSON_NULL: return "null";
    }
    return "unknown";
}

/* A value that is there and not null, or NULL. */
static const json_t *get(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_null(value) ? NULL : value;
}

static mt_chat_text text_of(const json_t *string)
{
    return (mt_chat_text){.data = json_string_value(string), .len = json_string_length(string)};
}

static void *allocate(mt_chat *chat, size_t count, size_t size, mt_error *err)
{
    void *memory = mt_arena_alloc(chat->arena, count * size);

    if (!memory)
        mt_fail(err, MT_E_TOO_LARGE,
                "the messages need more memory than a request may have; send fewer or shorter ones");
    return memory;
}

static bool read_role(const json_t *message, mt_chat_message *out, mt_error *err)
{
    static const struct {
        const char *name;
        mt_chat_role role;
    } roles[] = {{"system", MT_CHAT_SYSTEM}, {"developer", MT_CHAT_SYSTEM},
                 {"user", MT_CHAT_USER},     {"assistant", MT_CHAT_ASSISTANT},
                 {"tool", MT_CHAT_TOOL},     {"function", MT_CHAT_TOOL}}; /* the old form */
    const json_t *role = json_object_get(message, "role");

    if (!json_is_string(role))
        return mt_fail(err, MT_E_INVALID,
                       "the role of messages[%zu] is %s; send system, developer, user, assistant or tool", out->index,
                       kind_of(role));
    for (size_t i = 0; i < MT_COUNT(roles); i++)
        if (strcmp(json_string_value(role), roles[i].name) == 0) {
            out->role = roles[i].role;
            return true;
        }
    return mt_fail(err, MT_E_INVALID,
                   "the role \"%.60s\" of messages[%zu] is not known; send system, developer, user, assistant or tool",
                   json_string_value(role), out->index);
}

typedef enum part_kind { PART_TEXT, PART_REASONING, PART_IMAGE, PART_VIDEO } part_kind;

/* field: where the text of a part stands. */
static const struct {
    const char *type;
    part_kind kind;
    const char *field;
} part_types[] = {
    {"text", PART_TEXT, "text"},       {"input_text", PART_TEXT, "text"},     {"output_text", PART_TEXT, "text"},
    {"refusal", PART_TEXT, "refusal"}, {"reasoning", PART_REASONING, "text"}, {"thinking", PART_REASONING, "thinking"},
    {"image_url", PART_IMAGE, NULL},   {"input_image", PART_IMAGE, NULL},     {"image", PART_IMAGE, NULL},
    {"video_url", PART_VIDEO, NULL},   {"input_video", PART_VIDEO, NULL},     {"video", PART_VIDEO, NULL},
};

static bool fail_part(const mt_chat_message *m, size_t i, const json_t *type, mt_error *err)
{
    if (!json_is_string(type))
        return mt_fail(err, MT_E_INVALID,
                       "the type of messages[%zu].content[%zu] is %s; send text, image_url or video_url", m->index, i,
                       kind_of(type));
    if (strstr(json_string_value(type), "audio"))
        return mt_fail(err, MT_E_INVALID, "messages[%zu].content[%zu] is audio, which no model here hears; send text",
                       m->index, i);
    return mt_fail(err, MT_E_INVALID,
                   "the type \"%.60s\" of messages[%zu].content[%zu] is not known; send text, image_url or video_url",
                   json_string_value(type), m->index, i);
}

/* The row of a part's type; MT_COUNT(part_types) when there is none. */
static size_t find_type(const json_t *type)
{
    size_t t = 0;

    while (t < MT_COUNT(part_types) &&
           !(json_is_string(type) && strcmp(json_string_value(type), part_types[t].type) == 0))
        t++;
    return t;
}

static bool shows(const json_t *request, bool images)
{
    const json_t *messages = json_object_get(request, "messages");

    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *content = json_object_get(json_array_get(messages, i), "content");

        for (size_t k = 0; k < json_array_size(content); k++) {
            const size_t t = find_type(json_object_get(json_array_get(content, k), "type"));

            if (t < MT_COUNT(part_types) &&
                (part_types[t].kind == PART_VIDEO || (images && part_types[t].kind == PART_IMAGE)))
                return true;
        }
    }
    return false;
}

bool mt_chat_shows(const json_t *request)
{
    return shows(request, true);
}

bool mt_chat_shows_video(const json_t *request)
{
    return shows(request, false);
}

static bool read_part(mt_chat_message *m, const json_t *part, size_t i, mt_error *err)
{
    const json_t *type = json_object_get(part, "type"), *text;
    const size_t t = find_type(type);

    if (!json_is_object(part))
        return mt_fail(err, MT_E_INVALID, "messages[%zu].content[%zu] is %s; send an object with a type", m->index, i,
                       kind_of(part));
    if (t == MT_COUNT(part_types))
        return fail_part(m, i, type, err);
    if (part_types[t].kind == PART_IMAGE || part_types[t].kind == PART_VIDEO) {
        m->parts[m->part_count++] =
            (mt_chat_part){.type = part_types[t].kind == PART_IMAGE ? MT_CHAT_IMAGE : MT_CHAT_VIDEO,
                           .source = part,
                           .message = m->index,
                           .index = i};
        return true;
    }
    text = json_object_get(part, part_types[t].field);
    if (!json_is_string(text))
        return mt_fail(err, MT_E_INVALID, "the %s of messages[%zu].content[%zu] is %s; send a string",
                       part_types[t].field, m->index, i, kind_of(text));
    if (part_types[t].kind == PART_TEXT) /* reasoning is gathered once all parts are known to be right */
        m->parts[m->part_count++] = (mt_chat_part){.type = MT_CHAT_TEXT, .text = text_of(text), .message = m->index};
    return true;
}

/* The text of a part that was read, where that is reasoning; otherwise NULL. */
static const json_t *reasoning_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));

    for (size_t t = 0; t < MT_COUNT(part_types); t++)
        if (part_types[t].kind == PART_REASONING && strcmp(type, part_types[t].type) == 0)
            return json_object_get(part, part_types[t].field);
    return NULL;
}

/* With a blank line between the parts. */
static bool gather_reasoning(mt_chat *chat, const json_t *content, mt_chat_message *out, mt_error *err)
{
    size_t size = 0;
    char *joined;

    for (size_t i = 0; i < json_array_size(content); i++)
        size += json_string_length(reasoning_of(json_array_get(content, i))) + strlen("\n\n");
    joined = allocate(chat, size + 1, 1, err);
    if (!joined)
        return false;
    out->reasoning.data = joined;
    for (size_t i = 0; i < json_array_size(content); i++) {
        const mt_chat_text text = text_of(reasoning_of(json_array_get(content, i)));

        if (text.len == 0)
            continue;
        if (out->reasoning.len > 0) {
            memcpy(joined + out->reasoning.len, "\n\n", 2);
            out->reasoning.len += 2;
        }
        memcpy(joined + out->reasoning.len, text.data, text.len);
        out->reasoning.len += text.len;
    }
    return true;
}

static bool read_content(mt_chat *chat, const json_t *message, mt_chat_message *out, mt_error *err)
{
    const json_t *content = get(message, "content");
    size_t count = json_is_array(content) ? json_array_size(content) : 1;

    out->parts = allocate(chat, count + 1, sizeof(*out->parts), err);
    if (!out->parts)
        return false;
    if (!content || json_is_string(content)) { /* null is the empty string */
        out->parts[out->part_count++] =
            (mt_chat_part){.type = MT_CHAT_TEXT,
                           .text = content ? text_of(content) : (mt_chat_text){.data = "", .len = 0},
                           .message = out->index};
        return true;
    }
    if (!json_is_array(content))
        return mt_fail(err, MT_E_INVALID, "the content of messages[%zu] is %s; send a string or a list of parts",
                       out->index, kind_of(content));
    out->list = true;
    for (size_t i = 0; i < count; i++)
        if (!read_part(out, json_array_get(content, i), i, err))
            return false;
    return gather_reasoning(chat, content, out, err);
}

static void drop(void *json)
{
    json_decref(json);
}

static bool read_call(const mt_chat_message *m, const json_t *call, size_t i, mt_chat_call *out, mt_error *err)
{
    const json_t *function = json_object_get(call, "function");

    if (!json_is_object(call))
        return mt_fail(err, MT_E_INVALID, "messages[%zu].tool_calls[%zu] is %s; send an object with a function",
                       m->index, i, kind_of(call));
    if (!function)
        function = call; /* some clients leave the wrapper out */
    out->id = get(call, "id");
    out->name = json_object_get(function, "name");
    out->arguments = get(function, "arguments");
    if (!json_is_string(out->name))
        return mt_fail(err, MT_E_INVALID, "the name of messages[%zu].tool_calls[%zu].function is %s; send a string",
                       m->index, i, kind_of(out->name));
    if (out->id && !json_is_string(out->id))
        return mt_fail(err, MT_E_INVALID, "the id of messages[%zu].tool_calls[%zu] is %s; send a string", m->index, i,
                       kind_of(out->id));
    return true;
}

/* The old form: one call without an id, so that it gets one. */
static bool read_function_call(mt_chat *chat, const json_t *call, mt_chat_message *out, mt_error *err)
{
    json_t *id = json_sprintf("call_%zu", out->index);

    out->calls = allocate(chat, 1, sizeof(*out->calls), err);
    if (!out->calls || !id || !mt_arena_defer(chat->arena, drop, id)) {
        json_decref(id);
        return mt_fail(err, MT_E_TOO_LARGE, "the request needs more memory than it may have; make it smaller");
    }
    if (!read_call(out, call, 0, out->calls, err))
        return false;
    out->calls[0].id = id;
    out->call_count = 1;
    return true;
}

/* What answers a call of the old form answers the last one. */
static const json_t *last_id(const mt_chat *chat)
{
    for (size_t i = chat->count; i-- > 0;)
        if (chat->messages[i].call_count)
            return chat->messages[i].calls[chat->messages[i].call_count - 1].id;
    return NULL;
}

static bool read_calls(mt_chat *chat, const json_t *message, mt_chat_message *out, mt_error *err)
{
    const json_t *calls = get(message, "tool_calls");
    size_t count = json_array_size(calls);

    if (calls && !json_is_array(calls))
        return mt_fail(err, MT_E_INVALID, "the tool_calls of messages[%zu] are %s; send a list", out->index,
                       kind_of(calls));
    if (count > 0 && out->role != MT_CHAT_ASSISTANT)
        return mt_fail(err, MT_E_INVALID,
                       "messages[%zu] has tool_calls, but its role is %s; only the assistant calls tools", out->index,
                       mt_chat_role_name(out->role));
    if (count == 0 && get(message, "function_call") && out->role == MT_CHAT_ASSISTANT)
        return read_function_call(chat, get(message, "function_call"), out, err);
    if (count == 0)
        return true;
    out->calls = allocate(chat, count, sizeof(*out->calls), err);
    for (size_t i = 0; out->calls && i < count; i++, out->call_count++)
        if (!read_call(out, json_array_get(calls, i), i, &out->calls[i], err))
            return false;
    return out->calls != NULL;
}

/* A string that may be left out or null. */
static bool read_string(const json_t *message, const char *key, size_t index, const json_t **out, mt_error *err)
{
    *out = get(message, key);
    return !*out || json_is_string(*out) ||
           mt_fail(err, MT_E_INVALID, "the %s of messages[%zu] is %s; send a string", key, index, kind_of(*out));
}

static bool read_message(mt_chat *chat, const json_t *message, mt_chat_message *out, mt_error *err)
{
    static const char *const reasoning_names[] = {"reasoning_content", "reasoning", "thinking"};

    if (!json_is_object(message))
        return mt_fail(err, MT_E_INVALID, "messages[%zu] is %s; send an object with a role and content", out->index,
                       kind_of(message));
    if (!read_role(message, out, err) || !read_content(chat, message, out, err) ||
        !read_calls(chat, message, out, err) || !read_string(message, "tool_call_id", out->index, &out->call_id, err) ||
        !read_string(message, "name", out->index, &out->name, err))
        return false;
    if (!out->call_id && strcmp(json_string_value(json_object_get(message, "role")), "function") == 0)
        out->call_id = last_id(chat);
    for (size_t i = 0; out->reasoning.len == 0 && i < MT_COUNT(reasoning_names); i++) {
        const json_t *reasoning = json_object_get(message, reasoning_names[i]);

        if (json_is_string(reasoning))
            out->reasoning = text_of(reasoning);
    }
    return true;
}

static bool read_messages(mt_chat *chat, const json_t *messages, mt_error *err)
{
    size_t count = json_array_size(messages);

    if (!json_is_array(messages))
        return mt_fail(err, MT_E_INVALID, "messages is %s; send a list of messages", kind_of(messages));
    if (count == 0)
        return mt_fail(err, MT_E_INVALID, "messages is empty; send at least one message");
    if (count > MT_LIMIT_MESSAGES)
        return mt_fail(err, MT_E_TOO_LARGE, "%zu messages; send at most %d", count, MT_LIMIT_MESSAGES);
    chat->messages = allocate(chat, count, sizeof(*chat->messages), err);
    if (!chat->messages)
        return false;
    for (; chat->count < count; chat->count++) {
        chat->messages[chat->count].index = chat->count;
        if (!read_message(chat, json_array_get(messages, chat->count), &chat->messages[chat->count], err))
            return false;
    }
    return true;
}

static bool read_tools(mt_chat *chat, const json_t *tools, mt_error *err)
{
    if (!tools)
        return true;
    if (!json_is_array(tools))
        return mt_fail(err, MT_E_INVALID, "tools is %s; send a list of objects", kind_of(tools));
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const char *type = json_string_value(json_object_get(json_array_get(tools, i), "type"));

        if (!json_is_object(json_array_get(tools, i)))
            return mt_fail(err, MT_E_INVALID, "tools[%zu] is %s; send an object", i, kind_of(json_array_get(tools, i)));
        if (type && strcmp(type, "function") != 0)
            return mt_fail(err, MT_E_INVALID, "tools[%zu] is of type \"%.60s\", which is not supported; send functions",
                           i, type);
    }
    chat->tools = json_array_size(tools) ? tools : NULL;
    return true;
}

/* Whether the model is to think: as the request says outright, as {"type": "enabled"}, or by how much. NULL: it does
   not say. */
static const json_t *thinking_of(const json_t *request)
{
    const json_t *thinking = get(request, "enable_thinking");
    const char *type = json_string_value(json_object_get(get(request, "thinking"), "type"));
    const char *effort = json_string_value(get(request, "reasoning_effort"));

    if (thinking || !(type || effort))
        return thinking;
    return type ? json_boolean(strcmp(type, "disabled") != 0) : json_boolean(strcmp(effort, "none") != 0);
}

/* The fields of the request that are variables of the template; chat_template_kwargs has the last word. */
static bool read_kwargs(mt_chat *chat, const json_t *request, mt_error *err)
{
    static const char *const fields[] = {"reasoning_effort", "documents"};
    /* special tokens are trusted, so a client must not set them */
    static const char *const reserved[] = {"messages",      "tools",      "add_generation_prompt",
                                           "chat_template", "bos_token",  "eos_token",
                                           "unk_token",     "pad_token",  "sep_token",
                                           "cls_token",     "mask_token", "additional_special_tokens"};
    const json_t *given = get(request, "chat_template_kwargs");
    const json_t *thinking = thinking_of(request);
    json_t *kwargs = json_object();

    if (!kwargs || !mt_arena_defer(chat->arena, drop, kwargs)) {
        json_decref(kwargs);
        return mt_fail(err, MT_E_TOO_LARGE, "the request needs more memory than it may have; make it smaller");
    }
    chat->kwargs = kwargs;
    if (given && !json_is_object(given))
        return mt_fail(err, MT_E_INVALID, "chat_template_kwargs is %s; send an object", kind_of(given));
    for (size_t i = 0; i < MT_COUNT(fields); i++)
        if (get(request, fields[i]))
            json_object_set(kwargs, fields[i], (json_t *)(uintptr_t)get(request, fields[i]));
    if (thinking)
        json_object_set(kwargs, "enable_thinking", (json_t *)(uintptr_t)thinking);
    for (size_t i = 0; i < MT_COUNT(reserved); i++)
        if (json_object_get(given, reserved[i]))
            return mt_fail(err, MT_E_INVALID,
                           "chat_template_kwargs cannot set \"%s\", which comes from the request itself or from the "
                           "model; leave it out",
                           reserved[i]);
    if (given)
        json_object_update(kwargs, (json_t *)(uintptr_t)given); /* takes references only */
    return true;
}

bool mt_chat_read(mt_chat *chat, mt_arena *arena, const json_t *request, mt_error *err)
{
    *chat = (mt_chat){.arena = arena};
    if (!json_is_object(request))
        return mt_fail(err, MT_E_INVALID, "the request is %s; send an object with messages", kind_of(request));
    return (read_messages(chat, get(request, "messages"), err) || mt_fail_about(err, "messages")) &&
           (read_tools(chat, get(request, "tools"), err) || mt_fail_about(err, "tools")) &&
           (read_kwargs(chat, request, err) || mt_fail_about(err, "chat_template_kwargs")) &&
           (mt_chat_ending_read(chat, request, err) || mt_fail_about(err, "continue_final_message"));
}
