/* What the files of the server share. */
#ifndef MT_HTTP_SERVER_H
#define MT_HTTP_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/queue.h"
#include "http/crowd.h"
#include "http/http.h"
#include "http/listen.h"
#include "http/tls.h"

enum { MT_HTTP_SLOT_BITS = 20 }; /* of a handle; the others count exchanges */

struct event;
struct evconnlistener;

/* Written by the io thread alone, read by any: relaxed everywhere, since each is a number by itself. */
typedef struct mt_http_counters {
    atomic_ullong open, accepted, refused, yielded, exchanges, answers[6], bytes_in, bytes_out, bodies, slow, timed_out,
        gone;
} mt_http_counters;

/* What a connection tells those above it. */
typedef struct mt_http_upward {
    /* The parser has a head. True: the request is wanted, read its body. False: it has been answered. */
    bool (*head)(mt_http_connection *connection);
    void (*request)(mt_http_connection *connection); /* its body is whole */
    /* Answers a request, or what was to be one, with an error, and closes. */
    void (*fault)(mt_http_connection *connection, int status, const char *sentence);
    void (*resume)(mt_http_connection *connection); /* the client has taken what was waiting */
    void (*forget)(mt_http_connection *connection); /* its last act */
} mt_http_upward;

struct mt_http_server {
    const mt_http_upward *up;
    mt_http_config config;
    mt_http_limits limits;
    mt_room *room, own_room; /* what bodies take */
    struct event_base *loop;
    mt_http_tls *tls; /* NULL: plain */
    mt_http_sockets sockets;
    struct evconnlistener *listeners[MT_LIMIT_HTTP_SOCKETS];
    struct event *listen_again; /* after a pause for want of descriptors */

    mt_http_crowd crowd;
    mt_http_connection **slots; /* slot_count of them; NULL: free */
    size_t slot_count;
    uint32_t *free_slots; /* a stack */
    size_t free_count;
    uint64_t exchange_count; /* ever begun: makes handles unique */

    mt_queue *drain_wish; /* closed: somebody called mt_http_server_drain */
    struct event *drain_event, *deadline_event;
    atomic_int drain_ms;
    bool draining;

    mt_http_counters count;
    bool running;
    pthread_t io; /* while running */
    time_t date_second;
    char date[40]; /* as headers have it, of date_second */
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

/* Asserts that this is the thread of the loop, or that no loop runs. */
void mt_http_server_owned(const mt_http_server *server);

#endif
