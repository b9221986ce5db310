/* The dialect of POST /v1/messages, as Anthropic defines it: an answer is a list of blocks, which are also streamed one
   after the other. */
#include <string.h>

#include "api/answer.h"
#include "api/anthropic.h"
#include "api/dialect.h"
#include "api/write.h"
#include "base/json_write.h"

static void open_event(mt_buf *out, const char *type)
{
    mt_buf_printf(out, "event: %s\ndata: ", type);
    mt_json_write(out, "{'type':%s", type);
}

static void close_event(mt_buf *out)
{
    mt_buf_puts(out, "}\n\n");
}

/* Usage up to now. input_tokens does not include tokens that came from the cache. */
static void add_usage(mt_buf *out, const mt_answer *a)
{
    const mt_usage all = mt_answer_usage(a);

    mt_json_write(out,
                  "'usage':{'input_tokens':%zu,'cache_creation_input_tokens':0,'cache_read_input_tokens':%zu,"
                  "'cache_creation':{'ephemeral_5m_input_tokens':0,'ephemeral_1h_input_tokens':0},"
                  "'output_tokens':%zu,'output_tokens_details':{'thinking_tokens':%zu},"
                  "'server_tool_use':null,'service_tier':'standard','speed':'standard','inference_geo':null}",
                  all.prompt - all.cached, all.cached, all.tokens, all.reasoning);
}

/* Opens the object of a message, up to where its content begins. */
static void add_head(mt_buf *out, const mt_answer *a)
{
    mt_json_write(out, "{'id':%s,'type':'message','role':'assistant','model':%s,'container':null,'diagnostics':null",
                  a->id, a->model);
}

/* Anthropic has no word for a message that was cancelled: "abort" is what other dialects say, too. */
static void add_stop(mt_buf *out, const mt_choice *c)
{
    const char *reason = c->finish == MT_FINISH_LENGTH      ? "max_tokens"
                         : c->finish == MT_FINISH_CANCELLED ? "abort"
                         : c->stop                          ? "stop_sequence"
                         : mt_speech_callable(&c->speech)   ? "tool_use"
                                                            : "end_turn";

    mt_json_write(out, "'stop_reason':%s,'stop_sequence':", reason);
    if (c->stop)
        mt_json_text(out, NULL, c->stop, c->stop_len);
    else
        mt_json_write(out, "null");
    mt_json_write(out, "'stop_details':null"); /* which is about refusals only */
}

static void begin(mt_answer *a, mt_choice *c, mt_buf *out)
{
    (void)c;
    open_event(out, "message_start");
    mt_json_write(out, "'message':");
    add_head(out, a);
    mt_json_write(out, "'content':[],'stop_reason':null,'stop_sequence':null,'stop_details':null");
    add_usage(out, a);
    mt_json_write(out, "}");
    close_event(out);
    mt_buf_puts(out, mt_anthropic_messages.idle); /* Anthropic's streams have a ping after their first event */
}

/* Opens the object of a call, up to where its input begins. */
static void add_call_head(mt_buf *out, const mt_speech_part *call)
{
    mt_json_write(out, "{'type':'tool_use','id':%s,'name':%s,'caller':{'type':'direct'},'input':", call->id,
                  call->name);
}

/* The events of a block: one when it starts, one for each piece of it, one when it stops. index: its number. */
static void start_block(mt_buf *out, const mt_speech_part *part, size_t index)
{
    open_event(out, "content_block_start");
    mt_json_write(out, "'index':%zu,'content_block':", index);
    switch (part->kind) {
    case MT_SPEECH_REASONING: mt_json_write(out, "{'type':'thinking','thinking':'','signature':''}"); break;
    case MT_SPEECH_TEXT: mt_json_write(out, "{'type':'text','text':''}"); break;
    case MT_SPEECH_CALL:
        add_call_head(out, part);
        mt_json_write(out, "{}}");
        break;
    }
    close_event(out);
}

static void add_delta(mt_buf *out, size_t index, const char *type, const char *key, const char *text, size_t len)
{
    open_event(out, "content_block_delta");
    mt_json_write(out, "'index':%zu,'delta':{'type':%s", index, type);
    mt_json_text(out, key, text, len);
    mt_json_write(out, "}");
    close_event(out);
}

static void continue_block(mt_buf *out, const mt_speech_part *part, size_t index)
{
    static const char *const deltas[][2] = {[MT_SPEECH_REASONING] = {"thinking_delta", "thinking"},
                                            [MT_SPEECH_TEXT] = {"text_delta", "text"},
                                            [MT_SPEECH_CALL] = {"input_json_delta", "partial_json"}};

    if (part->written < part->text.len)
        add_delta(out, index, deltas[part->kind][0], deltas[part->kind][1], part->text.data + part->written,
                  part->text.len - part->written);
}

/* Clients keep thinking blocks only where they have a signature. Ours is the answer's id and proves nothing: any is
   accepted when it comes back. */
static void stop_block(mt_buf *out, const mt_answer *a, const mt_speech_part *part, size_t index)
{
    if (part->kind == MT_SPEECH_REASONING)
        add_delta(out, index, "signature_delta", "signature", a->id, strlen(a->id));
    open_event(out, "content_block_stop");
    mt_json_write(out, "'index':%zu", index);
    close_event(out);
}

/* answer.c marks all parts as written after each chunk. */
static void chunk(mt_answer *a, mt_choice *c, mt_buf *out)
{
    for (size_t i = 0; i < c->speech.count; i++) {
        const mt_speech_part *part = &c->speech.at[i];

        if (!part->told)
            start_block(out, part, i);
        continue_block(out, part, i);
        if (part->ended && !part->closed)
            stop_block(out, a, part, i);
    }
}

static void end(mt_answer *a, mt_buf *out)
{
    open_event(out, "message_delta");
    mt_json_write(out, "'delta':{");
    add_stop(out, &a->choices[0]);
    mt_json_write(out, "'container':null}");
    add_usage(out, a);
    close_event(out);
    open_event(out, "message_stop");
    close_event(out);
}

static void add_block(mt_buf *out, const mt_answer *a, const mt_speech_part *part)
{
    switch (part->kind) {
    case MT_SPEECH_REASONING:
        mt_json_write(out, "{'type':'thinking'");
        mt_json_text(out, "thinking", part->text.data, part->text.len);
        mt_json_write(out, "'signature':%s", a->id);
        break;
    case MT_SPEECH_TEXT:
        mt_json_write(out, "{'type':'text'");
        mt_json_text(out, "text", part->text.data, part->text.len);
        break;
    case MT_SPEECH_CALL:
        add_call_head(out, part);
        mt_write_arguments(out, part);
        break;
    }
    mt_json_write(out, "}");
}

static void whole(mt_answer *a, mt_buf *out)
{
    const mt_choice *c = &a->choices[0];

    add_head(out, a);
    mt_json_write(out, "'content':[");
    for (size_t i = 0; i < c->speech.count; i++)
        add_block(out, a, &c->speech.at[i]);
    mt_json_write(out, "]");
    add_stop(out, c);
    add_usage(out, a);
    mt_json_write(out, "}");
}

/* Appends {"type":"error","error":{...}}. */
static void write_error(mt_buf *out, const mt_failure *why)
{
    static const struct {
        int status;
        const char *type;
    } types[] = {{401, "authentication_error"}, {403, "permission_error"}, {404, "not_found_error"},
                 {413, "request_too_large"},    {429, "rate_limit_error"}, {503, "overloaded_error"},
                 {504, "timeout_error"}};
    const char *type = why->status >= 500 ? "api_error" : "invalid_request_error";

    for (size_t i = 0; i < MT_COUNT(types); i++)
        if (types[i].status == why->status)
            type = types[i].type;
    mt_json_write(out, "{'type':'error','error':{'type':%s,'message':%s", type, why->text);
    if (why->code)
        mt_json_write(out, "'details':{'error_code':%s}", why->code);
    mt_json_write(out, "}}");
}

static void fail(mt_answer *a, const mt_failure *why, mt_buf *out)
{
    (void)a;
    mt_buf_puts(out, "event: error\ndata: ");
    write_error(out, why);
    mt_buf_puts(out, "\n\n");
}

const mt_dialect mt_anthropic_messages = {.name = "messages",
                                          .prefix = "msg_",
                                          .read = mt_anthropic_read,
                                          .begin = begin,
                                          .chunk = chunk,
                                          .end = end,
                                          .whole = whole,
                                          .fail = fail,
                                          .error = write_error,
                                          .idle = "event: ping\ndata: {\"type\":\"ping\"}\n\n"};

static void count(mt_buf *out, size_t tokens)
{
    mt_json_write(out, "{'input_tokens':%zu}", tokens);
}

const mt_dialect mt_anthropic_count_tokens = {
    .name = "count_tokens", .prefix = "count_", .read = mt_anthropic_read, .error = write_error, .count = count};
