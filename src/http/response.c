/* See response.h. */
#include "http/response.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/log.h"
#include "http/field.h"
#include "http/limits.h"
#include "http/status.h"

/* Values may contain what clients sent, so bytes that could end a header are replaced. */
static void add_value(struct evbuffer *out, const char *value)
{
    size_t plain;

    for (; *value; value += plain) {
        for (plain = 0; value[plain] && mt_http_is_value_byte((unsigned char)value[plain]); plain++) {}
        evbuffer_add(out, value, plain);
        if (value[plain]) {
            evbuffer_add(out, " ", 1);
            plain++;
        }
    }
}

static void add_header(struct evbuffer *out, const char *name, const char *value)
{
    assert(mt_http_is_token(name, strlen(name)));
    evbuffer_add_printf(out, "%s: ", name);
    add_value(out, value);
    evbuffer_add(out, "\r\n", 2);
}

static const char *date_now(mt_http_server *server)
{
    time_t now = time(NULL);
    struct tm tm;

    if (now != server->date_second) {
        strftime(server->date, sizeof(server->date), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
        server->date_second = now;
    }
    return server->date;
}

static void add_connection(mt_http_connection *c, struct evbuffer *out)
{
    if (c->server->draining)
        c->exchange.keep_alive = false;
    if (!c->exchange.keep_alive)
        add_header(out, "connection", "close");
    else if (c->exchange.http10)
        add_header(out, "connection", "keep-alive");
}

static void add_cors(mt_http_connection *c, struct evbuffer *out)
{
    if (!c->exchange.origin)
        return;
    add_header(out, "access-control-allow-origin", c->exchange.origin);
    add_header(out, "access-control-expose-headers", "*");
    if (strcmp(c->exchange.origin, "*") != 0)
        add_header(out, "vary", "origin");
}

void mt_http_extra_add(mt_http_extra *extra, const char *name, const char *fmt, ...)
{
    char *text = extra->text[extra->count];
    va_list args;

    assert(extra->count < MT_COUNT(extra->headers));
    va_start(args, fmt);
    vsnprintf(text, sizeof(extra->text[0]), fmt, args);
    va_end(args);
    extra->headers[extra->count++] = (mt_http_header){name, text};
}

static void add_extra(mt_http_connection *c, struct evbuffer *out)
{
    const mt_http_hooks *hooks = &c->server->config.hooks;
    mt_http_extra extra = {.count = 0};

    if (!hooks->headers || !c->exchange.who)
        return;
    hooks->headers(hooks->user, c->exchange.who, &extra);
    for (size_t i = 0; i < extra.count; i++)
        add_header(out, extra.headers[i].name, extra.headers[i].value);
}

/* The request's name: the client's, or else the application's, or else a random one. */
static void add_name(mt_http_connection *c, const mt_http_response *response, struct evbuffer *out)
{
    const char *name = mt_http_field_get(response->headers, response->header_count, "x-request-id");
    char made[MT_HTTP_NAME_SIZE];

    if (c->exchange.name[0])
        name = c->exchange.name;
    if (!name) {
        mt_http_name_make(made);
        name = made;
    }
    add_header(out, "x-request-id", name);
    if (c->route && (c->route->flags & MT_HTTP_REQUEST_ID))
        add_header(out, "request-id", name);
}

static void count_answer(mt_http_connection *c, int status)
{
    if (!c->route || !(c->route->flags & MT_HTTP_PROBE))
        mt_http_count_add(&c->server->count.answers[status / 100], 1);
}

/* Writes the head, except the body's length and the empty line. */
static void add_head(mt_http_connection *c, const mt_http_response *response)
{
    struct evbuffer *out = mt_http_connection_output(c);

    assert(response->status >= 101 && response->status < 600);
    evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\n", response->status, mt_http_status_name(response->status));
    add_header(out, "date", date_now(c->server));
    if (response->type)
        add_header(out, "content-type", response->type);
    for (size_t i = 0; i < response->header_count; i++)
        if (strcmp(response->headers[i].name, "x-request-id") != 0)
            add_header(out, response->headers[i].name, response->headers[i].value);
    add_name(c, response, out);
    add_extra(c, out);
    add_cors(c, out);
    add_connection(c, out);
    count_answer(c, response->status);
}

void mt_http_response_frame(mt_http_connection *c, mt_frames_opcode opcode, const void *data, size_t len)
{
    struct evbuffer *out = mt_http_connection_output(c);
    uint8_t head[MT_FRAMES_HEAD];

    if (c->socket->closed)
        return;
    evbuffer_add(out, head, mt_frames_head(head, opcode, len));
    evbuffer_add(out, data, len);
}

void mt_http_response_close(mt_http_connection *c, mt_frames_code code, const char *sentence)
{
    char text[MT_FRAMES_CONTROL] = {(char)(code >> 8), (char)(code & 0xFF)};
    const size_t len = strnlen(sentence, sizeof(text) - 2);

    memcpy(text + 2, sentence, len);
    mt_http_response_frame(c, MT_FRAMES_CLOSE, text, len + 2);
    c->socket->closed = true;
}

/* Sends lines as messages, without their ends; an empty line as a ping. */
static void add_lines(mt_http_connection *c, const char *data, size_t len)
{
    for (const char *end = data + len, *at; data < end; data = at + 1) {
        at = memchr(data, '\n', (size_t)(end - data));
        if (!at)
            at = end;
        mt_http_response_frame(c, at == data ? MT_FRAMES_PING : MT_FRAMES_TEXT, data, (size_t)(at - data));
    }
}

/* Sends a whole answer to a message. */
static void add_message(mt_http_connection *c, const mt_http_response *response, const void *body, size_t len)
{
    mt_buf text = {.limit = len + MT_LIMIT_HTTP_ERROR_BYTES};

    if (c->exchange.errors && response->status >= 400) {
        mt_buf_puts(&text, c->exchange.errors);
        mt_buf_add(&text, body, len);
        mt_buf_puts(&text, "}");
        mt_http_response_frame(c, MT_FRAMES_TEXT, text.data, text.len);
        mt_buf_free(&text);
    } else if (c->socket->many)
        add_lines(c, body, len);
    else
        mt_http_response_frame(c, MT_FRAMES_TEXT, body, len);
}

void mt_http_response_whole(mt_http_connection *c, const mt_http_response *response, const void *body, size_t len)
{
    struct evbuffer *out = mt_http_connection_output(c);
    bool bodiless = response->status == 101 || response->status == 204 || response->status == 304;

    assert(!c->exchange.begun);
    c->exchange.begun = true;
    if (c->socket) {
        count_answer(c, response->status);
        add_message(c, response, body, len);
        return;
    }
    add_head(c, response);
    if (!bodiless)
        evbuffer_add_printf(out, "content-length: %zu\r\n", len);
    evbuffer_add(out, "\r\n", 2);
    if (!bodiless && !c->exchange.head_only && len > 0)
        evbuffer_add(out, body, len);
}

void mt_http_response_begin(mt_http_connection *c, const mt_http_response *response)
{
    struct evbuffer *out = mt_http_connection_output(c);

    assert(!c->exchange.begun);
    c->exchange.begun = true;
    if (c->socket) {
        count_answer(c, response->status);
        return;
    }
    c->exchange.chunked = !c->exchange.http10;
    if (c->exchange.http10)
        c->exchange.keep_alive = false; /* the end of the connection marks the end of the body */
    add_head(c, response);
    if (c->exchange.chunked)
        add_header(out, "transfer-encoding", "chunked");
    evbuffer_add(out, "\r\n", 2);
}

static bool drop_slow(mt_http_connection *c, size_t waiting)
{
    mt_http_count_add(&c->server->count.slow, 1);
    mt_log_warn("http.slow", "client %s reads too slowly, %zu bytes wait for it, and is dropped", c->peer, waiting);
    mt_http_connection_doom(c);
    return false;
}

static void pause_when_full(mt_http_connection *c)
{
    const mt_http_follower *follower = c->exchange.follower;

    if (c->exchange.paused || mt_http_connection_waiting(c) <= c->server->limits.output_pause)
        return;
    c->exchange.paused = true;
    if (follower && follower->paused)
        follower->paused(c->exchange.follower_user, true);
}

bool mt_http_response_write(mt_http_connection *c, const void *data, size_t len)
{
    struct evbuffer *out = mt_http_connection_output(c);
    size_t waiting = mt_http_connection_waiting(c);

    assert(c->exchange.begun);
    if (c->exchange.head_only || len == 0) /* an empty chunk would mark the end */
        return true;
    if (waiting > c->server->limits.output_drop)
        return drop_slow(c, waiting);
    if (c->socket) {
        add_lines(c, data, len);
        pause_when_full(c);
        return true;
    }
    if (c->exchange.chunked)
        evbuffer_add_printf(out, "%zx\r\n", len);
    evbuffer_add(out, data, len);
    if (c->exchange.chunked)
        evbuffer_add(out, "\r\n", 2);
    pause_when_full(c);
    return true;
}

void mt_http_response_end(mt_http_connection *c)
{
    assert(c->exchange.begun);
    if (c->exchange.chunked && !c->exchange.head_only)
        evbuffer_add(mt_http_connection_output(c), "0\r\n\r\n", 5);
}

void mt_http_response_error(mt_http_connection *c, const char *path, int status, const char *code, const char *sentence,
                            const mt_http_header *headers, size_t count)
{
    const mt_http_hooks *hooks = &c->server->config.hooks;
    mt_http_response response = {.status = status, .headers = headers, .header_count = count};
    mt_buf body;

    mt_buf_init(&body, MT_LIMIT_HTTP_ERROR_BYTES);
    if (hooks->error_body) {
        response.type = hooks->error_type ? hooks->error_type : "application/json";
        hooks->error_body(hooks->user, c->socket ? c->route : NULL, c->request, path, status, code, sentence, &body);
    } else {
        response.type = "text/plain; charset=utf-8";
        mt_buf_printf(&body, "%s\n", sentence);
    }
    mt_http_response_whole(c, &response, body.data, body.len);
    mt_buf_free(&body);
}

static void resume(mt_http_connection *c)
{
    const mt_http_follower *follower = c->exchange.follower;

    if (!c->exchange.paused || mt_http_connection_waiting(c) > c->server->limits.output_pause / 2)
        return;
    c->exchange.paused = false;
    if (follower && follower->paused)
        follower->paused(c->exchange.follower_user, false);
}

/* A follower may write, and so end exchanges. */
void mt_http_response_resume(mt_http_connection *c)
{
    uint64_t others[MT_LIMIT_HTTP_SOCKET_MANY];
    const size_t count = c->socket ? c->socket->other_count : 0;

    for (size_t i = 0; i < count; i++)
        others[i] = c->socket->others[i].id;
    resume(c);
    for (size_t i = 0; i < count; i++)
        if (!c->doomed && mt_http_connection_turn_to(c, others[i]))
            resume(c);
}
