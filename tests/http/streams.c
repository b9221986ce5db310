/* Answers in pieces: on a timer (/stream), as fast as the client reads (/flood), never (/wait); and whole
   ones after a while, whoever is there by then (/late), or when another client says so (/held, /release). */
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "echo.h"

typedef struct stream {
    mt_http_server *server;
    mt_http_handle handle;
    struct event *timer;
    long pieces, size, ms;
    bool rude, paused;
    char *data;
} stream;

static void stream_free(stream *s)
{
    event_free(s->timer);
    free(s->data);
    free(s);
    atomic_fetch_sub(&echo.live, 1);
}

static void on_gone(void *user)
{
    atomic_fetch_add(&echo.gone, 1);
    stream_free(user);
}

static void schedule(stream *s)
{
    struct timeval tv = {.tv_sec = s->ms / 1000, .tv_usec = s->ms % 1000 * 1000};

    event_add(s->timer, &tv);
}

static void on_paused(void *user, bool paused)
{
    stream *s = user;

    atomic_fetch_add(&echo.pauses, paused);
    s->paused = paused && !s->rude;
    if (!s->paused)
        schedule(s);
}

static const mt_http_follower follower = {.gone = on_gone, .paused = on_paused};

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    stream *s = arg;

    (void)fd, (void)what;
    if (s->pieces-- > 0) {
        mt_buf event;
        bool sent;

        mt_buf_init(&event, SIZE_MAX / 4);
        mt_buf_printf(&event, "data: %.*s\n\n", (int)s->size, s->data);
        sent = mt_http_write(s->server, s->handle, event.data, event.len);
        mt_buf_free(&event);
        if (sent && !s->paused)
            schedule(s);
        return;
    }
    mt_http_end(s->server, s->handle);
    stream_free(s);
}

static stream *stream_new(mt_http_server *server, mt_http_request *request)
{
    stream *s = calloc(1, sizeof(*s));

    s->server = server;
    s->handle = request->handle;
    s->timer = evtimer_new(mt_http_server_loop(server), on_tick, s);
    s->pieces = echo_query(request, "n", 10);
    s->size = echo_query(request, "size", 10);
    s->ms = echo_query(request, "ms", 0);
    s->data = malloc((size_t)s->size + 1);
    memset(s->data, 'x', (size_t)s->size);
    atomic_fetch_add(&echo.live, 1);
    mt_http_follow(server, request->handle, &follower, s);
    return s;
}

static void begin(stream *s, mt_http_request *request)
{
    mt_http_response response = {.status = 200, .type = "text/event-stream"};

    mt_http_begin(s->server, s->handle, &response);
    mt_http_request_free(request);
    schedule(s);
}

void echo_stream(void *user, mt_http_server *server, mt_http_request *request)
{
    (void)user;
    begin(stream_new(server, request), request);
}

/* Heeds no pause when asked for rude=1. */
void echo_flood(void *user, mt_http_server *server, mt_http_request *request)
{
    stream *s = stream_new(server, request);

    (void)user;
    s->rude = echo_query(request, "rude", 0) != 0;
    begin(s, request);
}

typedef struct late {
    mt_http_server *server;
    mt_http_handle handle;
} late;

static void on_late(evutil_socket_t fd, short what, void *arg)
{
    late *l = arg;
    mt_http_response response = {.status = 200, .type = "text/plain"};

    (void)fd, (void)what;
    mt_http_answer(l->server, l->handle, &response, "late", 4);
    free(l);
}

/* Does not follow its client: it answers through its handle in any case. */
void echo_late(void *user, mt_http_server *server, mt_http_request *request)
{
    late *l = calloc(1, sizeof(*l));
    const long ms = echo_query(request, "ms", 0);
    struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

    (void)user;
    *l = (late){.server = server, .handle = request->handle};
    event_base_once(mt_http_server_loop(server), -1, EV_TIMEOUT, on_late, l, &tv);
    mt_http_request_free(request);
}

static mt_http_handle held;

static void answer_held(mt_http_server *server, mt_http_handle handle)
{
    mt_http_response response = {.status = 200, .type = "text/plain"};

    mt_http_answer(server, handle, &response, "held", 4);
}

void echo_held(void *user, mt_http_server *server, mt_http_request *request)
{
    (void)user;
    (void)server;
    held = request->handle;
    mt_http_request_free(request);
}

void echo_release(void *user, mt_http_server *server, mt_http_request *request)
{
    (void)user;
    answer_held(server, held);
    answer_held(server, request->handle);
    mt_http_request_free(request);
}

void echo_wait(void *user, mt_http_server *server, mt_http_request *request)
{
    (void)user;
    stream_new(server, request);
    mt_http_request_free(request);
}
