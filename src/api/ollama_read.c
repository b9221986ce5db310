/* Ollama's chats and prompts as chats of OpenAI's: pictures stand beside the text there, results of tools name the tool
   and not the call, and a prompt is a chat with one message. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/dialect.h"
#include "api/fields.h"
#include "api/json_body.h"
#include "api/ollama.h"

/* Messages on their way: calls that have no result yet, as {"id","name"}, since results may not say whose they are. */
typedef struct reader {
    json_t *messages, *open;
    size_t at;
    mt_failure *why;
} reader;

/* Base64 without a word of what it is: what is decoded tells. */
static json_t *image_part(const json_t *image)
{
    static const char url[] = "data:";

    if (strncmp(json_string_value(image), url, sizeof(url) - 1) == 0)
        return mt_body_image_part(image);
    return json_pack("{s:s, s:{s:s, s:s, s:O}}", "type", "image", "source", "type", "base64", "media_type", "image/*",
                     "data", image);
}

/* Pictures, and the text behind them: as Ollama shows it to its models. place: where they stand. */
static json_t *content_of(const json_t *images, const json_t *text, const char *place, mt_failure *why)
{
    json_t *parts = json_array();

    for (size_t i = 0; i < json_array_size(images); i++) {
        const json_t *image = json_array_get(images, i);

        if (!json_is_string(image)) {
            json_decref(parts);
            mt_failure_set(why, 400, "invalid_type", place, "\"%s\" has %s in it: send pictures as base64", place,
                           mt_json_kind(image));
            return NULL;
        }
        json_array_append_new(parts, image_part(image));
    }
    if (json_string_length(text))
        json_array_append_new(parts, mt_body_text_part(json_string_value(text), json_string_length(text)));
    return parts;
}

static bool are_images(const json_t *images, const char *place, mt_failure *why)
{
    return !images || json_is_array(images) ||
           mt_failure_set(why, 400, "invalid_type", place, "\"%s\" is %s: send a list of pictures", place,
                          mt_json_kind(images));
}

static bool add_images(reader *r, json_t *message)
{
    const json_t *images = mt_body_get(message, "images"), *text = mt_body_get(message, "content");
    char place[MT_FAILURE_PARAM];
    json_t *content;

    snprintf(place, sizeof(place), "messages[%zu].images", r->at);
    if (!are_images(images, place, r->why))
        return false;
    if (json_array_size(images) == 0 || (text && !json_is_string(text)))
        return true;
    content = content_of(images, text, place, r->why);
    return content && json_object_set_new(message, "content", content) == 0;
}

/* Those without an id get one, by which their results are known. */
static void open_calls(reader *r, json_t *message)
{
    const json_t *calls = json_object_get(message, "tool_calls");
    json_t *named = json_array();

    json_array_clear(r->open);
    for (size_t i = 0; i < json_array_size(calls); i++) {
        json_t *call = json_copy(json_array_get(calls, i));
        const json_t *name = json_object_get(json_object_get(call, "function"), "name");

        if (json_is_object(call) && !mt_body_get(call, "id"))
            json_object_set_new(call, "id", json_sprintf("call_%zu_%zu", r->at, i));
        if (json_is_string(json_object_get(call, "id")) && json_is_string(name))
            json_array_append_new(r->open, json_pack("{s:O, s:O}", "id", json_object_get(call, "id"), "name", name));
        json_array_append_new(named, call);
    }
    json_object_set_new(message, "tool_calls", named);
}

/* Of the tool that is named the first call without a result; of none, the first of all. */
static size_t find_call(const reader *r, const json_t *name)
{
    const size_t count = json_array_size(r->open);
    size_t at = 0;

    while (at < count && name && !json_equal(json_object_get(json_array_get(r->open, at), "name"), name))
        at++;
    return at;
}

static void close_call(reader *r, json_t *message)
{
    const json_t *name = mt_body_get(message, "tool_name");
    const size_t at = find_call(r, name);
    const json_t *call = json_array_get(r->open, at);

    if (name)
        json_object_set_new(message, "name", mt_body_share(name));
    if (mt_body_get(message, "tool_call_id") || !call)
        return;
    json_object_set(message, "tool_call_id", json_object_get(call, "id"));
    if (!mt_body_get(message, "name"))
        json_object_set(message, "name", json_object_get(call, "name"));
    json_array_remove(r->open, at);
}

/* Ollama's words for roles may be of any case. */
static const char *lower_role(json_t *message)
{
    const json_t *role = json_object_get(message, "role");
    char lower[16];
    size_t i = 0;

    if (!json_is_string(role))
        return "";
    for (; i + 1 < sizeof(lower) && json_string_value(role)[i]; i++)
        lower[i] = (char)tolower((unsigned char)json_string_value(role)[i]);
    lower[i] = '\0';
    if (strcmp(lower, json_string_value(role)) != 0 && i + 1 < sizeof(lower))
        json_object_set_new(message, "role", json_string(lower));
    return mt_body_text(message, "role");
}

static bool add_message(reader *r, const json_t *sent)
{
    json_t *message = json_is_object(sent) ? json_copy((json_t *)(uintptr_t)sent) : mt_body_share(sent);
    const char *role;

    json_array_append_new(r->messages, message);
    if (!json_is_object(message)) /* who reads the chat says what is wrong with it */
        return true;
    role = lower_role(message);
    if (json_is_array(json_object_get(message, "tool_calls")))
        open_calls(r, message);
    else if (strcmp(role, "tool") == 0)
        close_call(r, message);
    return add_images(r, message);
}

/* A last message of the assistant's is the beginning of the answer, unless that has to have a format. */
static void go_on(json_t *chat)
{
    const json_t *messages = json_object_get(chat, "messages");
    const json_t *last = json_array_get(messages, json_array_size(messages) - 1);

    if (strcmp(mt_body_text(last, "role"), "assistant") == 0 && *mt_body_text(last, "content") &&
        !json_array_size(json_object_get(last, "tool_calls")) && !json_object_get(chat, "response_format"))
        json_object_set_new(chat, "continue_final_message", json_true());
}

static bool add_messages(const json_t *body, json_t *chat, mt_failure *why)
{
    const json_t *sent = json_object_get(body, "messages");
    reader r = {.messages = json_array(), .open = json_array(), .why = why};
    bool ok = true;

    for (r.at = 0; ok && r.at < json_array_size(sent); r.at++)
        ok = add_message(&r, json_array_get(sent, r.at));
    json_object_set_new(chat, "messages", json_is_array(sent) ? json_incref(r.messages) : mt_body_share(sent));
    json_decref(r.messages);
    json_decref(r.open);
    return ok;
}

/* What does not fit loses its beginning, unless that is not wanted. */
static bool read_truncate(mt_ask *ask, mt_failure *why)
{
    const json_t *truncate = mt_body_get(ask->body, "truncate");

    ask->forgets = !json_is_false(truncate);
    return !truncate || json_is_boolean(truncate) ||
           mt_failure_set(why, 400, "invalid_type", "truncate", "\"truncate\" is %s: send true or false",
                          mt_json_kind(truncate));
}

static bool translate_chat(mt_ask *ask, json_t *chat, mt_failure *why)
{
    static const char *const shared[] = {"tools"};

    mt_body_copy(chat, ask->body, shared, MT_COUNT(shared));
    if (!read_truncate(ask, why) || !mt_ollama_settings(ask, chat, true, why) || !add_messages(ask->body, chat, why))
        return false;
    go_on(chat);
    return true;
}

/* The body that an ask is read from instead of the one that came; takes it. */
static bool read_as(mt_ask *ask, json_t *body, bool ok, const mt_dialect *dialect, mt_failure *why)
{
    if (!mt_json_guard_end()) {
        json_decref(body);
        return mt_failure_memory(why, NULL);
    }
    if (!ok) {
        json_decref(body);
        return false;
    }
    ask->owned = body;
    ask->body = body;
    return dialect->read(ask, why) || mt_ollama_rename(why);
}

/* Without anything to answer a model is loaded. */
static bool set_nothing(mt_ask *ask, mt_failure *why)
{
    static const mt_field rows[] = {MT_FIELD_STRING_ROW("model", model)};

    ask->nothing = "load";
    return mt_ollama_keep(ask, why) && mt_fields_read_table(ask, &(mt_field_table){rows, MT_COUNT(rows)}, why);
}

bool mt_ollama_read_chat(mt_ask *ask, mt_failure *why)
{
    static const char *const names[] = {"model",   "messages",   "tools",    "stream",   "format",
                                        "options", "think",      "truncate", "logprobs", "top_logprobs",
                                        "shift",   "keep_alive", "timeout"};
    const json_t *messages = mt_body_get(ask->body, "messages");
    json_t *chat;
    bool ok;

    mt_ollama_begin(ask, names, MT_COUNT(names));
    if (!messages || (json_is_array(messages) && json_array_size(messages) == 0))
        return set_nothing(ask, why);
    mt_json_guard_begin();
    chat = json_object();
    ok = translate_chat(ask, chat, why);
    return read_as(ask, chat, ok, &mt_openai_chat, why);
}

static bool refuse(const json_t *body, const char *name, const char *sentence, mt_failure *why)
{
    const json_t *value = mt_body_get(body, name);

    return !value || json_string_length(value) == 0 ||
           mt_failure_set(why, 400, "unsupported_value", name, "\"%s\" %s", name, sentence);
}

/* What Ollama takes with prompts and this server does not. */
static bool refuse_others(const json_t *body, mt_failure *why)
{
    const json_t *context = mt_body_get(body, "context");

    if (context && !(json_is_array(context) && json_array_size(context) == 0))
        return mt_failure_set(why, 400, "unsupported_value", "context",
                              "\"context\" is not taken: send what was said before to /api/chat");
    return refuse(body, "suffix", "is not supported by this model: leave it out", why) &&
           refuse(body, "template", "is not supported, as it is not Jinja: leave it out, or send \"raw\" as true", why);
}

/* The prompt as it is, which the model goes on with. */
static bool read_raw(mt_ask *ask, mt_failure *why)
{
    const int64_t most = ask->default_max_tokens;
    json_t *body;
    bool ok;

    if (!refuse(ask->body, "system", "is not taken with \"raw\": leave it out", why))
        return false;
    if (json_array_size(json_object_get(ask->body, "images")))
        return mt_failure_set(why, 400, "unsupported_value", "images",
                              "\"images\" are not taken with \"raw\": leave one of them out");
    mt_json_guard_begin();
    body = json_object();
    ok = mt_ollama_settings(ask, body, false, why);
    json_object_set_new(body, "prompt", mt_body_share(json_object_get(ask->body, "prompt")));
    ok = read_as(ask, body, ok, &mt_openai_completions, why);
    ask->default_max_tokens = most; /* OpenAI's 16 are none of Ollama's */
    return ok;
}

static bool translate_prompt(mt_ask *ask, json_t *chat, mt_failure *why)
{
    const json_t *system = mt_body_get(ask->body, "system"), *prompt = mt_body_get(ask->body, "prompt");
    const json_t *images = mt_body_get(ask->body, "images");
    json_t *messages = json_array(), *content;

    json_object_set_new(chat, "messages", messages);
    if (!mt_ollama_settings(ask, chat, true, why))
        return false;
    if (system && !json_is_string(system))
        return mt_failure_set(why, 400, "invalid_type", "system", "\"system\" is %s: send a string",
                              mt_json_kind(system));
    if (!are_images(images, "images", why))
        return false;
    if (json_string_length(system))
        mt_body_message(messages, "system", mt_body_share(system));
    content = json_array_size(images) ? content_of(images, prompt, "images", why) : mt_body_share(prompt);
    return content && mt_body_message(messages, "user", content);
}

bool mt_ollama_read_generate(mt_ask *ask, mt_failure *why)
{
    static const char *const names[] = {"model",  "prompt", "suffix",   "images",   "format",       "options",
                                        "system", "raw",    "stream",   "template", "context",      "keep_alive",
                                        "think",  "shift",  "logprobs", "truncate", "top_logprobs", "timeout"};
    const json_t *prompt = mt_body_get(ask->body, "prompt"), *raw = mt_body_get(ask->body, "raw");
    json_t *chat;
    bool ok;

    mt_ollama_begin(ask, names, MT_COUNT(names));
    if (prompt && !json_is_string(prompt))
        return mt_failure_set(why, 400, "invalid_type", "prompt", "\"prompt\" is %s: send a string",
                              mt_json_kind(prompt));
    if (raw && !json_is_boolean(raw))
        return mt_failure_set(why, 400, "invalid_type", "raw", "\"raw\" is %s: send true or false", mt_json_kind(raw));
    if (json_string_length(prompt) == 0)
        return set_nothing(ask, why);
    if (!refuse_others(ask->body, why))
        return false;
    if (json_is_true(raw))
        return read_raw(ask, why);
    mt_json_guard_begin();
    chat = json_object();
    ok = translate_prompt(ask, chat, why);
    return read_as(ask, chat, ok, &mt_openai_chat, why);
}
