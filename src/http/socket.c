/* See socket.h. A WebSocket is a connection as any other: one exchange at a time, the same limits of bodies and of what
   waits for the client, the same follower. Only how requests are found in the input and how answers are written differ.

   1. The request of the handshake is kept: each message becomes a copy of it, with the method POST and the message as
      its body, and is admitted anew. A key that is withdrawn or used up counts from the next message on.
   2. While a message is answered, control frames before the next message are answered at once; that message, and what
      follows it, waits in the input as pipelined requests do. With MT_HTTP_SOCKET_MANY it waits only where
      MT_LIMIT_HTTP_SOCKET_MANY messages are answered already.
   3. A frame that breaks the rules closes its connection with the code that RFC 6455 has for it. */
#include "http/socket.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <openssl/evp.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "http/field.h"
#include "http/request.h"
#include "http/response.h"

/* letters of a key, of the answer to it, bytes of a digest, most letters of a subprotocol */
enum { KEY = 24, ACCEPT = 28, SHA1 = 20, PROTOCOL = 100 };

const char *mt_http_socket_refusal(const mt_http_request *request, bool http10, int *status)
{
    const char *upgrade = mt_http_request_header(request, "upgrade"),
               *connection = mt_http_request_header(request, "connection"),
               *version = mt_http_request_header(request, "sec-websocket-version"),
               *key = mt_http_request_header(request, "sec-websocket-key");
    uint8_t bytes[KEY];

    *status = 426;
    if (http10 || request->method != MT_HTTP_GET || !upgrade || !mt_http_list_has(upgrade, "websocket") ||
        !connection || !mt_http_list_has(connection, "upgrade"))
        return "this path is a WebSocket: open one, or send a POST";
    if (!version || strcmp(version, "13") != 0)
        return "the WebSocket's version is not known: send sec-websocket-version 13";
    *status = 400;
    if (!key || strlen(key) != KEY || EVP_DecodeBlock(bytes, (const unsigned char *)key, KEY) < 0)
        return "sec-websocket-key is not 16 bytes in base64: send such a key";
    return request->announced ? "the handshake of a WebSocket has no body: send none" : NULL;
}

/* The value of sec-websocket-accept for a key. */
static void answer_key(const char *key, char out[ACCEPT + 1])
{
    static const char always[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455 has it */
    unsigned char text[KEY + sizeof(always)], digest[EVP_MAX_MD_SIZE];

    memcpy(text, key, KEY);
    memcpy(text + KEY, always, sizeof(always));
    if (!EVP_Digest(text, KEY + sizeof(always) - 1, digest, NULL, EVP_sha1(), NULL))
        memset(digest, 0, SHA1); /* a system that forbids SHA-1: the client refuses the connection */
    EVP_EncodeBlock((unsigned char *)out, digest, SHA1);
}

/* Chooses the first of the subprotocols that a client offers, which means nothing here: browsers refuse a connection
   without one of theirs. That with the API key is not sent back. False: there is none. */
static bool choose_protocol(const mt_http_request *greeting, char out[PROTOCOL + 1])
{
    const char *list = mt_http_request_header(greeting, "sec-websocket-protocol");
    size_t len;

    for (const char *one = list ? mt_http_list_next(&list, &len) : NULL; one; one = mt_http_list_next(&list, &len))
        if (len <= PROTOCOL && strncmp(one, MT_HTTP_SOCKET_KEY, sizeof(MT_HTTP_SOCKET_KEY) - 1) != 0) {
            snprintf(out, PROTOCOL + 1, "%.*s", (int)len, one);
            return mt_http_is_token(out, len);
        }
    return false;
}

void mt_http_socket_open(mt_http_connection *c, mt_http_request *greeting)
{
    const mt_http_hooks *hooks = &c->server->config.hooks;
    char accept[ACCEPT + 1], protocol[PROTOCOL + 1];
    const mt_http_header headers[] = {{"upgrade", "websocket"},
                                      {"connection", "upgrade"},
                                      {"sec-websocket-accept", accept},
                                      {"sec-websocket-protocol", protocol}};
    const mt_http_response response = {
        .status = 101, .headers = headers, .header_count = MT_COUNT(headers) - !choose_protocol(greeting, protocol)};

    answer_key(mt_http_request_header(greeting, "sec-websocket-key"), accept);
    mt_http_response_whole(c, &response, NULL, 0);
    c->socket = mt_alloc(sizeof(*c->socket));
    c->socket->greeting = greeting;
    c->socket->until = mt_clock_ns() + (uint64_t)c->server->limits.socket_ms * 1000000;
    c->socket->state = hooks->socket_open ? hooks->socket_open(hooks->user) : NULL;
    c->socket->many = c->route->flags & MT_HTTP_SOCKET_MANY;
    mt_frames_init(&c->socket->frames, c->route->body_bytes ? c->route->body_bytes : c->server->limits.body_bytes);
    mt_http_connection_finish(c);
}

void mt_http_socket_close(mt_http_connection *c, mt_frames_code code, const char *sentence)
{
    mt_http_response_close(c, code, sentence);
    mt_http_connection_drop_request(c);
    mt_http_connection_leave(c);
}

void mt_http_socket_leave(mt_http_connection *c)
{
    mt_http_response_close(c, c->server->draining ? MT_FRAMES_GOING_AWAY : MT_FRAMES_FAILED, "");
}

void mt_http_socket_expire(mt_http_connection *c)
{
    mt_http_response_error(c, c->socket->greeting->path, 400, "websocket_connection_limit_reached",
                           "the WebSocket is as old as it may be: open another", NULL, 0);
    mt_http_socket_close(c, MT_FRAMES_GOING_AWAY, "");
}

static void read_control(mt_http_connection *c)
{
    const mt_frames *frames = &c->socket->frames;

    if (frames->opcode == MT_FRAMES_PING)
        mt_http_response_frame(c, MT_FRAMES_PONG, frames->control, frames->control_len);
    else if (frames->opcode == MT_FRAMES_CLOSE)
        mt_http_socket_close(c, frames->code == MT_FRAMES_NO_CODE ? MT_FRAMES_NORMAL : frames->code, "");
}

static bool is_text(const mt_buf *message)
{
    size_t size = 1;

    for (size_t at = 0; at < message->len && size; at += size)
        size = mt_utf8_length(message->data + at, message->len - at);
    return size > 0;
}

/* Hands a complete message to the handler. */
static void read_message(mt_http_connection *c)
{
    if (!is_text(&c->body)) {
        mt_http_socket_close(c, MT_FRAMES_NOT_UTF8, "the message is not UTF-8");
        return;
    }
    if (mt_clock_ns() >= c->socket->until && !c->exchange.id) {
        mt_http_socket_expire(c);
        return;
    }
    c->request = mt_http_request_again(c->socket->greeting, c->server->config.proxies);
    c->request->socket = c->socket->state;
    c->server->up->message(c);
}

static void read_piece(mt_http_connection *c)
{
    const mt_frames *frames = &c->socket->frames;
    const size_t before = c->body.len;

    if (mt_http_connection_add_body(c, (const char *)frames->piece, frames->piece_len))
        mt_frames_unmask(frames, (uint8_t *)c->body.data + before, frames->piece_len);
}

static mt_http_event handle(mt_http_connection *c, mt_frames_event event)
{
    switch (event) {
    case MT_FRAMES_GOT_CONTROL: read_control(c); return MT_HTTP_GOT_END;
    case MT_FRAMES_GOT_MESSAGE: read_message(c); return MT_HTTP_GOT_END;
    case MT_FRAMES_BAD:
        mt_http_socket_close(c, c->socket->frames.code, "the frame breaks the rules of RFC 6455, or is too large");
        return MT_HTTP_BAD;
    case MT_FRAMES_GOT_PIECE: return MT_HTTP_GOT_BODY;
    case MT_FRAMES_NEED: break;
    }
    return MT_HTTP_NEED;
}

mt_http_event mt_http_socket_read(mt_http_connection *c)
{
    struct evbuffer *input = bufferevent_get_input(c->bev);
    struct evbuffer_iovec piece = {.iov_base = "", .iov_len = 0};
    mt_frames *frames = &c->socket->frames;
    mt_frames_event event;
    size_t used;

    evbuffer_peek(input, -1, NULL, &piece, 1);
    if (c->phase == MT_HTTP_ANSWERING &&
        (piece.iov_len == 0 || !mt_frames_is_control(frames, *(const uint8_t *)piece.iov_base)))
        return MT_HTTP_NEED;
    if (c->phase == MT_HTTP_READING_HEAD && mt_frames_idle(frames))
        mt_buf_init(&c->body, (size_t)frames->limit);
    event = mt_frames_next(frames, piece.iov_base, piece.iov_len, &used);
    if (event == MT_FRAMES_GOT_PIECE)
        read_piece(c); /* before draining: the piece lies in the input */
    evbuffer_drain(input, used);
    return handle(c, event);
}
