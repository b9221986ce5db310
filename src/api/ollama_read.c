/* Reads Ollama's chats and prompts. Messages are as OpenAI's, except that pictures stand beside the text, and tool
   results name the tool instead of the call. A prompt becomes a chat with one message. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/fields.h"
#include "api/json_body.h"
#include "api/ollama.h"
#include "api/openai_prompt.h"
#include "base/json_tree.h"

/* The messages while they are read. */
typedef struct reader {
    mt_ask *ask;
    mt_body_calls calls; /* of the last message that has some */
    size_t at;           /* number of the message */
    mt_failure *why;
} reader;

/* A part for a picture that comes as bare base64, or as a data URL. */
static json_t *image_part(const json_t *image)
{
    static const char url[] = "data:";

    if (strncmp(json_string_value(image), url, sizeof(url) - 1) == 0)
        return mt_body_image_part(image);
    return json_pack("{s:s, s:{s:s, s:s, s:O}}", "type", "image", "source", "type", "base64", "media_type", "image/*",
                     "data", image);
}

/* Adds pictures, and the text after them, as Ollama shows them to its models. place: the field's name, for errors. */
static bool add_content(mt_ask *ask, mt_chat_message *to, const json_t *images, const json_t *text, const char *place,
                        mt_failure *why)
{
    to->list = true;
    for (size_t i = 0; i < json_array_size(images); i++) {
        const json_t *image = json_array_get(images, i);

        if (!json_is_string(image))
            return mt_failure_field(why, "invalid_type", place, "has %s in it: send pictures as base64",
                                    mt_json_kind(image));
        mt_chat_add_medium(&ask->chat, to, MT_CHAT_IMAGE, mt_ask_own(ask, image_part(image)),
                           mt_arena_printf(ask->arena, "%s[%zu]", place, i));
    }
    if (json_string_length(text))
        mt_chat_add_text(&ask->chat, to, mt_chat_text_of(text));
    return true;
}

static bool are_images(const json_t *images, const char *place, mt_failure *why)
{
    return !images || json_is_array(images) || mt_failure_type(why, place, images, "a list of pictures");
}

static bool add_images(reader *r, mt_chat_message *to, const json_t *message)
{
    const json_t *images = mt_body_get(message, "images"), *text = mt_body_get(message, "content");
    char place[MT_FAILURE_PARAM];

    snprintf(place, sizeof(place), "messages[%zu].images", r->at);
    if (!are_images(images, place, r->why))
        return false;
    if (json_array_size(images) == 0 || (text && !json_is_string(text)))
        return true;
    to->parts = NULL; /* replaces the text alone */
    to->part_count = to->sent = 0;
    return add_content(r->ask, to, images, text, place, r->why);
}

/* The role in lower case, as Ollama accepts any; NULL: it is no role. */
static const char *lower_role(const json_t *message, char lower[16])
{
    const char *role = mt_json_word(json_object_get(message, "role"));
    size_t i = 0;

    for (; role && i + 1 < 16 && role[i]; i++)
        lower[i] = (char)tolower((unsigned char)role[i]);
    lower[i] = '\0';
    return role && !role[i] ? lower : NULL;
}

static bool add_message(reader *r, const json_t *sent)
{
    const json_t *tool = mt_body_get(sent, "tool_name");
    mt_chat_message message;
    mt_error err = {0};
    char lower[16];

    if (!mt_chat_read_message(&r->ask->chat, sent, lower_role(sent, lower), &message, &err))
        return mt_failure_from(r->why, &err, "messages");
    if (tool && !json_is_string(tool))
        return mt_failure_set(r->why, 400, NULL, "messages", "the name of messages[%zu] is %s; send a string", r->at,
                              mt_chat_kind(tool));
    if (json_is_array(json_object_get(sent, "tool_calls")))
        mt_body_open_calls(r->ask, &r->calls, &message, r->at);
    else if (message.role == MT_CHAT_TOOL)
        mt_body_close_call(&r->calls, &message, mt_chat_text_of(tool));
    if (!add_images(r, &message, sent))
        return false;
    mt_chat_put(&r->ask->chat, &message);
    return true;
}

/* Where the last message is the assistant's, the answer continues it, unless it has to have a format. */
static void set_continues(mt_ask *ask)
{
    const mt_chat_message *last = ask->chat.count ? &ask->chat.messages[ask->chat.count - 1] : NULL;

    ask->chat.continues = last && last->role == MT_CHAT_ASSISTANT && !last->list && last->part_count &&
                          last->parts[0].text.len && !last->call_count && ask->source.kind == MT_SOURCE_NONE;
}

static void note_inside(mt_ask *ask, const json_t *messages)
{
    static const char *const members[] = {"content",           "images",    "name",     "reasoning",
                                          "reasoning_content", "role",      "thinking", "tool_call_id",
                                          "tool_calls",        "tool_name", NULL};

    mt_body_note(ask, "messages", messages, members, mt_body_part_members);
}

static bool add_messages(mt_ask *ask, const json_t *sent, mt_failure *why)
{
    reader r = {.ask = ask, .why = why};

    if (!json_is_array(sent))
        return mt_failure_set(why, 400, NULL, "messages", "messages is %s; send a list of messages",
                              mt_chat_kind(sent));
    for (; r.at < json_array_size(sent); r.at++)
        if (!add_message(&r, json_array_get(sent, r.at)))
            return false;
    note_inside(ask, sent);
    return true;
}

/* Only the prompt is wanted, as the template writes it. */
static bool read_renders(mt_ask *ask, mt_failure *why)
{
    const json_t *given = mt_body_get(ask->body, "_debug_render_only");

    ask->renders = json_is_true(given);
    return !given || json_is_boolean(given) || mt_failure_type(why, "_debug_render_only", given, "true or false");
}

/* Where the chat is too long, its oldest messages are left out, unless "truncate" is false. */
static bool read_truncate(mt_ask *ask, mt_failure *why)
{
    const json_t *truncate = mt_body_get(ask->body, "truncate");

    ask->forgets = !json_is_false(truncate);
    return !truncate || json_is_boolean(truncate) || mt_failure_type(why, "truncate", truncate, "true or false");
}

/* Nothing more is read from the body: a field that Ollama does not have, such as "chat_template", means nothing. */
static void leave_body(mt_ask *ask)
{
    ask->body = mt_ask_own(ask, json_object());
}

static bool read_chat(mt_ask *ask, mt_failure *why)
{
    const json_t *sent = ask->body;
    mt_error err = {0};

    mt_chat_begin(&ask->chat, ask->arena, "messages");
    ask->is_chat = true;
    if (!read_renders(ask, why) || !read_truncate(ask, why) || !mt_ollama_settings(ask, why) ||
        !add_messages(ask, json_object_get(sent, "messages"), why))
        return false;
    if (!mt_chat_read_tools(&ask->chat, json_object_get(sent, "tools"), &err))
        return mt_failure_from(why, &err, "tools");
    set_continues(ask);
    leave_body(ask);
    return mt_body_end(ask, why);
}

/* Ends what mt_json_guard_begin began. Returns ok, or false with *why. */
static bool end_guard(bool ok, mt_failure *why)
{
    return mt_json_guard_end() ? ok : mt_failure_memory(why, NULL);
}

/* A request without messages only loads its model. */
static bool set_nothing(mt_ask *ask, mt_failure *why)
{
    static const mt_field rows[] = {MT_FIELD_STRING_ROW("model", model)};

    ask->nothing = "load";
    return mt_ollama_keep(ask, why) && mt_fields_read_table(ask, &(mt_field_table){rows, MT_COUNT(rows)}, why);
}

bool mt_ollama_read_chat(mt_ask *ask, mt_failure *why)
{
    static const char *const names[] = {
        "_debug_render_only", "model",    "messages",     "tools", "stream",     "format",  "options", "think",
        "truncate",           "logprobs", "top_logprobs", "shift", "keep_alive", "timeout", NULL};
    const json_t *messages = mt_body_get(ask->body, "messages");

    mt_ollama_begin(ask, names);
    if (!messages || (json_is_array(messages) && json_array_size(messages) == 0))
        return set_nothing(ask, why);
    mt_json_guard_begin();
    return end_guard(read_chat(ask, why), why);
}

static bool refuse(const json_t *body, const char *name, const char *sentence, mt_failure *why)
{
    const json_t *value = mt_body_get(body, name);

    return !value || json_string_length(value) == 0 || mt_failure_unsupported(why, name, "%s", sentence);
}

/* Reads "context", the tokens of an earlier conversation. */
static bool read_context(mt_ask *ask, mt_failure *why)
{
    const json_t *context = mt_body_get(ask->body, "context");
    mt_ask_prompt ids;

    if (!context)
        return true;
    if (!json_is_array(context))
        return mt_failure_type(why, "context", context, "a list of token ids");
    if (!mt_openai_ids_read(ask->arena, "context", context, &ids, why))
        return false;
    ask->before = ids.ids;
    ask->before_count = ids.count;
    return true;
}

/* Refuses fields of /api/generate that are not supported. */
static bool refuse_others(const json_t *body, mt_failure *why)
{
    return refuse(body, "template", "is not supported, as it is not Jinja: leave it out, or send \"raw\" as true", why);
}

/* "raw": the prompt is completed as it is, without a template. So is one with a suffix. */
static bool read_raw(mt_ask *ask, mt_failure *why)
{
    const json_t *body = ask->body;
    bool ok;

    if (!refuse(body, "system", "is not taken with \"raw\" or \"suffix\": leave it out", why))
        return false;
    if (json_array_size(json_object_get(body, "context")))
        return mt_failure_unsupported(why, "context", "is not taken with \"raw\" or \"suffix\": leave one of them out");
    if (json_array_size(json_object_get(body, "images")))
        return mt_failure_unsupported(why, "images", "are not taken with \"raw\" or \"suffix\": leave one of them out");
    mt_json_guard_begin();
    ok = mt_ollama_settings(ask, why) && mt_openai_prompts_read(ask, "prompt", json_object_get(body, "prompt"), why) &&
         mt_openai_suffix_read(ask, mt_body_get(body, "suffix"), why);
    leave_body(ask);
    return end_guard(ok, why);
}

static bool read_prompt(mt_ask *ask, mt_failure *why)
{
    const json_t *system = mt_body_get(ask->body, "system"), *prompt = mt_body_get(ask->body, "prompt");
    const json_t *images = mt_body_get(ask->body, "images");
    mt_chat_message first = {.role = MT_CHAT_SYSTEM}, second = {.role = MT_CHAT_USER};

    mt_chat_begin(&ask->chat, ask->arena, "prompt");
    /* Tokens of pictures mean nothing without these */
    ask->form.context = json_array_size(images) == 0;
    if (!ask->form.context && json_array_size(json_object_get(ask->body, "context")))
        return mt_failure_unsupported(why, "context", "is not taken with \"images\": send them to /api/chat");
    ask->is_chat = true;
    if (!read_context(ask, why) || !mt_ollama_settings(ask, why))
        return false;
    if (system && !json_is_string(system))
        return mt_failure_type(why, "system", system, "a string");
    if (!are_images(images, "images", why) ||
        (json_array_size(images) && !add_content(ask, &second, images, prompt, "images", why)))
        return false;
    if (json_array_size(images) == 0)
        mt_chat_add_text(&ask->chat, &second, mt_chat_text_of(prompt));
    if (json_string_length(system)) {
        mt_chat_add_text(&ask->chat, &first, mt_chat_text_of(system));
        mt_chat_put(&ask->chat, &first);
    }
    mt_chat_put(&ask->chat, &second);
    leave_body(ask);
    return mt_body_end(ask, why);
}

bool mt_ollama_read_generate(mt_ask *ask, mt_failure *why)
{
    static const char *const names[] = {"_debug_render_only",
                                        "model",
                                        "prompt",
                                        "suffix",
                                        "images",
                                        "format",
                                        "options",
                                        "system",
                                        "raw",
                                        "stream",
                                        "template",
                                        "context",
                                        "keep_alive",
                                        "think",
                                        "shift",
                                        "logprobs",
                                        "truncate",
                                        "top_logprobs",
                                        "timeout",
                                        NULL};
    const json_t *prompt = mt_body_get(ask->body, "prompt"), *raw = mt_body_get(ask->body, "raw");
    const json_t *suffix = mt_body_get(ask->body, "suffix");

    mt_ollama_begin(ask, names);
    if (suffix && !json_is_string(suffix))
        return mt_failure_type(why, "suffix", suffix, "a string");
    if (prompt && !json_is_string(prompt))
        return mt_failure_type(why, "prompt", prompt, "a string");
    if (raw && !json_is_boolean(raw))
        return mt_failure_type(why, "raw", raw, "true or false");
    if (json_string_length(prompt) == 0)
        return set_nothing(ask, why);
    if (!refuse_others(ask->body, why) || !read_renders(ask, why))
        return false;
    if (json_is_true(raw) || json_string_length(suffix))
        return read_raw(ask, why);
    mt_json_guard_begin();
    return end_guard(read_prompt(ask, why), why);
}
