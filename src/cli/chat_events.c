/* See chat_events.h. The functions that return bool are false where the answer exceeds a limit. */
#include "cli/chat_events.h"

#include <stdio.h>
#include <string.h>

void mt_chat_answer_free(mt_chat_answer *a)
{
    mt_buf_free(&a->text);
    mt_buf_free(&a->reasoning);
    json_decref(a->calls);
    a->calls = NULL;
}

void mt_chat_events_init(mt_chat_events *e, mt_chat_answer *answer)
{
    *e = (mt_chat_events){.answer = answer};
    mt_buf_init(&e->line, MT_CHAT_EVENT_BYTES);
    mt_buf_init(&e->error, MT_CHAT_EVENT_BYTES);
    mt_buf_init(&answer->text, MT_CHAT_ANSWER_BYTES);
    mt_buf_init(&answer->reasoning, MT_CHAT_ANSWER_BYTES);
    answer->prompt = answer->tokens = answer->cached = -1;
}

void mt_chat_events_free(mt_chat_events *e)
{
    mt_buf_free(&e->line);
    mt_buf_free(&e->error);
}

static const char *text_of(const json_t *delta, const char *key)
{
    const char *text = json_string_value(json_object_get(delta, key));

    return text && *text ? text : NULL;
}

static void read_usage(mt_chat_answer *a, const json_t *usage)
{
    if (!json_is_object(usage))
        return;
    a->prompt = (long)json_integer_value(json_object_get(usage, "prompt_tokens"));
    a->tokens = (long)json_integer_value(json_object_get(usage, "completion_tokens"));
    const json_t *cached = json_object_get(json_object_get(usage, "prompt_tokens_details"), "cached_tokens");
    if (json_is_integer(cached))
        a->cached = (long)json_integer_value(cached);
}

/* Appends to the arguments of a tool call, which are a string. */
static bool extend(json_t *function, const char *more)
{
    mt_buf all;
    bool ok;

    mt_buf_init(&all, MT_CHAT_CALL_BYTES);
    ok = mt_buf_puts(&all, json_string_value(json_object_get(function, "arguments"))) && mt_buf_puts(&all, more) &&
         json_object_set_new(function, "arguments", json_string(all.data)) == 0;
    mt_buf_free(&all);
    return ok;
}

/* Adds a piece of a tool call. A piece has the index of its call; the first one has the call's id and name, all have
   more of its arguments. */
static bool add_call(mt_chat_answer *a, const json_t *piece)
{
    const json_int_t index = json_integer_value(json_object_get(piece, "index"));
    const json_t *function = json_object_get(piece, "function");
    const char *id = text_of(piece, "id"), *name = text_of(function, "name"), *more = text_of(function, "arguments");
    json_t *call, *known;

    if (!a->calls)
        a->calls = json_array();
    if ((size_t)index > json_array_size(a->calls))
        return true;
    if (index >= MT_CHAT_CALLS)
        return false;
    if ((size_t)index == json_array_size(a->calls))
        json_array_append_new(a->calls, json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", "", "type", "function", "function",
                                                  "name", "", "arguments", ""));
    call = json_array_get(a->calls, (size_t)index);
    known = json_object_get(call, "function");
    if (id)
        json_object_set_new(call, "id", json_string(id));
    if (name)
        json_object_set_new(known, "name", json_string(name));
    return !more || extend(known, more);
}

static bool add_text(mt_chat_answer *a, bool reasoning, const char *text)
{
    if (!text)
        return true;
    a->piece(a, reasoning, text);
    return mt_buf_puts(reasoning ? &a->reasoning : &a->text, text);
}

/* Adds one event to the answer. */
static bool add_event(mt_chat_answer *a, const json_t *event)
{
    const json_t *choice = json_array_get(json_object_get(event, "choices"), 0);
    const json_t *delta = json_object_get(choice, "delta"), *calls = json_object_get(delta, "tool_calls");
    const char *thought = text_of(delta, "reasoning_content"), *finish = text_of(choice, "finish_reason");
    bool ok = add_text(a, true, thought ? thought : text_of(delta, "reasoning"));

    for (size_t i = 0; ok && i < json_array_size(calls); i++)
        ok = add_call(a, json_array_get(calls, i));
    ok = ok && add_text(a, false, text_of(delta, "content"));
    if (finish)
        snprintf(a->finish, sizeof(a->finish), "%s", finish);
    read_usage(a, json_object_get(event, "usage"));
    return ok;
}

/* Reads the line in e->line. Lines without data, and data that is no JSON ("[DONE]"), are ignored. */
static bool read_line(mt_chat_events *e)
{
    static const char data[] = "data:";
    const char *text = e->line.data;
    json_t *event;
    bool ok = true;

    if (e->line.len == 0 || strncmp(text, data, strlen(data)) != 0)
        return true;
    text += strlen(data);
    event = json_loads(text + strspn(text, " "), 0, NULL);
    if (event && json_object_get(event, "error") && !json_is_null(json_object_get(event, "error")))
        ok = mt_buf_puts(&e->error, text);
    else if (event)
        ok = add_event(e->answer, event);
    json_decref(event);
    return ok;
}

bool mt_chat_events_feed(mt_chat_events *e, const char *data, size_t len)
{
    const char *const end = data + len;

    while (data < end && !e->too_much) {
        const char *stop = memchr(data, '\n', (size_t)(end - data));

        e->too_much = !mt_buf_add(&e->line, data, (size_t)((stop ? stop : end) - data));
        if (stop && !e->too_much) {
            if (e->line.len > 0 && e->line.data[e->line.len - 1] == '\r')
                e->line.data[--e->line.len] = '\0';
            e->too_much = !read_line(e);
            e->line.len = 0;
        }
        data = stop ? stop + 1 : end;
    }
    return !e->too_much;
}
