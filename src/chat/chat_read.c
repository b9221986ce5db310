/* Reads messages in the shape of OpenAI's chat completions, with the variations that clients send. */
#include <stdint.h>
#include <string.h>

#include "base/json_tree.h"
#include "chat/chat.h"
#include "chat/document.h"
#include "chat/ending.h"

const char *mt_chat_kind(const json_t *value)
{
    return json_is_number(value) ? "a number" : mt_json_kind(value);
}

/* The member of an object; NULL where it is missing or null. */
static const json_t *get(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_null(value) ? NULL : value;
}

/* as: overrides the role; may be NULL. */
static bool read_role(const json_t *message, const char *as, mt_chat_message *out, mt_error *err)
{
    static const struct {
        const char *name;
        mt_chat_role role;
    } roles[] = {{"system", MT_CHAT_SYSTEM}, {"developer", MT_CHAT_SYSTEM},
                 {"user", MT_CHAT_USER},     {"assistant", MT_CHAT_ASSISTANT},
                 {"tool", MT_CHAT_TOOL},     {"function", MT_CHAT_TOOL}}; /* the older form */
    const json_t *role = json_object_get(message, "role");
    const char *name = as ? as : mt_json_word(role);

    if (!name)
        return mt_fail(err, MT_E_INVALID,
                       "the role of messages[%zu] is %s; send system, developer, user, assistant or tool", out->index,
                       mt_chat_kind(role));
    for (size_t i = 0; i < MT_COUNT(roles); i++)
        if (strcmp(name, roles[i].name) == 0) {
            out->role = roles[i].role;
            return true;
        }
    return mt_fail(err, MT_E_INVALID,
                   "the role \"%.60s\" of messages[%zu] is not known; send system, developer, user, assistant or tool",
                   name, out->index);
}

typedef enum part_kind { PART_TEXT, PART_REASONING, PART_IMAGE, PART_VIDEO, PART_FILE } part_kind;

/* Types of content parts. field: the member that has the text. */
static const struct {
    const char *type;
    part_kind kind;
    const char *field;
} part_types[] = {
    {"text", PART_TEXT, "text"},       {"input_text", PART_TEXT, "text"},     {"output_text", PART_TEXT, "text"},
    {"refusal", PART_TEXT, "refusal"}, {"reasoning", PART_REASONING, "text"}, {"thinking", PART_REASONING, "thinking"},
    {"image_url", PART_IMAGE, NULL},   {"input_image", PART_IMAGE, NULL},     {"image", PART_IMAGE, NULL},
    {"video_url", PART_VIDEO, NULL},   {"input_video", PART_VIDEO, NULL},     {"video", PART_VIDEO, NULL},
    {"file", PART_FILE, NULL},         {"input_file", PART_FILE, NULL},
};

static bool fail_part(const mt_chat_message *m, size_t i, const json_t *type, mt_error *err)
{
    if (!mt_json_word(type))
        return mt_fail(err, MT_E_INVALID,
                       "the type of messages[%zu].content[%zu] is %s; send text, image_url or video_url", m->index, i,
                       mt_chat_kind(type));
    if (strstr(json_string_value(type), "audio"))
        return mt_fail(err, MT_E_INVALID, "messages[%zu].content[%zu] is audio, which no model here hears; send text",
                       m->index, i);
    return mt_fail(err, MT_E_INVALID,
                   "the type \"%.60s\" of messages[%zu].content[%zu] is not known; send text, image_url or video_url",
                   json_string_value(type), m->index, i);
}

/* The row of a part's type; MT_COUNT(part_types): there is none. */
static size_t find_type(const json_t *type)
{
    size_t t = 0;

    while (t < MT_COUNT(part_types) && !(mt_json_word(type) && strcmp(mt_json_word(type), part_types[t].type) == 0))
        t++;
    return t;
}

bool mt_chat_request_has_media(const json_t *request)
{
    const json_t *messages = json_object_get(request, "messages");

    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *content = json_object_get(json_array_get(messages, i), "content");

        for (size_t k = 0; k < json_array_size(content); k++) {
            const size_t t = find_type(json_object_get(json_array_get(content, k), "type"));

            if (t < MT_COUNT(part_types) && part_types[t].kind >= PART_IMAGE)
                return true;
        }
    }
    return false;
}

static bool read_part(mt_chat *chat, mt_chat_message *m, const json_t *part, mt_error *err)
{
    const json_t *type = json_object_get(part, "type"), *text;
    const size_t t = find_type(type), i = m->sent;

    if (json_is_string(part)) { /* as vLLM takes it */
        mt_chat_add_text(chat, m, mt_chat_text_of(part));
        return true;
    }
    if (!json_is_object(part))
        return mt_fail(err, MT_E_INVALID, "messages[%zu].content[%zu] is %s; send an object with a type", m->index, i,
                       mt_chat_kind(part));
    if (t == MT_COUNT(part_types))
        return fail_part(m, i, type, err);
    if (part_types[t].kind == PART_IMAGE || part_types[t].kind == PART_VIDEO) {
        mt_chat_add_medium(chat, m, part_types[t].kind == PART_IMAGE ? MT_CHAT_IMAGE : MT_CHAT_VIDEO, part,
                           mt_arena_printf(chat->arena, "messages[%zu].content[%zu]", m->index, i));
        return true;
    }
    if (part_types[t].kind == PART_FILE) {
        mt_chat_add_document(chat, m, part, mt_arena_printf(chat->arena, "messages[%zu].content[%zu]", m->index, i));
        return true;
    }
    text = json_object_get(part, part_types[t].field);
    if (!json_is_string(text))
        return mt_fail(err, MT_E_INVALID, "the %s of messages[%zu].content[%zu] is %s; send a string",
                       part_types[t].field, m->index, i, mt_chat_kind(text));
    (part_types[t].kind == PART_TEXT ? mt_chat_add_text : mt_chat_add_reasoning)(chat, m, mt_chat_text_of(text));
    return true;
}

static bool read_content(mt_chat *chat, const json_t *content, mt_chat_message *out, mt_error *err)
{
    if (!content || json_is_string(content)) { /* null counts as the empty string */
        mt_chat_add_text(chat, out, content ? mt_chat_text_of(content) : (mt_chat_text){.data = ""});
        return true;
    }
    if (!json_is_array(content))
        return mt_fail(err, MT_E_INVALID, "the content of messages[%zu] is %s; send a string or a list of parts",
                       out->index, mt_chat_kind(content));
    out->list = true;
    for (size_t i = 0; i < json_array_size(content); i++)
        if (!read_part(chat, out, json_array_get(content, i), err))
            return false;
    return true;
}

static void drop(void *json)
{
    json_decref(json);
}

/* The arguments of a call of a custom tool, whose input is text: {"input": text}, as the model wrote them. NULL: the
   arena is full. */
static const json_t *custom_arguments(mt_chat *chat, const json_t *input)
{
    json_t *made = json_pack("{s:O}", "input", input);

    if (made && mt_arena_defer(chat->arena, drop, made))
        return made;
    json_decref(made);
    chat->starved = true;
    return NULL;
}

static bool read_call(mt_chat *chat, mt_chat_message *m, const json_t *call, mt_error *err)
{
    const json_t *custom = get(call, "custom"), *input = json_object_get(custom, "input");
    const json_t *function = json_object_get(call, "function"), *id = get(call, "id"), *name;
    const size_t i = m->call_count;

    if (!json_is_object(call))
        return mt_fail(err, MT_E_INVALID, "messages[%zu].tool_calls[%zu] is %s; send an object with a function",
                       m->index, i, mt_chat_kind(call));
    if (custom && !json_is_string(input))
        return mt_fail(err, MT_E_INVALID, "the input of messages[%zu].tool_calls[%zu].custom is %s; send a string",
                       m->index, i, mt_chat_kind(input));
    if (!function)
        function = custom ? custom : call; /* some clients leave the wrapper out */
    name = json_object_get(function, "name");
    if (!json_is_string(name))
        return mt_fail(err, MT_E_INVALID, "the name of messages[%zu].tool_calls[%zu].function is %s; send a string",
                       m->index, i, mt_chat_kind(name));
    if (id && !json_is_string(id))
        return mt_fail(err, MT_E_INVALID, "the id of messages[%zu].tool_calls[%zu] is %s; send a string", m->index, i,
                       mt_chat_kind(id));
    mt_chat_add_call(chat, m,
                     (mt_chat_call){.id = mt_chat_text_of(id),
                                    .name = mt_chat_text_of(name),
                                    .arguments = custom ? custom_arguments(chat, input) : get(function, "arguments")});
    return true;
}

/* "function_call", OpenAI's older form: one call without an id; it gets one. */
static bool read_function_call(mt_chat *chat, const json_t *call, mt_chat_message *out, mt_error *err)
{
    const char *id = mt_arena_printf(chat->arena, "call_%zu", out->index);

    chat->starved = chat->starved || !id;
    if (!read_call(chat, out, call, err))
        return false;
    if (id && out->call_count)
        out->calls[0].id = (mt_chat_text){.data = id, .len = strlen(id)};
    return true;
}

/* The id of the latest call, which a message of the older role "function" answers. */
static mt_chat_text last_id(const mt_chat *chat)
{
    for (size_t i = chat->count; i-- > 0;)
        if (chat->messages[i].call_count)
            return chat->messages[i].calls[chat->messages[i].call_count - 1].id;
    return (mt_chat_text){.data = NULL};
}

static bool read_calls(mt_chat *chat, const json_t *message, mt_chat_message *out, mt_error *err)
{
    const json_t *calls = get(message, "tool_calls");
    size_t count = json_array_size(calls);

    if (calls && !json_is_array(calls))
        return mt_fail(err, MT_E_INVALID, "the tool_calls of messages[%zu] are %s; send a list", out->index,
                       mt_chat_kind(calls));
    if (count > 0 && out->role != MT_CHAT_ASSISTANT)
        return mt_fail(err, MT_E_INVALID,
                       "messages[%zu] has tool_calls, but its role is %s; only the assistant calls tools", out->index,
                       mt_chat_role_name(out->role));
    if (count == 0 && get(message, "function_call") && out->role == MT_CHAT_ASSISTANT)
        return read_function_call(chat, get(message, "function_call"), out, err);
    for (size_t i = 0; i < count; i++)
        if (!read_call(chat, out, json_array_get(calls, i), err))
            return false;
    return true;
}

/* Reads a string that may be missing or null. */
static bool read_string(const json_t *message, const char *key, size_t index, mt_chat_text *out, mt_error *err)
{
    const json_t *value = get(message, key);

    *out = mt_chat_text_of(value);
    return !value || json_is_string(value) ||
           mt_fail(err, MT_E_INVALID, "the %s of messages[%zu] is %s; send a string", key, index, mt_chat_kind(value));
}

bool mt_chat_read_message(mt_chat *chat, const json_t *message, const char *role, mt_chat_message *out, mt_error *err)
{
    static const char *const reasoning_names[] = {"reasoning_content", "reasoning", "thinking"};
    const char *said = mt_json_word(json_object_get(message, "role"));

    *out = (mt_chat_message){.index = chat->count};
    if (!json_is_object(message))
        return mt_fail(err, MT_E_INVALID, "messages[%zu] is %s; send an object with a role and content", out->index,
                       mt_chat_kind(message));
    if (!read_role(message, role, out, err) || !read_content(chat, get(message, "content"), out, err) ||
        !read_calls(chat, message, out, err) || !read_string(message, "tool_call_id", out->index, &out->call_id, err) ||
        !read_string(message, "name", out->index, &out->name, err))
        return false;
    if (!out->call_id.data && strcmp(role ? role : said, "function") == 0)
        out->call_id = last_id(chat);
    for (size_t i = 0; out->reasoning.len == 0 && i < MT_COUNT(reasoning_names); i++)
        out->reasoning = mt_chat_text_of(json_object_get(message, reasoning_names[i]));
    return true;
}

/* Whether the answer is to continue the message m: "prefix", as Mistral and DeepSeek call it, or "partial", as Moonshot
   and Alibaba do. last: m is the last message. */
static bool read_prefix(mt_chat *chat, const json_t *message, const mt_chat_message *m, bool last, mt_error *err)
{
    static const char *const names[] = {"prefix", "partial"};

    for (size_t i = 0; i < MT_COUNT(names); i++) {
        const json_t *value = get(message, names[i]);

        if (value && !json_is_boolean(value))
            return mt_fail(err, MT_E_INVALID, "the %s of messages[%zu] is %s; send true or false", names[i], m->index,
                           mt_chat_kind(value));
        if (!json_is_true(value))
            continue;
        if (!last || m->role != MT_CHAT_ASSISTANT || m->call_count)
            return mt_fail(err, MT_E_INVALID,
                           "the %s of messages[%zu] is true, but only the last message can be continued, and only "
                           "text of the assistant's; leave it out",
                           names[i], m->index);
        chat->continues = true;
    }
    return true;
}

/* Only the assistant may say nothing, as beside calls, and a tool may have nothing to tell. */
static bool check_content(const json_t *message, const mt_chat_message *m, mt_error *err)
{
    return get(message, "content") || m->role == MT_CHAT_ASSISTANT || m->role == MT_CHAT_TOOL ||
           mt_fail(err, MT_E_INVALID, "messages[%zu] is the %s's and has no content; send a string or a list of parts",
                   m->index, mt_chat_role_name(m->role));
}

static bool read_messages(mt_chat *chat, const json_t *messages, mt_error *err)
{
    const size_t count = json_array_size(messages);

    mt_chat_message message;

    if (!json_is_array(messages))
        return mt_fail(err, MT_E_INVALID, "messages is %s; send a list of messages", mt_chat_kind(messages));
    for (size_t i = 0; i < count; i++) {
        const json_t *sent = json_array_get(messages, i);

        if (!mt_chat_read_message(chat, sent, NULL, &message, err) || !check_content(sent, &message, err) ||
            !read_prefix(chat, sent, &message, i + 1 == count, err))
            return false;
        mt_chat_put(chat, &message);
    }
    return mt_chat_end(chat, err);
}

/* Some clients leave the wrapper "function" out. */
static bool has_name(const json_t *tool)
{
    const json_t *function = get(tool, "function");

    return json_string_length(json_object_get(function ? function : tool, "name")) > 0;
}

static bool check_tools(const json_t *tools, mt_error *err)
{
    if (!json_is_array(tools))
        return mt_fail(err, MT_E_INVALID, "tools is %s; send a list of objects", mt_chat_kind(tools));
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const char *type = json_string_value(json_object_get(json_array_get(tools, i), "type"));

        if (!json_is_object(json_array_get(tools, i)))
            return mt_fail(err, MT_E_INVALID, "tools[%zu] is %s; send an object", i,
                           mt_chat_kind(json_array_get(tools, i)));
        if (type && strcmp(type, "function") != 0)
            return mt_fail(err, MT_E_INVALID, "tools[%zu] is of type \"%.60s\", which is not supported; send functions",
                           i, type);
        if (!has_name(json_array_get(tools, i)))
            return mt_fail(err, MT_E_INVALID, "the function of tools[%zu] has no name; send a string that is not empty",
                           i);
    }
    return true;
}

bool mt_chat_read_tools(mt_chat *chat, const json_t *tools, mt_error *err)
{
    if (tools && !json_is_null(tools) && !check_tools(tools, err))
        return mt_fail_about(err, "tools");
    chat->tools = json_array_size(tools) ? tools : NULL;
    return true;
}

/* Whether the model is to think: by enable_thinking, by {"type": "enabled"}, by what "reasoning" says beside an effort,
   or by the effort. NULL: the request does not say. */
static const json_t *thinking_of(const json_t *request, const json_t *effort)
{
    const json_t *thinking = get(request, "enable_thinking");
    const char *type = json_string_value(json_object_get(get(request, "thinking"), "type"));
    const json_t *reasoning = get(request, "reasoning"), *enabled = get(reasoning, "enabled");
    const char *word = json_string_value(effort);

    if (thinking || !(type || word || enabled || get(reasoning, "max_tokens")))
        return thinking;
    if (!type && (enabled || !word))
        return json_boolean(!json_is_false(enabled));
    return type ? json_boolean(strcmp(type, "disabled") != 0) : json_boolean(strcmp(word, "none") != 0);
}

static bool read_kwargs(mt_chat *chat, const json_t *request, mt_error *err)
{
    /* special tokens count as trusted text, so clients must not set them */
    static const char *const reserved[] = {"messages",      "tools",      "add_generation_prompt",
                                           "chat_template", "bos_token",  "eos_token",
                                           "unk_token",     "pad_token",  "sep_token",
                                           "cls_token",     "mask_token", "additional_special_tokens"};

    chat->kwargs = get(request, "chat_template_kwargs");
    if (chat->kwargs && !json_is_object(chat->kwargs))
        return mt_fail(err, MT_E_INVALID, "chat_template_kwargs is %s; send an object", mt_chat_kind(chat->kwargs));
    for (size_t i = 0; i < MT_COUNT(reserved); i++)
        if (json_object_get(chat->kwargs, reserved[i]))
            return mt_fail(err, MT_E_INVALID,
                           "chat_template_kwargs cannot set \"%s\", which comes from the request itself or from the "
                           "model; leave it out",
                           reserved[i]);
    chat->documents = get(request, "documents");
    chat->effort = chat->effort ? chat->effort : get(request, "reasoning_effort");
    chat->effort = chat->effort ? chat->effort : get(get(request, "reasoning"), "effort");
    chat->budget = chat->budget ? chat->budget : get(request, "thinking_budget");
    chat->thinking = chat->thinking ? chat->thinking : thinking_of(request, chat->effort);
    return true;
}

bool mt_chat_read_settings(mt_chat *chat, const json_t *request, mt_error *err)
{
    return (read_kwargs(chat, request, err) || mt_fail_about(err, "chat_template_kwargs")) &&
           (mt_chat_ending_read(chat, request, err) || mt_fail_about(err, "continue_final_message"));
}

bool mt_chat_read(mt_chat *chat, mt_arena *arena, const json_t *request, mt_error *err)
{
    mt_chat_begin(chat, arena, "messages");
    if (!json_is_object(request))
        return mt_fail(err, MT_E_INVALID, "the request is %s; send an object with messages", mt_chat_kind(request));
    return (read_messages(chat, get(request, "messages"), err) || mt_fail_about(err, "messages")) &&
           mt_chat_read_tools(chat, get(request, "tools"), err) && mt_chat_read_settings(chat, request, err);
}
