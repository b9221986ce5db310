/* Dispatches a request: decides whether it is allowed, which route's handler gets it, and errors where none does. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "base/alloc.h"
#include "base/error.h"
#include "http/coding.h"
#include "http/cors.h"
#include "http/dispatch.h"
#include "http/field.h"
#include "http/request.h"
#include "http/response.h"
#include "http/socket.h"

/* The path of the request that is being read; of one whose body is streamed, that of its route. NULL: none is known. */
static const char *path_of(const mt_http_connection *c)
{
    if (c->request)
        return c->request->path;
    return c->phase == MT_HTTP_READING_BODY && c->route ? c->route->pattern : NULL;
}

static bool refuse_as(mt_http_connection *c, int status, const char *code, const char *sentence,
                      const mt_http_header *headers, size_t count)
{
    mt_http_response_error(c, path_of(c), status, code, sentence, headers, count);
    mt_http_connection_drop_request(c);
    mt_http_connection_finish(c);
    return false;
}

/* Answers a request whose head was read with an error. Returns false. */
static bool refuse(mt_http_connection *c, int status, const char *sentence, const mt_http_header *headers, size_t count)
{
    return refuse_as(c, status, NULL, sentence, headers, count);
}

void mt_http_dispatch_fault(mt_http_connection *c, int status, const char *sentence)
{
    static const mt_http_header again = {"retry-after", "1"};
    const mt_http_follower *follower = c->exchange.follower; /* of a body that is streamed; else NULL */
    void *user = c->exchange.follower_user;

    if (c->socket) {
        mt_http_socket_close(c, status == 503 ? MT_FRAMES_TRY_LATER : MT_FRAMES_POLICY, sentence);
        return;
    }
    c->exchange.keep_alive = false;
    refuse(c, status, sentence, &again, status == 503);
    if (follower && follower->gone)
        follower->gone(user);
}

static bool answer_empty(mt_http_connection *c, const mt_http_header *headers, size_t count)
{
    mt_http_response response = {.status = 204, .headers = headers, .header_count = count};

    mt_http_response_whole(c, &response, NULL, 0);
    mt_http_connection_drop_request(c);
    mt_http_connection_finish(c);
    return false;
}

static bool answer_options(mt_http_connection *c, unsigned allowed)
{
    char methods[MT_HTTP_ALLOW_SIZE];
    mt_http_header headers[MT_HTTP_PREFLIGHT_HEADERS];

    mt_http_allow_format(allowed, methods, sizeof(methods));
    return answer_empty(c, headers, mt_http_preflight(c->request, c->exchange.origin, methods, headers));
}

static bool refuse_method(mt_http_connection *c, unsigned allowed)
{
    char methods[MT_HTTP_ALLOW_SIZE];
    mt_http_header allow = {"allow", methods};
    char sentence[MT_LIMIT_ERROR_TEXT];

    mt_http_allow_format(allowed, methods, sizeof(methods));
    snprintf(sentence, sizeof(sentence), "this path does not take the method %s: use one of %s",
             mt_http_method_name(c->request->method), methods);
    return refuse(c, 405, sentence, &allow, 1);
}

/* The sentence names the most similar route. It repeats nothing that the client has sent. */
static bool refuse_path(mt_http_connection *c)
{
    const mt_http_config *config = &c->server->config;
    const mt_http_route *near = mt_http_router_nearest(config->routes, config->route_count, c->request->path);
    char sentence[MT_LIMIT_ERROR_TEXT];

    if (!near)
        return refuse(c, 404, "there is nothing at this path", NULL, 0);
    snprintf(sentence, sizeof(sentence), "there is nothing at this path: the nearest that exists is %s %s",
             mt_http_method_name(near->method), near->pattern);
    return refuse(c, 404, sentence, NULL, 0);
}

/* Whether the request names its host, or its route may be asked without. HTTP/1.0 has no "host". */
static bool is_named(const mt_http_connection *c)
{
    const char *host = mt_http_request_header(c->request, "host");

    return !host || *host || (c->route && (c->route->flags & MT_HTTP_NAMELESS));
}

static bool refuse_nameless(mt_http_connection *c)
{
    mt_http_dispatch_fault(c, 400, "the request's host header is empty: send the server's name or address");
    return false;
}

/* Finds the route. False: there is none, and the request is answered. */
static bool find_route(mt_http_connection *c)
{
    const mt_http_config *config = &c->server->config;
    size_t len;
    const char *path = mt_http_request_raw_path(c->request, &len);
    mt_http_match match;

    if (strcmp(path, "*") == 0)
        return is_named(c) ? answer_options(c, (1u << MT_HTTP_METHODS) - 1) : refuse_nameless(c);
    mt_http_router_match(config->routes, config->route_count, c->request->method, path, len, &match);
    c->route = c->request->route = match.route;
    mt_http_request_set_match(c->request, &match);
    if (!is_named(c))
        return refuse_nameless(c);
    if (!match.allowed)
        return refuse_path(c);
    if (c->request->method == MT_HTTP_OPTIONS)
        return answer_options(c, match.allowed);
    return match.route ? true : refuse_method(c, match.allowed);
}

/* Whether a spare connection (crowd.c) may go on: there is room by now, or the route is always answered. */
static bool settle(mt_http_connection *c)
{
    static const mt_http_header later = {"retry-after", "1"};

    if (mt_http_crowd_settle(c) || (c->route->flags & MT_HTTP_ALWAYS))
        return true;
    mt_http_count_add(&c->server->count.refused, 1);
    return refuse(c, 503, "too many connections are open: close those that are not needed, or try again in a moment",
                  &later, 1);
}

static bool admit(mt_http_connection *c)
{
    const mt_http_hooks *hooks = &c->server->config.hooks;
    mt_http_refusal refusal = {.status = 401};
    char seconds[16];
    mt_http_header header = {"www-authenticate", "Bearer"};
    bool admitted;

    if ((c->route->flags & MT_HTTP_PUBLIC) || !hooks->admit)
        return true;
    admitted = hooks->admit(hooks->user, c->request, &refusal);
    c->exchange.who = c->request->who;
    if (admitted)
        return true;
    if (refusal.retry_after) {
        snprintf(seconds, sizeof(seconds), "%d", refusal.retry_after);
        header = (mt_http_header){"retry-after", seconds};
    }
    return refuse_as(c, refusal.status, refusal.code, refusal.text, &header,
                     refusal.status == 401 || refusal.retry_after);
}

/* Whether a request for a WebSocket is a handshake as it should be. */
static bool greet(mt_http_connection *c)
{
    static const mt_http_header known[] = {{"upgrade", "websocket"}, {"sec-websocket-version", "13"}};
    const char *sentence = NULL;
    int status;

    if (c->route->flags & MT_HTTP_SOCKET)
        sentence = mt_http_socket_refusal(c->request, c->exchange.http10, &status);
    return !sentence || refuse(c, status, sentence, known, status == 426 ? MT_COUNT(known) : 0);
}

static bool read_coding(mt_http_connection *c)
{
    static const mt_http_header known = {"accept-encoding", "gzip, deflate, zstd"};
    const char *coding = mt_http_request_header(c->request, "content-encoding");

    return mt_http_coding_read(coding, &c->request->coding) ||
           refuse(c, 415, "the body's content-encoding is not known: send gzip, deflate, zstd, or the body as it is",
                  &known, 1);
}

/* Sends "100 Continue", unless the body comes already. */
static void say_continue(mt_http_connection *c)
{
    static const char words[] = "HTTP/1.1 100 Continue\r\n\r\n";

    if (evbuffer_get_length(bufferevent_get_input(c->bev)) == 0)
        evbuffer_add(mt_http_connection_output(c), words, sizeof(words) - 1);
}

static void begin_exchange(mt_http_connection *c, const mt_http_head *head)
{
    const char *origin = mt_http_field_get(head->headers, head->header_count, "origin");
    const char *allowed = mt_http_cors_origin(&c->server->config, origin);
    const char *name = mt_http_field_get(head->headers, head->header_count, "x-request-id");

    assert(!c->exchange.id && !c->exchange.origin);
    c->exchange = (mt_http_exchange){
        .head_only = head->method == MT_HTTP_HEAD,
        .http10 = head->http10,
        .keep_alive = head->keep_alive,
        .origin = allowed ? mt_strdup(allowed) : NULL,
    };
    c->asked = true;
    c->route = NULL;
    if (name && mt_http_name_valid(name))
        snprintf(c->exchange.name, sizeof(c->exchange.name), "%s", name);
}

/* Where a request is refused before its body is read, the connection cannot be used for another. */
static bool dispatch(mt_http_connection *c, bool has_body)
{
    bool keep_alive = c->exchange.keep_alive;

    c->exchange.keep_alive = keep_alive && !has_body && !c->spare;
    if (!find_route(c) || !settle(c) || !admit(c) || !greet(c) || (has_body && !read_coding(c)))
        return false;
    c->exchange.keep_alive = keep_alive && !c->spare;
    return true;
}

/* Gives the exchange its name, by which it is answered. */
static void name_exchange(mt_http_connection *c, mt_http_request *request)
{
    c->exchange.id = ++c->server->exchange_count << MT_HTTP_SLOT_BITS | c->slot;
    request->handle.id = c->exchange.id;
    mt_http_count_add(&c->server->count.exchanges, 1);
}

/* Hands over a request whose body is still to come. False: it was answered already. */
static bool hand_over(mt_http_connection *c)
{
    mt_http_request *request = c->request;

    c->request = NULL;
    c->exchange.keep_alive = false;
    name_exchange(c, request);
    c->route->handler(c->route->user, c->server, request);
    return c->exchange.id != 0;
}

bool mt_http_dispatch_head(mt_http_connection *c)
{
    bool expected = c->parser.head.expect_continue;
    uint64_t length = c->parser.head.length;
    bool has_body = c->parser.head.chunked || length > 0;

    begin_exchange(c, &c->parser.head);
    c->request = mt_http_request_new(&c->parser.head, c->peer, c->server->config.proxies);
    if (!c->request) {
        mt_http_dispatch_fault(c, 400, "the request's path is not well encoded");
        return false;
    }
    if (!dispatch(c, has_body))
        return false;
    if (c->route->body_bytes)
        c->parser.body_limit = c->route->body_bytes;
    mt_buf_init(&c->body, (size_t)c->parser.body_limit);
    if (expected && length <= c->parser.body_limit)
        say_continue(c);
    return !(c->route->flags & MT_HTTP_STREAMED) || hand_over(c);
}

/* The body is complete that was given to a follower. */
static void end_streamed(mt_http_connection *c)
{
    const mt_http_follower *follower = c->exchange.follower;

    if (follower && follower->body)
        follower->body(c->exchange.follower_user, NULL, 0);
}

void mt_http_dispatch_request(mt_http_connection *c)
{
    mt_http_server *server = c->server;
    mt_http_request *request = c->request;

    if (c->route->flags & MT_HTTP_STREAMED) {
        end_streamed(c);
        return;
    }
    c->request = NULL;
    mt_http_count_sub(&server->count.bodies, c->body.len);
    mt_room_give(server->room, c->charged - c->body.len);
    mt_http_request_set_body(request, &c->body, server->room, c->body.len);
    c->charged = 0;
    name_exchange(c, request);
    if ((c->route->flags & MT_HTTP_SOCKET) && !c->socket)
        mt_http_socket_open(c, request);
    else
        c->route->handler(c->route->user, server, request);
}

void mt_http_dispatch_message(mt_http_connection *c)
{
    if (c->socket->many)
        mt_http_connection_await_more(c);
    else
        mt_http_connection_await_answer(c);
    c->exchange = (mt_http_exchange){.keep_alive = true};
    if (admit(c))
        mt_http_dispatch_request(c);
}
