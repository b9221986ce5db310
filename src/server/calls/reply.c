/* Writes answers that are sent in one piece, and the heads of streams. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "server/inside.h"
#include "server/limits.h"
#include "weights/gguf_place.h"

/* All of Anthropic's clients say which version of the API they want. */
const mt_dialect *mt_server_dialect_spoken(const mt_http_request *request)
{
    return mt_http_request_header(request, "anthropic-version") ? &mt_anthropic_messages : &mt_openai_chat;
}

bool mt_server_json(mt_server *server, mt_http_handle handle, const mt_buf *body)
{
    const mt_http_response response = {.status = 200, .type = "application/json"};

    return mt_http_answer(server->http, handle, &response, body->len ? body->data : "", body->len);
}

bool mt_server_fail(mt_server *server, mt_http_handle handle, const mt_dialect *dialect, const mt_failure *why)
{
    char seconds[16];
    /* x-should-retry: a client that is told to allow more time must not repeat the same request by itself. */
    const mt_http_header later = {"retry-after", seconds}, never = {"x-should-retry", "false"};
    const mt_http_response response = {.status = why->status,
                                       .type = "application/json",
                                       .headers = why->status == 504 ? &never : &later,
                                       .header_count = why->status == 429 || why->status == 503 || why->status == 504};
    mt_buf body = {.limit = 8 * (size_t)MT_LIMIT_ERROR_TEXT};
    bool ok;

    snprintf(seconds, sizeof(seconds), "%d", why->retry_after ? why->retry_after : 1);
    (dialect ? dialect->error : mt_failure_write)(&body, why);
    ok = mt_http_answer(server->http, handle, &response, body.data, body.len);
    mt_buf_free(&body);
    return ok;
}

/* The header is: 299 motet "sentence", 299 motet "sentence". 299 is HTTP's code for a persistent warning. */
void mt_call_warn(mt_call *call, const char *fmt, ...)
{
    char text[MT_LIMIT_ERROR_TEXT];
    va_list args;
    mt_buf all = {.limit = MT_LIMIT_WARNINGS};

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
            *c = *c == '"' ? '\'' : ' ';
    if (call->warning)
        mt_buf_printf(&all, "%s, ", call->warning);
    mt_buf_printf(&all, "299 motet \"%s\"", text);
    if (!all.full) {
        mt_free(call->warning);
        call->warning = mt_strdup(all.data);
    }
    mt_buf_free(&all);
}

/* Reads the folder of the model, unless that was done before. */
static void tell_model(mt_call *call, mt_answer *a)
{
    const mt_card *card = mt_cards_get(&call->server->cards, call->waiter.member->dir);
    const mt_member_view view = mt_member_look(call->waiter.member);

    a->about.family = card->family;
    a->about.quantisation = card->quantisation;
    a->about.context = call->served->context;
    a->about.size = card->size;
    a->about.bytes = card->bytes;
    a->about.longest = card->context ? card->context : (int64_t)call->served->context;
    a->about.gguf = mt_gguf_named(card->dir) || mt_gguf_is_manifest(card->dir);
    a->about.vision = view.facts.vision;
    a->about.tools = view.facts.tools;
}

mt_answer *mt_call_answer(mt_call *call, const mt_ask *ask, size_t prompts, const char *model, mt_failure *why)
{
    mt_answer *a = mt_answer_new(call->dialect, ask->arena, ask, prompts);

    if (!a) {
        mt_failure_memory(why, NULL);
        return NULL;
    }
    memcpy(a->id, call->id, sizeof(a->id));
    a->began = call->received;
    a->loading = call->loading;
    a->model = model;
    a->fingerprint = mt_engine_fingerprint(call->served->engine);
    if (call->dialect->more)
        tell_model(call, a);
    call->answer = a;
    if (*ask->ignored) {
        mt_log_info("request.ignored", "%s brings what is not looked at: %s", call->id, ask->ignored);
        mt_call_warn(call, "not looked at: %s", ask->ignored);
    }
    return a;
}

size_t mt_call_headers(const mt_call *call, mt_http_header out[MT_CALL_HEADERS])
{
    size_t count = 0;

    out[count++] = (mt_http_header){"x-request-id", call->id};
    if (call->prefix[0])
        out[count++] = (mt_http_header){MT_PREFIX_HEADER, call->prefix};
    if (call->session[0])
        out[count++] = (mt_http_header){"x-session-id", call->session};
    if (call->warning)
        out[count++] = (mt_http_header){"warning", call->warning};
    return count;
}

bool mt_call_begin_stream(const mt_call *call, mt_http_handle handle)
{
    mt_http_header headers[MT_CALL_HEADERS + 2] = {{"cache-control", "no-cache"}, {"x-accel-buffering", "no"}};
    const size_t count = 2 + mt_call_headers(call, headers + 2);
    const mt_http_response response = {.status = 200,
                                       .type = call->dialect->stream_type ? call->dialect->stream_type
                                                                          : "text/event-stream",
                                       .headers = headers,
                                       .header_count = count};

    return mt_http_begin(call->server->http, handle, &response);
}
