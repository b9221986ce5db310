/* The application of the test server: handlers that do what tests ask for. */
#ifndef MT_TESTS_HTTP_ECHO_H
#define MT_TESTS_HTTP_ECHO_H

#include <stdatomic.h>

#include "http/http.h"

typedef struct echo_app {
    const char *key;    /* that clients must show; NULL: none */
    atomic_int live;    /* answers under way */
    atomic_int gone;    /* clients that left before theirs was complete */
    atomic_int sockets; /* WebSockets that are open */
    atomic_int pauses;  /* times a producer was told to pause */
} echo_app;

extern const mt_http_route echo_routes[];
extern const size_t echo_route_count;

/* Handlers find it in their server's hooks; there is one. */
extern echo_app echo;

/* A number of the query string, or otherwise. */
long echo_query(const mt_http_request *request, const char *name, long otherwise);

/* Handlers of streams.c. */
void echo_stream(void *user, mt_http_server *server, mt_http_request *request);
void echo_flood(void *user, mt_http_server *server, mt_http_request *request);
void echo_late(void *user, mt_http_server *server, mt_http_request *request);
void echo_held(void *user, mt_http_server *server, mt_http_request *request);
void echo_release(void *user, mt_http_server *server, mt_http_request *request);
void echo_wait(void *user, mt_http_server *server, mt_http_request *request);

#endif
