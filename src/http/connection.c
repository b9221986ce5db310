/* A connection is a parser, at most one exchange, and a bufferevent. Only the io thread uses it.

   1. One exchange at a time: the next request is not parsed before the answer is complete, so answers leave in order.
      What a client sends ahead waits in the input buffer, at most limits.pipeline_bytes of it. The exception is a
      WebSocket with MT_HTTP_SOCKET_MANY: `exchange` is then the one that is written to, and the others are set aside.
   2. Reading never stops while a handler works, since reading is how we learn that a client has left. So a client that
      fills the input buffer while it is answered is cut off.
   3. If the client shuts its side before the answer is complete, it has left, and the work for it is cancelled. An
      answer that is complete by then is still delivered.
   4. Memory is freed by the timer's callback, or where another connection needs the room (crowd.c), and nowhere else
      while the loop runs: inside of handlers and answering functions a connection is only doomed. Callbacks of
      bufferevents are deferred for the same reason: a write never calls back into us.
   5. Closing: the answer is sent, our side is shut, and the client's end is awaited for linger_ms. Closing with unread
      bytes would send a reset, which may overtake the answer; so the rest of a body is read and dropped, for as long as
      a body may take. */
#include "http/connection.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/limits.h"
#include "http/response.h"

#define STREAMED (1u << 20) /* bytes of a streamed body that may take as long as a whole body otherwise */

struct evbuffer *mt_http_connection_output(mt_http_connection *c)
{
    return bufferevent_get_output(c->bev);
}

size_t mt_http_connection_waiting(mt_http_connection *c)
{
    return evbuffer_get_length(bufferevent_get_output(c->bev));
}

static void set_timer(mt_http_connection *c, int ms)
{
    struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

    event_add(c->timer, &tv);
}

/* Milliseconds until a WebSocket is as old as it may be; where it is, a moment for what waits to be read. */
static int socket_left(const mt_http_connection *c)
{
    const uint64_t now = mt_clock_ns();

    return c->socket->until > now ? (int)((c->socket->until - now) / 1000000) + 1 : 100;
}

/* No byte of a request has come. */
static bool is_idle(const mt_http_connection *c)
{
    return c->socket ? mt_frames_idle(&c->socket->frames) : mt_http_parser_idle(&c->parser);
}

/* Sets the alarm of a phase once: bytes that trickle in do not postpone it. */
static void set_alarm(mt_http_connection *c, mt_http_alarm alarm)
{
    const mt_http_limits *limits = &c->server->limits;

    if (c->alarm == alarm)
        return;
    c->alarm = alarm;
    switch (alarm) {
    case MT_HTTP_ALARM_NONE: event_del(c->timer); break;
    case MT_HTTP_ALARM_IDLE: set_timer(c, c->socket ? socket_left(c) : limits->idle_ms); break;
    case MT_HTTP_ALARM_HEAD: set_timer(c, limits->head_ms); break;
    case MT_HTTP_ALARM_BODY: set_timer(c, limits->body_ms); break;
    }
}

void mt_http_connection_doom(mt_http_connection *c)
{
    if (c->doomed)
        return;
    c->doomed = true;
    bufferevent_disable(c->bev, EV_READ | EV_WRITE);
    event_active(c->timer, EV_TIMEOUT, 0);
}

void mt_http_connection_drop_request(mt_http_connection *c)
{
    mt_http_count_sub(&c->server->count.bodies, c->body.len);
    mt_room_give(c->server->room, c->charged);
    c->charged = 0;
    mt_buf_free(&c->body);
    mt_http_request_free(c->request);
    c->request = NULL;
}

bool mt_http_connection_turn_to(mt_http_connection *c, uint64_t id)
{
    const mt_http_exchange own = c->exchange;

    if (own.id == id)
        return true;
    for (size_t i = 0; c->socket && i < c->socket->other_count; i++)
        if (c->socket->others[i].id == id) {
            c->exchange = c->socket->others[i];
            c->socket->others[i] = own;
            return true;
        }
    return false;
}

/* Another exchange of the connection, where there is one, becomes its own. */
static void end_exchange(mt_http_connection *c)
{
    if (c->exchange.id)
        mt_http_count_sub(&c->server->count.exchanges, 1);
    mt_free(c->exchange.origin);
    mt_free(c->exchange.errors);
    c->exchange = (mt_http_exchange){0};
    if (c->socket && c->socket->other_count)
        c->exchange = c->socket->others[--c->socket->other_count];
    c->held = false;
}

/* Ends an exchange that is not complete, and tells its follower. */
static void end_early(mt_http_connection *c)
{
    const mt_http_follower *follower = c->exchange.follower;
    void *user = c->exchange.follower_user;

    mt_http_count_add(&c->server->count.gone, 1);
    end_exchange(c);
    if (follower && follower->gone)
        follower->gone(user);
}

/* Drops what comes while the connection lingers. */
static void discard(mt_http_connection *c)
{
    struct evbuffer *input = bufferevent_get_input(c->bev);

    evbuffer_drain(input, evbuffer_get_length(input));
    if (mt_clock_ns() < c->linger_until)
        set_timer(c, c->server->limits.linger_ms);
}

/* Shuts our side once everything is sent. */
static void linger(mt_http_connection *c)
{
    c->phase = MT_HTTP_LINGERING;
    if (c->eof) {
        mt_http_connection_doom(c);
        return;
    }
    mt_http_tls_shut(c->bev);
    shutdown(bufferevent_getfd(c->bev), SHUT_WR);
    c->linger_until = mt_clock_ns() + (uint64_t)c->server->limits.body_ms * 1000000;
    discard(c);
}

void mt_http_connection_close(mt_http_connection *c)
{
    if (c->socket)
        c->server->up->leave_socket(c);
    end_exchange(c);
    set_alarm(c, MT_HTTP_ALARM_NONE);
    c->phase = MT_HTTP_CLOSING;
    bufferevent_trigger(c->bev, EV_WRITE, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

void mt_http_connection_leave(mt_http_connection *c)
{
    const mt_http_follower *follower = c->exchange.follower;
    void *user = c->exchange.follower_user;

    if (c->exchange.id)
        mt_http_count_add(&c->server->count.gone, 1);
    mt_http_connection_close(c);
    if (follower && follower->gone)
        follower->gone(user);
    while (c->exchange.id)
        end_early(c);
}

void mt_http_connection_close_idle(mt_http_connection *c)
{
    if (c->phase == MT_HTTP_READING_HEAD && !c->exchange.id && is_idle(c) &&
        evbuffer_get_length(bufferevent_get_input(c->bev)) == 0)
        mt_http_connection_close(c);
}

void mt_http_connection_finish(mt_http_connection *c)
{
    const bool many = c->socket && c->socket->many;

    if (c->doomed)
        return;
    if (!(many && c->socket->other_count) && (!c->exchange.keep_alive || c->server->draining)) {
        mt_http_connection_close(c);
        return;
    }
    end_exchange(c);
    c->quiet = mt_clock_ns();
    if (!many || c->phase == MT_HTTP_ANSWERING) { /* else a message may be coming */
        c->phase = MT_HTTP_READING_HEAD;
        set_alarm(c, MT_HTTP_ALARM_IDLE);
    }
    if (!c->advancing) /* what the client sent ahead is read from the loop, not from inside of an answer */
        bufferevent_trigger(c->bev, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

/* The client has shut its side, or nothing more that it sends can be used. */
static void end_of_input(mt_http_connection *c)
{
    if (mt_http_connection_waiting(c) == 0)
        mt_http_connection_doom(c);
    else
        mt_http_connection_leave(c); /* what was answered before is still sent */
}

/* Takes bytes of the room; a growing buffer allocates up to twice its length. Large bodies leave a quarter of the room
   to small ones: a client that sends many, or slowly, does not keep small requests of others out. */
static bool charge(mt_http_connection *c, size_t len)
{
    const size_t all = c->body.len + len, cost = 2 * all - c->charged;
    mt_room *room = c->server->room;

    if (!mt_room_take_leaving(room, cost, all > MT_LIMIT_SMALL_BODY ? room->limit / 4 : 0))
        return false;
    c->charged += cost;
    return true;
}

bool mt_http_connection_add_body(mt_http_connection *c, const char *piece, size_t len)
{
    if (!charge(c, len)) {
        c->server->up->fault(c, 503, "too many large requests are being read at once: try again in a moment");
        return false;
    }
    if (!mt_buf_add(&c->body, piece, len)) {
        c->server->up->fault(c, 503, "the system has no memory for this request: try again in a moment");
        return false;
    }
    mt_http_count_add(&c->server->count.bodies, len);
    return true;
}

static void add_body(mt_http_connection *c, const char *piece, size_t len)
{
    mt_http_connection_add_body(c, piece, len);
}

/* Gives a piece of a streamed body to its follower. There is no limit on how long all of it may take, but on how long
   STREAMED bytes may: a client that sends slower than that is disconnected, so that it keeps no others out. */
static void stream_body(mt_http_connection *c, const char *piece, size_t len)
{
    const mt_http_follower *follower = c->exchange.follower;

    c->streamed += len;
    if (c->streamed >= STREAMED) {
        c->streamed = 0;
        c->alarm = MT_HTTP_ALARM_NONE;
        set_alarm(c, MT_HTTP_ALARM_BODY);
    }
    if (follower && follower->body)
        follower->body(c->exchange.follower_user, piece, len);
}

void mt_http_connection_hold(mt_http_connection *c, bool held)
{
    if (c->held == held || c->phase != MT_HTTP_READING_BODY)
        return;
    c->held = held;
    set_alarm(c, held ? MT_HTTP_ALARM_NONE : MT_HTTP_ALARM_BODY);
    if (!held)
        bufferevent_trigger(c->bev, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

void mt_http_connection_await_answer(mt_http_connection *c)
{
    c->phase = MT_HTTP_ANSWERING;
    set_alarm(c, MT_HTTP_ALARM_NONE);
}

void mt_http_connection_await_more(mt_http_connection *c)
{
    if (c->exchange.id)
        c->socket->others[c->socket->other_count++] = c->exchange;
    c->phase = MT_HTTP_READING_HEAD;
    set_alarm(c, MT_HTTP_ALARM_IDLE);
}

static void handle_event(mt_http_connection *c, mt_http_event event)
{
    switch (event) {
    case MT_HTTP_GOT_HEAD:
        if (c->server->up->head(c)) {
            c->phase = MT_HTTP_READING_BODY;
            set_alarm(c, MT_HTTP_ALARM_BODY);
        }
        break;
    case MT_HTTP_GOT_END:
        if (c->phase == MT_HTTP_READING_BODY) { /* else it was answered when its head came */
            mt_http_connection_await_answer(c);
            c->server->up->request(c);
        }
        break;
    case MT_HTTP_BAD: c->server->up->fault(c, c->parser.fault.status, c->parser.fault.sentence); break;
    case MT_HTTP_GOT_BODY:
    case MT_HTTP_NEED: break;
    }
}

/* A WebSocket answers as many messages as it may. */
static bool is_full(const mt_http_connection *c)
{
    return c->socket && c->socket->other_count == MT_LIMIT_HTTP_SOCKET_MANY;
}

static bool reads(const mt_http_connection *c)
{
    return !c->doomed && !c->held && !is_full(c) &&
           (c->phase == MT_HTTP_READING_HEAD || c->phase == MT_HTTP_READING_BODY);
}

/* A message must come within the time of a body; between messages a WebSocket may be silent. */
static mt_http_event parse_socket(mt_http_connection *c)
{
    const mt_http_event event = c->server->up->read_socket(c);

    if (reads(c) && c->socket->frames.open) {
        c->phase = MT_HTTP_READING_BODY;
        set_alarm(c, MT_HTTP_ALARM_BODY);
    } else if (reads(c) && is_idle(c)) {
        set_alarm(c, MT_HTTP_ALARM_IDLE);
    }
    return event;
}

/* Parses one event from one contiguous piece of the input. */
static mt_http_event parse_some(mt_http_connection *c)
{
    struct evbuffer *input = bufferevent_get_input(c->bev);
    struct evbuffer_iovec piece = {.iov_base = "", .iov_len = 0};
    mt_http_event event;
    size_t used;

    if (c->socket)
        return parse_socket(c);
    evbuffer_peek(input, -1, NULL, &piece, 1);
    event = mt_http_parser_next(&c->parser, piece.iov_base, piece.iov_len, &used);
    if (event == MT_HTTP_GOT_BODY) /* before draining: the piece lies in the input */
        (c->route->flags & MT_HTTP_STREAMED ? stream_body : add_body)(c, c->parser.piece, c->parser.piece_len);
    evbuffer_drain(input, used);
    handle_event(c, event);
    return event;
}

static void await_more(mt_http_connection *c)
{
    if (c->eof)
        end_of_input(c);
    else if (c->phase == MT_HTTP_READING_HEAD && !is_idle(c))
        set_alarm(c, MT_HTTP_ALARM_HEAD);
}

/* Reads requests until a handler is at work, more bytes are needed, or the client does not read its answers. */
static void read_requests(mt_http_connection *c)
{
    for (unsigned turn = 0; reads(c) && mt_http_connection_waiting(c) <= c->server->limits.output_pause;) {
        mt_http_event event = parse_some(c);

        if (event == MT_HTTP_NEED && evbuffer_get_length(bufferevent_get_input(c->bev)) == 0) {
            if (reads(c))
                await_more(c);
            return;
        }
        if (event == MT_HTTP_GOT_END && ++turn == MT_LIMIT_HTTP_TURN) { /* other connections have their turn */
            bufferevent_trigger(c->bev, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
            return;
        }
    }
}

/* While a message of a WebSocket is answered, pings are, too. A frame may lie in two pieces of the input, of which each
   call reads one. */
static void read_controls(mt_http_connection *c)
{
    struct evbuffer *input = bufferevent_get_input(c->bev);
    bool more = true;

    while (more && !c->doomed && c->phase == MT_HTTP_ANSWERING &&
           mt_http_connection_waiting(c) <= c->server->limits.output_pause) {
        const size_t before = evbuffer_get_length(input);

        more = c->server->up->read_socket(c) == MT_HTTP_GOT_END || evbuffer_get_length(input) < before;
    }
}

static void advance(mt_http_connection *c)
{
    c->advancing = true;
    if (c->socket && c->phase == MT_HTTP_ANSWERING)
        read_controls(c);
    else
        read_requests(c);
    c->advancing = false;
}

static void on_readable(struct bufferevent *bev, void *arg)
{
    mt_http_connection *c = arg;
    struct evbuffer *input = bufferevent_get_input(bev);
    const bool answering = c->phase == MT_HTTP_ANSWERING || is_full(c);

    if (c->doomed)
        return;
    if (c->phase == MT_HTTP_LINGERING) {
        discard(c);
        return;
    }
    if (!answering || c->socket)
        advance(c);
    if (answering && !c->doomed && (c->phase == MT_HTTP_ANSWERING || is_full(c)) &&
        evbuffer_get_length(input) >= c->server->limits.pipeline_bytes) {
        mt_log_warn("http.pipeline", "client %s sent too much ahead of its answer and is cut off", c->peer);
        mt_http_connection_doom(c);
    }
}

static void on_writable(struct bufferevent *bev, void *arg)
{
    mt_http_connection *c = arg;

    (void)bev;
    if (c->doomed)
        return;
    c->server->up->resume(c);
    if (c->phase == MT_HTTP_CLOSING && mt_http_connection_waiting(c) == 0)
        linger(c);
    else
        advance(c); /* requests may have waited for the output to drain */
}

static void on_end(mt_http_connection *c)
{
    c->eof = true;
    if (c->phase == MT_HTTP_ANSWERING || c->phase == MT_HTTP_LINGERING)
        mt_http_connection_doom(c);
    else if (c->phase != MT_HTTP_CLOSING)
        advance(c);
}

/* Where the loop was held up, the timeout of a write is seen before the fact that the client could read all the
   while. */
static void on_send_timeout(mt_http_connection *c)
{
    struct pollfd room = {.fd = bufferevent_getfd(c->bev), .events = POLLOUT};

    if (poll(&room, 1, 0) == 1) {
        bufferevent_enable(c->bev, EV_WRITE); /* libevent has disabled it */
        return;
    }
    mt_http_count_add(&c->server->count.slow, 1);
    mt_log_warn("http.slow", "client %s takes nothing of the %zu bytes that wait for it and is dropped", c->peer,
                mt_http_connection_waiting(c));
    mt_http_connection_doom(c);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    mt_http_connection *c = arg;

    (void)bev;
    if (c->doomed || (what & BEV_EVENT_CONNECTED)) /* the TLS handshake is done */
        return;
    if (what & BEV_EVENT_TIMEOUT) {
        on_send_timeout(c);
    } else if ((what & BEV_EVENT_EOF) && !(what & BEV_EVENT_WRITING)) {
        on_end(c);
    } else {
        mt_http_connection_doom(c);
    }
}

/* Where the loop was held up, the timeout is seen before what came meanwhile. */
static void on_linger_timeout(mt_http_connection *c)
{
    if (mt_clock_ns() < c->linger_until && evbuffer_get_length(bufferevent_get_input(c->bev)) > 0)
        discard(c);
    else
        mt_http_connection_doom(c);
}

static void on_alarm(mt_http_connection *c)
{
    c->alarm = MT_HTTP_ALARM_NONE;
    if (c->phase == MT_HTTP_LINGERING) {
        on_linger_timeout(c);
    } else if (!is_idle(c)) {
        mt_http_count_add(&c->server->count.timed_out, 1);
        c->server->up->fault(c, 408, "the request did not arrive in time");
    } else if (mt_http_connection_waiting(c) > 0 || c->exchange.id) {
        set_alarm(c, MT_HTTP_ALARM_IDLE); /* the client reads its last answer; limits.send_ms bounds that */
    } else if (c->socket) {
        c->server->up->expire_socket(c);
    } else {
        mt_http_connection_doom(c);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    mt_http_connection *c = arg;

    (void)fd, (void)what;
    if (!c->doomed)
        on_alarm(c);
    if (c->doomed)
        mt_http_connection_free(c);
}

static void count_in(struct evbuffer *buffer, const struct evbuffer_cb_info *info, void *arg)
{
    (void)buffer;
    mt_http_count_add(&((mt_http_server *)arg)->count.bytes_in, info->n_added);
}

static void count_out(struct evbuffer *buffer, const struct evbuffer_cb_info *info, void *arg)
{
    (void)buffer;
    mt_http_count_add(&((mt_http_server *)arg)->count.bytes_out, info->n_deleted);
}

static void set_up_bufferevent(mt_http_connection *c)
{
    const mt_http_limits *limits = &c->server->limits;
    struct timeval send = {.tv_sec = limits->send_ms / 1000, .tv_usec = limits->send_ms % 1000 * 1000};

    bufferevent_setcb(c->bev, on_readable, on_writable, on_event, c);
    bufferevent_setwatermark(c->bev, EV_READ, 0, limits->pipeline_bytes);
    bufferevent_setwatermark(c->bev, EV_WRITE, limits->output_pause / 2, 0); /* below this a paused answer goes on */
    bufferevent_set_timeouts(c->bev, NULL, &send);
    evbuffer_add_cb(bufferevent_get_input(c->bev), count_in, c->server);
    evbuffer_add_cb(bufferevent_get_output(c->bev), count_out, c->server);
    bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

mt_http_connection *mt_http_connection_new(mt_http_server *server, int fd, uint32_t slot, const char *peer)
{
    struct bufferevent *bev = mt_http_tls_bufferevent(server->tls, server->loop, fd);
    mt_http_connection *c;

    if (!bev)
        return NULL;
    c = mt_alloc(sizeof(*c));
    c->server = server;
    c->slot = slot;
    c->quiet = mt_clock_ns();
    c->bev = bev;
    c->timer = evtimer_new(server->loop, on_timer, c);
    snprintf(c->peer, sizeof(c->peer), "%s", peer);
    mt_http_parser_init(&c->parser, &server->limits);
    set_up_bufferevent(c);
    set_alarm(c, server->tls ? MT_HTTP_ALARM_HEAD : MT_HTTP_ALARM_IDLE); /* a TLS handshake must not take long */
    return c;
}

static void free_socket(mt_http_connection *c)
{
    const mt_http_hooks *hooks = &c->server->config.hooks;

    if (!c->socket)
        return;
    if (hooks->socket_closed)
        hooks->socket_closed(hooks->user, c->socket->state);
    mt_http_request_free(c->socket->greeting);
    mt_free(c->socket);
}

void mt_http_connection_free(mt_http_connection *c)
{
    const mt_http_follower *follower;
    void *user;

    while (c->socket && c->socket->other_count)
        end_early(c);
    follower = c->exchange.follower;
    user = c->exchange.follower_user;
    if (c->exchange.id)
        mt_http_count_add(&c->server->count.gone, 1);
    end_exchange(c);
    mt_http_connection_drop_request(c);
    mt_http_parser_free(&c->parser);
    free_socket(c);
    bufferevent_setcb(c->bev, NULL, NULL, NULL, NULL);
    bufferevent_free(c->bev);
    event_free(c->timer);
    c->server->up->forget(c);
    mt_free(c);
    if (follower && follower->gone)
        follower->gone(user);
}
