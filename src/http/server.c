/* The server owns the event loop, the listening sockets, and a slot for each connection. The io thread owns all of it;
   other threads may only call mt_http_server_drain and read the counters.

   A handle is a count of exchanges and a slot. The count makes it unique for the life of the server, so a late answer
   finds either its own exchange or none, without a list of handles. */
#include "http/server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/listener.h>

#include "base/alloc.h"
#include "base/log.h"
#include "http/connection.h"
#include "http/dispatch.h"
#include "http/limits.h"
#include "http/response.h"
#include "http/router.h"
#include "http/socket.h"

/* Descriptors that the rest of the program needs; times in milliseconds and seconds. */
enum { OTHER_FILES = 256, LISTEN_PAUSE_MS = 100, KEEPALIVE_IDLE_S = 30, KEEPALIVE_EACH_S = 10, KEEPALIVE_TRIES = 3 };

mt_http_limits mt_http_limits_default(void)
{
    return (mt_http_limits){
        .connections = MT_LIMIT_HTTP_CONNECTIONS,
        .spare = MT_LIMIT_HTTP_SPARE,
        .head_bytes = MT_LIMIT_HTTP_HEAD_BYTES,
        .headers = MT_LIMIT_HTTP_HEADERS,
        .body_bytes = MT_LIMIT_HTTP_BODY_BYTES,
        .bodies_bytes = MT_LIMIT_HTTP_BODIES_BYTES,
        .pipeline_bytes = MT_LIMIT_HTTP_PIPELINE_BYTES,
        .output_pause = MT_LIMIT_HTTP_OUTPUT_PAUSE,
        .output_drop = MT_LIMIT_HTTP_OUTPUT_DROP,
        .idle_ms = MT_LIMIT_HTTP_IDLE_MS,
        .head_ms = MT_LIMIT_HTTP_HEAD_MS,
        .body_ms = MT_LIMIT_HTTP_BODY_MS,
        .send_ms = MT_LIMIT_HTTP_SEND_MS,
        .linger_ms = MT_LIMIT_HTTP_LINGER_MS,
        .socket_ms = MT_LIMIT_HTTP_SOCKET_MS,
    };
}

void mt_http_server_owned(const mt_http_server *server)
{
    assert(!server->running || pthread_equal(server->io, pthread_self()));
}

static struct timeval milliseconds(int ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

/* Small events are sent at once, and a client whose machine was switched off is noticed while nothing is sent. */
static void tune_socket(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
#ifdef TCP_KEEPIDLE
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){KEEPALIVE_IDLE_S}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){KEEPALIVE_EACH_S}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &(int){KEEPALIVE_TRIES}, sizeof(int));
#endif
}

static void name_peer(const struct sockaddr *address, char *text, size_t size)
{
    snprintf(text, size, "unix");
    if (address->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text, (socklen_t)size);
    else if (address->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, text, (socklen_t)size);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int len, void *arg)
{
    mt_http_server *server = arg;
    char peer[INET6_ADDRSTRLEN];
    mt_http_connection *c;
    mt_http_peer *from;
    uint32_t slot;
    bool room;

    (void)listener, (void)len;
    if (address->sa_family != AF_UNIX)
        tune_socket(fd);
    name_peer(address, peer, sizeof(peer));
    from = mt_http_crowd_peer(&server->crowd, peer);
    room = mt_http_crowd_make_room(server, from);
    if (!room)
        mt_http_crowd_make_spare(server);
    slot = server->free_slots[server->free_count - 1];
    c = mt_http_connection_new(server, fd, slot, peer);
    if (!c) {
        mt_http_count_add(&server->count.refused, 1);
        return;
    }
    mt_http_crowd_enter(&server->crowd, from, c, !room);
    server->slots[slot] = c;
    server->free_count--;
    mt_http_count_add(&server->count.open, 1);
    mt_http_count_add(&server->count.accepted, 1);
}

static void stop_listening(mt_http_server *server)
{
    for (size_t i = 0; i < server->sockets.count; i++)
        if (server->listeners[i])
            evconnlistener_free(server->listeners[i]);
    memset(server->listeners, 0, sizeof(server->listeners));
    mt_http_sockets_close(&server->sockets);
}

/* asked: leaves open the connections on which no request has come yet, since one may be on its way. */
static void close_idle_connections(mt_http_server *server, bool asked)
{
    for (size_t i = 0; i < server->slot_count; i++)
        if (server->slots[i] && (server->slots[i]->asked || !asked))
            mt_http_connection_close_idle(server->slots[i]);
}

/* Ends the loop once no client is connected; before, listening ends once no exchange runs and leave_ms are over. */
static void stop_if_drained(mt_http_server *server)
{
    if (!server->draining || server->leaving)
        return;
    if (server->sockets.count > 0 && mt_http_count_get(&server->count.exchanges) == 0) {
        stop_listening(server);
        close_idle_connections(server, false);
    }
    if (server->sockets.count == 0 && server->free_count == server->slot_count)
        event_base_loopbreak(server->loop);
}

static void forget(mt_http_connection *c)
{
    mt_http_server *server = c->server;

    mt_http_crowd_leave(&server->crowd, c);
    server->slots[c->slot] = NULL;
    server->free_slots[server->free_count++] = c->slot;
    mt_http_count_sub(&server->count.open, 1);
    stop_if_drained(server);
}

static void on_listen_again(evutil_socket_t fd, short what, void *arg)
{
    mt_http_server *server = arg;

    (void)fd, (void)what;
    for (size_t i = 0; i < server->sockets.count; i++)
        if (server->listeners[i])
            evconnlistener_enable(server->listeners[i]);
}

/* The process has no descriptors left: another connection is closed. Where none can be, listening pauses, since the
   waiting connection would wake the loop again and again. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
    static const mt_http_peer anybody;
    mt_http_server *server = arg;
    struct timeval pause = milliseconds(LISTEN_PAUSE_MS);
    const int error = errno;

    if ((error == EMFILE || error == ENFILE) && mt_http_crowd_close_one(server, &anybody))
        return;
    mt_log_warn("http.accept", "a connection cannot be accepted: %s", strerror(error));
    evconnlistener_disable(listener);
    event_add(server->listen_again, &pause);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    mt_http_server *server = arg;

    (void)fd, (void)what;
    server->leaving = false;
    stop_listening(server);
    for (size_t i = 0; i < server->slot_count; i++)
        if (server->slots[i])
            mt_http_connection_doom(server->slots[i]);
    stop_if_drained(server);
}

static void on_left(evutil_socket_t fd, short what, void *arg)
{
    mt_http_server *server = arg;

    (void)fd, (void)what;
    server->leaving = false;
    stop_if_drained(server);
}

static void on_drain(evutil_socket_t fd, short what, void *arg)
{
    mt_http_server *server = arg;
    /* Relaxed: the queue that woke us was closed after the store, under its lock. */
    struct timeval deadline = milliseconds(atomic_load_explicit(&server->drain_ms, memory_order_relaxed));

    (void)fd, (void)what;
    server->draining = true;
    if (server->leave_ms < 0)
        stop_listening(server);
    close_idle_connections(server, server->leave_ms >= 0);
    event_add(server->deadline_event, &deadline);
    if (server->leave_ms > 0) {
        const struct timeval leave = milliseconds(server->leave_ms);

        server->leaving = true;
        event_add(server->leave_event, &leave);
    }
    stop_if_drained(server);
}

void mt_http_server_leave(mt_http_server *server, int ms)
{
    mt_http_server_owned(server);
    server->leave_ms = ms;
}

void mt_http_server_drain(mt_http_server *server, int deadline_ms)
{
    int unset = -1;

    if (atomic_compare_exchange_strong(&server->drain_ms, &unset, deadline_ms))
        mt_queue_close(server->drain_wish);
}

static bool open_listeners(mt_http_server *server, const mt_http_config *config, mt_error *err)
{
    if (!mt_http_sockets_open(&server->sockets, config->host, config->port, err))
        return false;
    for (size_t i = 0; i < server->sockets.count; i++) {
        server->listeners[i] = evconnlistener_new(
            server->loop, on_accept, server, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, server->sockets.fds[i]);
        if (!server->listeners[i])
            return mt_fail(err, MT_E_IO, "cannot listen at \"%s\": %s", config->host, strerror(errno));
        server->sockets.fds[i] = -1; /* owned by the listener now */
        evconnlistener_set_error_cb(server->listeners[i], on_accept_error);
    }
    return true;
}

/* libevent's allocator, which does not check all allocations. Forbidden zones are suspended, since MPI's loop uses
   libevent within steps. */
static void *give_memory(size_t size)
{
    const unsigned suspended = mt_alloc_suspend();
    void *ptr = mt_alloc(size);

    mt_alloc_resume(suspended);
    return ptr;
}

static void *resize_memory(void *ptr, size_t size)
{
    const unsigned suspended = mt_alloc_suspend();
    void *resized = mt_realloc(ptr, size, size);

    mt_alloc_resume(suspended);
    return resized;
}

static bool open_loop(mt_http_server *server, mt_error *err)
{
    event_set_mem_functions(give_memory, resize_memory, mt_free);
    server->loop = event_base_new();
    server->drain_wish = mt_queue_new(1);
    if (!server->loop || !server->drain_wish)
        return mt_fail(err, MT_E_IO, "the system gives no event loop: raise the limit of open files");
    server->drain_event = event_new(server->loop, mt_queue_fd(server->drain_wish), EV_READ, on_drain, server);
    server->deadline_event = evtimer_new(server->loop, on_deadline, server);
    server->leave_event = evtimer_new(server->loop, on_left, server);
    server->listen_again = evtimer_new(server->loop, on_listen_again, server);
    event_add(server->drain_event, NULL);
    return true;
}

static bool open_tls(mt_http_server *server, const mt_http_config *config, mt_error *err)
{
    if (!config->tls_certificate && !config->tls_key)
        return true;
    if (!config->tls_certificate || !config->tls_key)
        return mt_fail(err, MT_E_INVALID, "TLS needs a certificate file and a key file: give both");
    server->tls = mt_http_tls_new(config->tls_certificate, config->tls_key, err);
    return server->tls != NULL;
}

bool mt_http_server_certify(mt_http_server *server, const char *certificate, const char *key, mt_error *err)
{
    mt_http_tls *tls = mt_http_tls_new(certificate, key, err);

    if (!tls)
        return false;
    mt_http_tls_free(server->tls); /* open connections keep what they need of it */
    server->tls = tls;
    return true;
}

/* The number of connections for which there are descriptors, besides those of the rest of the program. Raises the soft
   limit, which is meant for programs that use select(). */
static size_t connections_within(size_t wanted, size_t spare)
{
    const rlim_t needed = wanted + wanted / 3 + 1 + spare + OTHER_FILES;
    struct rlimit files;
    size_t fits;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return wanted;
    if (files.rlim_cur < needed) {
        files.rlim_cur = files.rlim_max < needed ? files.rlim_max : needed;
        if (setrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= needed)
            return wanted;
        fits = files.rlim_cur > spare + OTHER_FILES ? (size_t)(files.rlim_cur - spare - OTHER_FILES) / 4 * 3 : 1;
        mt_log_warn("http.files", "room for %zu connections, not %zu: raise the limit of open files (ulimit -n)",
                    fits > 0 ? fits : 1, wanted);
        return fits > 0 ? fits : 1;
    }
    return wanted;
}

static void make_slots(mt_http_server *server)
{
    size_t count = connections_within(server->limits.connections, server->limits.spare);

    mt_http_crowd_init(&server->crowd, count, server->limits.spare);
    count = server->slot_count = server->crowd.all + server->crowd.spare;
    assert(server->limits.spare > 0 && count <= 1u << MT_HTTP_SLOT_BITS);
    server->slots = mt_alloc_array(count, sizeof(*server->slots));
    server->free_slots = mt_alloc_array(count, sizeof(*server->free_slots));
    for (size_t i = 0; i < count; i++)
        server->free_slots[i] = (uint32_t)(count - 1 - i);
    server->free_count = count;
}

static const mt_http_upward upward = {.head = mt_http_dispatch_head,
                                      .request = mt_http_dispatch_request,
                                      .fault = mt_http_dispatch_fault,
                                      .resume = mt_http_response_resume,
                                      .forget = forget,
                                      .message = mt_http_dispatch_message,
                                      .read_socket = mt_http_socket_read,
                                      .expire_socket = mt_http_socket_expire,
                                      .leave_socket = mt_http_socket_leave};

mt_http_server *mt_http_server_new(const mt_http_config *config, mt_error *err)
{
    mt_http_server *server = mt_alloc(sizeof(*server));

    server->up = &upward;
    server->config = *config;
    server->limits = config->limits;
    server->own_room.limit = config->limits.bodies_bytes;
    server->room = config->room ? config->room : &server->own_room;
    atomic_init(&server->drain_ms, -1);
    server->leave_ms = -1;
    signal(SIGPIPE, SIG_IGN); /* writing to a client that has left is an error of that write alone */
    make_slots(server);
    if (mt_http_router_check(config->routes, config->route_count, err) && open_tls(server, config, err) &&
        open_loop(server, err) && open_listeners(server, config, err))
        return server;
    mt_http_server_free(server);
    return NULL;
}

static void free_event(struct event *event)
{
    if (event)
        event_free(event);
}

void mt_http_server_free(mt_http_server *server)
{
    if (!server)
        return;
    assert(!server->running);
    for (size_t i = 0; i < server->slot_count; i++)
        if (server->slots[i])
            mt_http_connection_free(server->slots[i]);
    stop_listening(server);
    free_event(server->drain_event);
    free_event(server->deadline_event);
    free_event(server->leave_event);
    free_event(server->listen_again);
    mt_queue_free(server->drain_wish);
    if (server->loop) {
        event_base_loop(server->loop, EVLOOP_NONBLOCK); /* bufferevents are freed by the loop */
        event_base_free(server->loop);
    }
    mt_http_tls_free(server->tls);
    mt_free(server->slots);
    mt_free(server->free_slots);
    mt_http_crowd_free(&server->crowd);
    mt_free(server);
}

void mt_http_server_bound(mt_http_server *server, size_t body_bytes)
{
    mt_http_server_owned(server);
    server->limits.body_bytes = body_bytes;
}

int mt_http_server_port(const mt_http_server *server)
{
    return server->sockets.port;
}

struct event_base *mt_http_server_loop(mt_http_server *server)
{
    return server->loop;
}

void mt_http_server_run(mt_http_server *server)
{
    server->io = pthread_self();
    server->running = true;
    event_base_dispatch(server->loop);
    server->running = false;
}

void mt_http_server_stats(const mt_http_server *server, mt_http_stats *stats)
{
    const mt_http_counters *count = &server->count;

    *stats = (mt_http_stats){
        .connections_open = mt_http_count_get(&count->open),
        .connections_accepted = mt_http_count_get(&count->accepted),
        .connections_refused = mt_http_count_get(&count->refused),
        .connections_yielded = mt_http_count_get(&count->yielded),
        .exchanges_open = mt_http_count_get(&count->exchanges),
        .bytes_in = mt_http_count_get(&count->bytes_in),
        .bytes_out = mt_http_count_get(&count->bytes_out),
        .body_bytes = mt_http_count_get(&count->bodies),
        .dropped_slow = mt_http_count_get(&count->slow),
        .dropped_timed_out = mt_http_count_get(&count->timed_out),
        .gone = mt_http_count_get(&count->gone),
    };
    for (size_t i = 0; i < MT_COUNT(stats->answers); i++)
        stats->answers[i] = mt_http_count_get(&count->answers[i]);
}
