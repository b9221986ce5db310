/* The server object, shared by the files of src/http. */
#ifndef MT_HTTP_SERVER_H
#define MT_HTTP_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/queue.h"
#include "http/crowd.h"
#include "http/http.h"
#include "http/limits.h"
#include "http/listen.h"
#include "http/parser.h"
#include "http/tls.h"

enum { MT_HTTP_SLOT_BITS = 20 }; /* the low bits of a handle are the slot; the others count exchanges */

struct event;
struct evconnlistener;

/* Written by the io thread alone, read by any: relaxed everywhere, since each is a number by itself. mt_http_stats says
   what each is. */
typedef struct mt_http_counters {
    atomic_ullong open, accepted, refused, yielded, exchanges, answers[6], bytes_in, bytes_out, bodies, slow, timed_out,
        gone;
} mt_http_counters;

/* Functions that connection.c calls in files above it: see dispatch.c. */
typedef struct mt_http_upward {
    /* The parser has read a head. True: the body is to be read. False: the request has been answered. */
    bool (*head)(mt_http_connection *connection);
    void (*request)(mt_http_connection *connection); /* the body is complete */
    void (*message)(mt_http_connection *connection); /* connection->request is a message of a WebSocket */
    /* Answers a request that cannot be read with an error, and closes. */
    void (*fault)(mt_http_connection *connection, int status, const char *sentence);
    void (*resume)(mt_http_connection *connection); /* the client has read what was waiting */
    void (*forget)(mt_http_connection *connection); /* the connection is being freed */
    /* Reads an event of a WebSocket; ends one that is too old; tells the client that it ends: see socket.h */
    mt_http_event (*read_socket)(mt_http_connection *connection);
    void (*expire_socket)(mt_http_connection *connection);
    void (*leave_socket)(mt_http_connection *connection);
} mt_http_upward;

struct mt_http_server {
    const mt_http_upward *up;
    mt_http_config config;
    mt_http_limits limits;
    mt_room *room; /* what bodies take: config.room, or own_room */
    mt_room own_room;
    struct event_base *loop;
    mt_http_tls *tls; /* NULL: plain */
    mt_http_sockets sockets;
    struct evconnlistener *listeners[MT_LIMIT_HTTP_SOCKETS];
    struct event *listen_again; /* timer: listening goes on after a pause for lack of descriptors */

    mt_http_crowd crowd;
    mt_http_connection **slots; /* slot_count of them; NULL: free */
    size_t slot_count;
    uint32_t *free_slots; /* a stack */
    size_t free_count;
    uint64_t exchange_count; /* all that have begun; makes handles unique */

    mt_queue *drain_wish;                       /* closed: mt_http_server_drain was called */
    struct event *drain_event, *deadline_event; /* drain_wish was closed; drain_ms have passed since */
    atomic_int drain_ms;                        /* as mt_http_server_drain was told; -1: it was not called */
    bool draining;                              /* the io thread has heard of it */
    int leave_ms;                               /* see mt_http_server_leave; -1: listening stops with the drain */
    struct event *leave_event;                  /* leave_ms have passed since the drain began */
    bool leaving;                               /* draining and still listening, for leave_ms at least */

    mt_http_counters count;
    bool running;       /* mt_http_server_run is at work */
    pthread_t io;       /* while running */
    time_t date_second; /* the second that `date` was written for */
    char date[40];      /* as headers have it */
};

static inline void mt_http_count_add(atomic_ullong *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline void mt_http_count_sub(atomic_ullong *counter, uint64_t n)
{
    atomic_fetch_sub_explicit(counter, n, memory_order_relaxed);
}

static inline uint64_t mt_http_count_get(const atomic_ullong *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Asserts that this is the io thread, or that the loop does not run. */
void mt_http_server_owned(const mt_http_server *server);

#endif
