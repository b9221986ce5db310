/* The dialect of POST /v1/responses, as OpenAI defines it: an answer is a list of items. A stream has numbered events
   for the beginning, growth and end of each item and of each part of an item. Events of a background answer are also
   logged, so that a client can leave and come back to the stream. */

#include <string.h>

#include "api/chat_body.h"
#include "api/dialect.h"
#include "api/limits.h"
#include "api/openai.h"
#include "api/openai_tools.h"
#include "api/recent.h"
#include "api/responses.h"
#include "api/store.h"
#include "base/json_write.h"

/* Opens an event. Returns where it begins in out. */
static size_t open_event(mt_buf *out, mt_answer *a, const char *type)
{
    const size_t start = out->len;

    if (!a->dialect->lines)
        mt_buf_printf(out, "event: %s\ndata: ", type);
    mt_json_write(out, "{'type':%s,'sequence_number':%zu", type, a->events++);
    return start;
}

static void close_event(mt_buf *out, mt_answer *a, size_t start)
{
    mt_buf_puts(out, a->dialect->lines ? "}\n" : "}\n\n");
    if (a->form.background && (a->store || a->log.len) && !out->full)
        mt_buf_add(&a->log, out->data + start, out->len - start);
}

static void tell_response(mt_buf *out, mt_answer *a, const char *type, const mt_failure *why)
{
    const size_t start = open_event(out, a, type);

    mt_json_write(out, "'response':");
    mt_responses_object(out, a, why);
    close_event(out, a, start);
}

static void begin(mt_answer *a, mt_choice *c, mt_buf *out)
{
    (void)c;
    tell_response(out, a, "response.created", NULL);
    tell_response(out, a, "response.in_progress", NULL);
}

static void tell_item(mt_buf *out, mt_answer *a, size_t index, bool filled)
{
    const size_t start = open_event(out, a, filled ? "response.output_item.done" : "response.output_item.added");

    mt_json_write(out, "'output_index':%zu,'item':", index);
    mt_responses_item(out, a, index, filled);
    close_event(out, a, start);
}

/* The names of the events about the one part of an item. part: NULL where the item has no parts. */
typedef struct words {
    const char *added, *delta, *done, *ended, *number, *part, *text;
} words;

static const words *words_of(const mt_answer *a, const mt_speech_part *part)
{
    static const words message = {"response.content_part.added",
                                  "response.output_text.delta",
                                  "response.output_text.done",
                                  "response.content_part.done",
                                  "content_index",
                                  "output_text",
                                  "text"};
    static const words reasoning = {"response.content_part.added",
                                    "response.reasoning_text.delta",
                                    "response.reasoning_text.done",
                                    "response.content_part.done",
                                    "content_index",
                                    "reasoning_text",
                                    "text"};
    static const words summary = {"response.reasoning_summary_part.added",
                                  "response.reasoning_summary_text.delta",
                                  "response.reasoning_summary_text.done",
                                  "response.reasoning_summary_part.done",
                                  "summary_index",
                                  "summary_text",
                                  "text"};
    static const words call = {.delta = "response.function_call_arguments.delta",
                               .done = "response.function_call_arguments.done",
                               .text = "arguments"};

    switch (part->kind) {
    case MT_SPEECH_REASONING: return json_is_true(json_object_get(a->extra, "summary")) ? &summary : &reasoning;
    case MT_SPEECH_TEXT: return &message;
    case MT_SPEECH_CALL: return &call;
    }
    return NULL;
}

/* Opens an event about a part of an item. Returns where it begins in out. */
static size_t open_part(mt_buf *out, mt_answer *a, size_t index, const words *w, const char *type)
{
    const size_t start = open_event(out, a, type);

    mt_responses_item_id(out, "item_id", a, index);
    mt_json_write(out, "'output_index':%zu", index);
    if (w->number)
        mt_json_write(out, "%s:0", w->number);
    return start;
}

static void tell_part(mt_buf *out, mt_answer *a, size_t index, const words *w, bool ended)
{
    const mt_speech_part *part = &a->choices[0].speech.at[index];
    const size_t start = open_part(out, a, index, w, ended ? w->ended : w->added);

    mt_json_write(out, "'part':{'type':%s", w->part);
    if (part->kind == MT_SPEECH_TEXT)
        mt_json_write(out, "'annotations':[]");
    mt_json_text(out, "text", part->text.data, ended ? part->text.len : 0);
    mt_responses_logprobs(out, a, index, ended ? 0 : SIZE_MAX);
    mt_json_write(out, "}");
    close_event(out, a, start);
}

static void tell_delta(mt_buf *out, mt_answer *a, size_t index, const words *w)
{
    const mt_speech_part *part = &a->choices[0].speech.at[index];
    size_t start;

    if (part->written == part->text.len)
        return;
    start = open_part(out, a, index, w, w->delta);
    mt_json_text(out, "delta", part->text.data + part->written, part->text.len - part->written);
    mt_responses_logprobs(out, a, index, a->choices[0].said.told);
    close_event(out, a, start);
}

static void tell_done(mt_buf *out, mt_answer *a, size_t index, const words *w)
{
    const mt_speech_part *part = &a->choices[0].speech.at[index];
    const size_t start = open_part(out, a, index, w, w->done);

    if (part->kind == MT_SPEECH_CALL)
        mt_json_write(out, "'name':%s", mt_responses_tool(a, part));
    mt_json_text(out, w->text, part->text.data, part->text.len);
    mt_responses_logprobs(out, a, index, 0);
    close_event(out, a, start);
    if (w->part)
        tell_part(out, a, index, w, true);
    tell_item(out, a, index, true);
}

/* The input of a custom tool is a string within the arguments, so it is written only once these are complete. */
static void tell_custom(mt_buf *out, mt_answer *a, size_t index, const json_t *input)
{
    static const words none = {0};
    size_t start = open_part(out, a, index, &none, "response.custom_tool_call_input.delta");

    mt_json_text(out, "delta", json_string_value(input), json_string_length(input));
    close_event(out, a, start);
    start = open_part(out, a, index, &none, "response.custom_tool_call_input.done");
    mt_json_text(out, "input", json_string_value(input), json_string_length(input));
    close_event(out, a, start);
    tell_item(out, a, index, true);
}

/* Writes all that is new of an item. */
static void tell(mt_buf *out, mt_answer *a, size_t index)
{
    const mt_speech_part *part = &a->choices[0].speech.at[index];
    const words *w = words_of(a, part);
    json_t *input = mt_custom_input(a, part);
    const bool ends = part->ended && !part->closed;

    if (!part->told)
        tell_item(out, a, index, false);
    if (!part->told && w->part)
        tell_part(out, a, index, w, false);
    if (!input)
        tell_delta(out, a, index, w);
    if (ends && input)
        tell_custom(out, a, index, input);
    else if (ends)
        tell_done(out, a, index, w);
    json_decref(input);
}

static void chunk(mt_answer *a, mt_choice *c, mt_buf *out)
{
    for (size_t i = 0; i < c->speech.count; i++)
        if (!c->speech.at[i].closed)
            tell(out, a, i);
}

/* Keeps {"input","response"} for the WebSocket, where the input has all items of the conversation before. */
static void keep_recent(const mt_answer *a)
{
    mt_buf all = {.limit = MT_LIMIT_RESPONSE_BYTES};

    if (!a->recent)
        return;
    mt_json_write(&all, "{'response':");
    mt_responses_object(&all, a, NULL);
    mt_json_write(&all, "'input':%-s}", json_string_value(json_object_get(a->extra, "all")));
    if (all.full)
        mt_buf_free(&all);
    else
        mt_recent_put(a->recent, a->id, all.data, all.len); /* owns the text from here on */
}

/* Puts {"input","previous","response"} into the store: what a later request needs to continue from here; and "events",
   the log of the stream, if it is complete. */
static void keep(const mt_answer *a, const mt_failure *why)
{
    const json_t *input = json_object_get(a->extra, "input");
    mt_buf all = {.limit = MT_LIMIT_RESPONSE_BYTES};

    if (!input || !a->store)
        return;
    mt_json_write(&all, "{'response':");
    mt_responses_object(&all, a, why);
    mt_json_write(&all, "'input':%-s,'previous':%s", json_string_value(input),
                  json_string_value(json_object_get(a->extra, "previous")));
    if (a->log.len && !a->log.full)
        mt_json_text(&all, "events", a->log.data, a->log.len);
    mt_json_write(&all, "}");
    if (all.full)
        mt_buf_free(&all);
    else
        mt_store_put(a->store, a->id, all.data, all.len); /* owns the text from here on */
}

static void end(mt_answer *a, mt_buf *out)
{
    tell_response(out, a, a->choices[0].finish == MT_FINISH_STOP ? "response.completed" : "response.incomplete", NULL);
    keep(a, NULL);
    keep_recent(a);
}

static void whole(mt_answer *a, mt_buf *out)
{
    mt_responses_object(out, a, NULL);
    keep(a, NULL);
}

static void now(const mt_answer *a, const mt_failure *why, mt_buf *out)
{
    mt_responses_object(out, a, why);
}

static void fail(mt_answer *a, const mt_failure *why, mt_buf *out)
{
    tell_response(out, a, "response.failed", why);
    if (a->form.background)
        keep(a, why);
}

const mt_dialect mt_openai_responses = {.name = "responses",
                                        .prefix = "resp_",
                                        .read = mt_responses_read,
                                        .begin = begin,
                                        .chunk = chunk,
                                        .end = end,
                                        .whole = whole,
                                        .fail = fail,
                                        .now = now,
                                        .keep = keep,
                                        .error = mt_failure_write,
                                        .repeats = true,
                                        .idle = MT_OPENAI_IDLE};

/* A message on a WebSocket: an event of the client's, of which there is one type. */
static bool read_event(mt_ask *ask, mt_failure *why)
{
    const json_t *type = json_object_get(ask->body, "type");

    if (strcmp(mt_body_text(ask->body, "type"), "response.create") != 0)
        return mt_failure_value(why, "type", "is not response.create, the one type of event that is known: send %s",
                                json_is_string(type) ? "one of that type" : "it with the fields of a response");
    if (json_is_true(json_object_get(ask->body, "background")))
        return mt_failure_unsupported(why, "background", "is not supported on a WebSocket: leave it out");
    if (!mt_responses_read(ask, why))
        return false;
    ask->form.stream = true; /* whatever the body says of it */
    return true;
}

const mt_dialect mt_responses_socket = {.name = "responses",
                                        .prefix = "resp_",
                                        .read = read_event,
                                        .begin = begin,
                                        .chunk = chunk,
                                        .end = end,
                                        .fail = fail,
                                        .error = mt_failure_write_event,
                                        .repeats = true,
                                        .lines = true,
                                        .idle = "\n"};

static void count(mt_buf *out, size_t tokens)
{
    mt_json_write(out, "{'object':'response.input_tokens','input_tokens':%zu}", tokens);
}

const mt_dialect mt_responses_input_tokens = {
    .name = "input_tokens", .prefix = "count_", .read = mt_responses_read, .error = mt_failure_write, .count = count};
