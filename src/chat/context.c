#include "chat/context.h"

#include <ctype.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json_tree.h"

/* Roles and types are written here, and are of a known set; special tokens come from the checkpoint. */
const char *const mt_chat_trusted[] = {"messages.*.role",
                                       "messages.*.content.*.type",
                                       "messages.*.tool_calls.*.type",
                                       "bos_token",
                                       "eos_token",
                                       "unk_token",
                                       "pad_token",
                                       "sep_token",
                                       "cls_token",
                                       "mask_token",
                                       "additional_special_tokens.*"};
const size_t mt_chat_trusted_count = MT_COUNT(mt_chat_trusted);

enum { SHORT_ID = 9 };

typedef struct maker {
    const mt_chat *chat;
    const mt_chat_profile *profile;
    const mt_chat_marks *marks;
    mt_chat_context *out;
    mt_template *to_json; /* {{ value|tojson }}, made when it is needed */
    mt_error *err;
} maker;

static json_t *string_of(mt_chat_text text)
{
    return json_stringn_nocheck(text.data ? text.data : "", text.len);
}

static json_t *share(const json_t *json)
{
    return json_incref((json_t *)(uintptr_t)json);
}

const char *mt_chat_media_name(mt_chat_part_type type)
{
    return type == MT_CHAT_IMAGE ? "images" : "videos";
}

static void add_media(maker *m, const mt_chat_part *part)
{
    m->out->media[m->out->media_count++] =
        (mt_chat_media){.type = part->type, .source = part->source, .message = part->message, .part = part->index};
}

static bool has_reasoning_part(const maker *m, const mt_chat_message *message)
{
    return m->profile->reasoning_as_part && message->role == MT_CHAT_ASSISTANT && message->reasoning.len > 0;
}

/* Content as a list of parts. */
static json_t *parts_content(maker *m, const mt_chat_message *message)
{
    json_t *list = json_array();

    if (has_reasoning_part(m, message))
        json_array_append_new(list,
                              json_pack("{s:s, s:o}", "type", "thinking", "thinking", string_of(message->reasoning)));
    for (size_t i = 0; i < message->part_count; i++) {
        const mt_chat_part *part = &message->parts[i];

        if (part->type == MT_CHAT_TEXT) {
            json_array_append_new(list, json_pack("{s:s, s:o}", "type", "text", "text", string_of(part->text)));
            continue;
        }
        json_array_append_new(list, mt_chat_shape_part(m->profile->shape[part->type], part->type));
        add_media(m, part);
    }
    return list;
}

/* Content as a string: texts with a line break between them, and markers for everything else. */
static json_t *string_content(maker *m, const mt_chat_message *message)
{
    const size_t first = m->out->trusted_count;
    mt_buf text;
    json_t *string;

    if (message->part_count == 1 && message->parts[0].type == MT_CHAT_TEXT)
        return string_of(message->parts[0].text);
    mt_buf_init(&text, SIZE_MAX / 2);
    for (size_t i = 0; i < message->part_count; i++) {
        const mt_chat_part *part = &message->parts[i];

        if (part->type == MT_CHAT_TEXT) {
            if (i > 0 && message->parts[i - 1].type == MT_CHAT_TEXT)
                mt_buf_puts(&text, "\n");
            mt_buf_add(&text, part->text.data, part->text.len);
            continue;
        }
        m->out->trusted[m->out->trusted_count].bytes.begin = text.len;
        mt_buf_puts(&text, m->marks->of[part->type].marker);
        m->out->trusted[m->out->trusted_count++].bytes.end = text.len;
        add_media(m, part);
    }
    string = json_stringn_nocheck(text.data ? text.data : "", text.len);
    for (size_t i = first; i < m->out->trusted_count; i++)
        m->out->trusted[i].string = string;
    mt_buf_free(&text);
    return string;
}

/* Whether a part has a place in the template: among parts, or as a marker in a string. */
static bool has_place(const maker *m, const mt_chat_message *message, mt_chat_part_type type, bool as_parts)
{
    if (as_parts)
        return m->profile->shape[type] != MT_CHAT_SHAPE_NONE;
    return m->marks->of[type].marker && m->profile->content[message->role].string;
}

static json_t *content_of(maker *m, const mt_chat_message *message)
{
    const bool string = m->profile->content[message->role].string, parts = m->profile->content[message->role].parts;
    bool media = false, as_parts;

    for (size_t i = 0; i < message->part_count; i++)
        media = media || message->parts[i].type != MT_CHAT_TEXT;
    as_parts = parts && (message->list || !string || has_reasoning_part(m, message));
    for (size_t i = 0; media && i < message->part_count; i++) {
        mt_chat_part_type type = message->parts[i].type;

        if (type == MT_CHAT_TEXT)
            continue;
        if (as_parts && !has_place(m, message, type, true))
            as_parts = false;
        if (!has_place(m, message, type, as_parts)) {
            mt_fail(m->err, MT_E_INVALID,
                    "messages[%zu] has %s, but the chat template of this model has no place for them in a message of "
                    "role %s; send text only",
                    message->parts[i].message, mt_chat_media_name(type), mt_chat_role_name(message->role));
            return NULL;
        }
    }
    return as_parts ? parts_content(m, message) : string_content(m, message);
}

/* JSON as Python writes it, which is what templates print otherwise. */
static json_t *json_text(maker *m, const json_t *value)
{
    static const char source[] = "{{ value|tojson }}";
    json_t *context = json_pack("{s:O}", "value", value), *string = NULL;
    mt_rendering r = {0};

    if (!m->to_json)
        m->to_json = mt_template_compile(source, sizeof(source) - 1, m->err);
    if (m->to_json && mt_template_render(m->to_json, context, NULL, &r, m->err))
        string = json_stringn_nocheck(r.text.data, r.text.len);
    mt_rendering_free(&r);
    json_decref(context);
    return string;
}

/* Arguments that are no object, such as those of a call that was cut: as the text they are, alone or, where the
   template takes nothing but an object, in one. */
static json_t *broken_arguments(maker *m, const json_t *given)
{
    json_t *text = json_is_string(given) ? share(given) : json_text(m, given);

    return !text || m->profile->broken_as_text ? text : json_pack("{s:o}", MT_CHAT_BROKEN, text);
}

/* An object, where it is one or a string that holds one; or its JSON, where the template wants that. */
static json_t *arguments_of(maker *m, const json_t *given)
{
    json_t *parsed;

    if (m->profile->arguments_as_text) {
        if (!given)
            return json_string("{}");
        return json_is_string(given) ? share(given) : json_text(m, given);
    }
    if (!given)
        return json_object();
    if (!json_is_string(given))
        return json_is_object(given) ? share(given) : broken_arguments(m, given);
    parsed = mt_json_tree_try(json_string_value(given), json_string_length(given));
    if (json_is_object(parsed))
        return parsed;
    json_decref(parsed);
    return json_string_length(given) ? broken_arguments(m, given) : json_object();
}

/* Nine letters and digits made of the whole id, so that the same id gives the same ones in every request. */
static json_t *short_id(const json_t *id)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const char *text = json_string_value(id);
    const size_t len = json_string_length(id);
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    bool fits = len == SHORT_ID;
    char made[SHORT_ID];

    for (size_t i = 0; i < len; i++) {
        fits = fits && (unsigned char)text[i] < 0x80 && isalnum((unsigned char)text[i]);
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    }
    if (fits)
        return share(id);
    for (size_t i = 0; i < SHORT_ID; i++, hash /= sizeof(digits) - 1)
        made[i] = digits[hash % (sizeof(digits) - 1)];
    return json_stringn(made, SHORT_ID);
}

static json_t *id_of(const maker *m, const json_t *id)
{
    return m->profile->short_ids ? short_id(id) : share(id);
}

static bool add_calls(maker *m, const mt_chat_message *message, json_t *object)
{
    json_t *calls = json_array();

    json_object_set_new(object, "tool_calls", calls);
    for (size_t i = 0; i < message->call_count; i++) {
        const mt_chat_call *call = &message->calls[i];
        json_t *arguments = arguments_of(m, call->arguments), *item;

        if (!arguments)
            return false;
        item = json_pack("{s:s, s:{s:O, s:o}}", "type", "function", "function", "name", call->name, "arguments",
                         arguments);
        if (call->id)
            json_object_set_new(item, "id", id_of(m, call->id));
        json_array_append_new(calls, item);
    }
    return true;
}

static bool is_empty(const mt_chat_message *message)
{
    for (size_t i = 0; i < message->part_count; i++)
        if (message->parts[i].type != MT_CHAT_TEXT || message->parts[i].text.len > 0)
            return false;
    return true;
}

static json_t *message_of(maker *m, const mt_chat_message *message)
{
    const bool null = m->profile->call_without_content && message->call_count && is_empty(message);
    json_t *content = null ? json_null() : content_of(m, message), *object;

    if (!content)
        return NULL;
    object = json_pack("{s:s, s:o}", "role", mt_chat_role_name(message->role), "content", content);
    if (message->reasoning.len && !has_reasoning_part(m, message))
        json_object_set_new(object, m->profile->reasoning, string_of(message->reasoning));
    if (message->call_id)
        json_object_set_new(object, "tool_call_id", id_of(m, message->call_id));
    if (message->name)
        json_object_set_new(object, "name", share(message->name));
    if (message->call_count && !add_calls(m, message, object)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static bool add_message(maker *m, const mt_chat_message *message, json_t *list)
{
    json_t *object = message_of(m, message);

    return object && json_array_append_new(list, object) == 0;
}

/* A message with content and calls becomes two where calls are shown only without content. */
static bool add_messages(maker *m, json_t *list)
{
    for (size_t i = 0; i < m->chat->count; i++) {
        mt_chat_message message = m->chat->messages[i];

        if (m->profile->call_without_content && message.call_count && !is_empty(&message)) {
            mt_chat_message words = message;

            words.call_count = 0;
            message.part_count = 0;
            message.reasoning.len = 0;
            if (!add_message(m, &words, list))
                return false;
        }
        if (!add_message(m, &message, list))
            return false;
    }
    return true;
}

/* What the request says about thinking, under the name the template knows it by. */
static void add_kwargs(const maker *m, json_t *variables)
{
    const json_t *thinking = json_object_get(m->chat->kwargs, "enable_thinking");

    if (m->chat->kwargs)
        json_object_update(variables, (json_t *)(uintptr_t)m->chat->kwargs);
    if (thinking && !json_object_get(m->chat->kwargs, m->profile->thinking))
        json_object_set_new(variables, m->profile->thinking, share(thinking));
}

/* Room for every part that is no text, wherever it goes. */
static bool reserve(maker *m)
{
    size_t count = 1;

    for (size_t i = 0; i < m->chat->count; i++)
        for (size_t k = 0; k < m->chat->messages[i].part_count; k++)
            count += m->chat->messages[i].parts[k].type != MT_CHAT_TEXT;
    m->out->trusted = mt_arena_alloc(m->chat->arena, count * sizeof(*m->out->trusted));
    m->out->media = mt_arena_alloc(m->chat->arena, count * sizeof(*m->out->media));
    return (m->out->trusted && m->out->media) ||
           mt_fail(m->err, MT_E_TOO_LARGE, "the messages need more memory than a request may have; send fewer images");
}

bool mt_chat_context_make(mt_chat_context *out, const mt_chat *chat, const mt_chat_profile *profile,
                          const mt_chat_marks *marks, const json_t *tokens, mt_error *err)
{
    maker m = {.chat = chat, .profile = profile, .marks = marks, .out = out, .err = err};
    json_t *messages = json_array();
    bool ok;

    *out = (mt_chat_context){.variables = json_pack("{s:o, s:n, s:n, s:b}", "messages", messages, "tools", "documents",
                                                    "add_generation_prompt", !chat->no_generation_prompt)};
    ok = reserve(&m) && add_messages(&m, messages);
    if (chat->tools)
        json_object_set_new(out->variables, "tools", share(chat->tools));
    if (tokens)
        json_object_update(out->variables, (json_t *)(uintptr_t)tokens);
    add_kwargs(&m, out->variables);
    mt_template_free(m.to_json);
    return ok;
}

void mt_chat_context_free(mt_chat_context *context)
{
    json_decref(context->variables);
    context->variables = NULL;
}
