/* An HTTP/1.1 server on one event loop that knows nothing of what is served. docs/http.md says what it accepts, what it
   refuses and why.

   The thread that calls mt_http_server_run is the io thread. Handlers, hooks and followers run on it and return at
   once. A handler is given a whole request, owns it, and answers through the request's handle: in the handler or later
   (mt_http_answer, mt_http_begin, ...). A handle names one exchange of one connection; what is sent to a client that
   has gone is dropped. */
#ifndef MT_HTTP_HTTP_H
#define MT_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/room.h"

struct event_base;

typedef struct mt_http_server mt_http_server;

typedef struct mt_http_handle {
    uint64_t id; /* 0 names nothing */
} mt_http_handle;

typedef enum mt_http_method {
    MT_HTTP_GET,
    MT_HTTP_HEAD,
    MT_HTTP_POST,
    MT_HTTP_PUT,
    MT_HTTP_PATCH,
    MT_HTTP_DELETE,
    MT_HTTP_OPTIONS,
    MT_HTTP_METHODS /* how many there are */
} mt_http_method;

const char *mt_http_method_name(mt_http_method method);

/* How a body is packed (content-encoding). The server leaves it so: unpacking takes time. See http/coding.h. */
typedef enum mt_http_coding { MT_HTTP_PLAIN, MT_HTTP_GZIP, MT_HTTP_DEFLATE, MT_HTTP_ZSTD } mt_http_coding;

typedef struct mt_http_header {
    const char *name, *value; /* of a request: the name in lower case */
} mt_http_header;

typedef struct mt_http_request {
    mt_http_handle handle;
    mt_http_method method;     /* HEAD where a GET route serves one: the body of the answer is left out by the server */
    const char *path;          /* percent-decoded; may hold any byte but controls */
    const char *query;         /* what follows '?', as sent; "" when there is none */
    const char *peer;          /* the address of who is connected, without its port; "unix" */
    const char *client;        /* who is behind it, and shares what there is with others: see proxies.h */
    const char *const *params; /* what the segments {name} of the route matched, decoded, in their order */
    size_t param_count;
    const mt_http_header *headers; /* in the order sent */
    size_t header_count;
    const struct mt_http_route *route; /* NULL until one is found */
    void *who;                         /* whose it is, as hooks.admit says; NULL: nobody's in particular */
    char *body; /* NUL-terminated; "" when there is none. Who sets it to NULL owns it and frees it with mt_free */
    size_t body_len;
    uint64_t announced;    /* bytes that the head says the body has; UINT64_MAX: it comes in chunks, of any length */
    mt_http_coding coding; /* of the body */
    size_t charged;        /* bytes of config.room that the body has: who takes the body gives them back */
} mt_http_request;

/* NULL is fine. Any thread. */
void mt_http_request_free(mt_http_request *request);

/* The first header of that name (in lower case), or NULL. */
const char *mt_http_request_header(const mt_http_request *request, const char *name);

/* What the client calls it, as x-request-id; NULL where it does not, or not well. */
const char *mt_http_request_name(const mt_http_request *request);
const char *mt_http_request_session(const mt_http_request *request); /* the same of x-session-id */

/* What "authorization: Bearer KEY" or else "x-api-key: KEY" carries, or NULL. */
const char *mt_http_request_key(const mt_http_request *request);

/* Takes request. */
typedef void mt_http_handler(void *user, mt_http_server *server, mt_http_request *request);

enum {
    MT_HTTP_PUBLIC = 1u << 0,     /* the route is not shown to hooks.admit */
    MT_HTTP_REQUEST_ID = 1u << 1, /* its answers say what the request is called as "request-id", too */
    MT_HTTP_ALWAYS = 1u << 2,     /* it is answered even when there are too many connections */
    MT_HTTP_PROBE = 1u << 3,      /* asks how the server is: answers are in no count, a 503 is news and not a failure */
    MT_HTTP_FLAGS_FREE = 1u << 8, /* this and all above mean what the application likes */
};

/* A pattern is segments: "/v1/models", "/v1/files/{id}" (one segment), "/v1/models/{id*}" (the rest, slashes included,
   at least one byte; last only). The first route of the table that matches wins. A GET route serves HEAD too. */
typedef struct mt_http_route {
    mt_http_method method;
    const char *pattern;
    mt_http_handler *handler;
    void *user;
    const void *about; /* for a handler of several routes, which finds it in request->route */
    unsigned flags;
    size_t body_bytes; /* limit of the body; 0: that of the server */
} mt_http_route;

/* Milliseconds and bytes; mt_http_limits_default has base/limits.h's values. None may be 0. */
typedef struct mt_http_limits {
    size_t connections;    /* of one address alone; a third more are for others */
    size_t spare;          /* beyond, for routes that are always answered */
    size_t head_bytes;     /* request line and headers; the trailers of a body as well */
    size_t headers;        /* of a request */
    size_t body_bytes;     /* of a request */
    size_t bodies_bytes;   /* all bodies; where the server is given no room for them */
    size_t pipeline_bytes; /* read ahead of the request that is being answered; beyond, the client is cut off */
    size_t output_pause;   /* waiting for a client to read; beyond, its producer is told to pause */
    size_t output_drop;    /* writing when this much waits already drops the client */
    int idle_ms;           /* between requests */
    int head_ms;           /* from a request's first byte to the end of its headers */
    int body_ms;           /* from there to the end of its body */
    int send_ms;           /* without the client taking a byte of what waits for it */
    int linger_ms;         /* for the client to close after us */
} mt_http_limits;

mt_http_limits mt_http_limits_default(void);

typedef struct mt_http_refusal {
    int status;       /* 401 brings "www-authenticate: Bearer" along */
    int retry_after;  /* seconds until it is worth another try; 0: that is not known */
    const char *code; /* for hooks.error_body; NULL: the status says it all */
    char text[MT_LIMIT_ERROR_TEXT];
} mt_http_refusal;

/* Headers of an answer, with their text. */
typedef struct mt_http_extra {
    mt_http_header headers[MT_LIMIT_HTTP_EXTRA];
    size_t count;
    char text[MT_LIMIT_HTTP_EXTRA][32];
} mt_http_extra;

/* name: borrowed until the head is written. A value that is too long is cut. */
void mt_http_extra_add(mt_http_extra *extra, const char *name, const char *fmt, ...) MT_PRINTF(3, 4);

typedef struct mt_http_hooks {
    void *user;
    /* Looks at a request before its body is read (body is "") and may say whose it is, in request->who. False: it is
       answered with *refusal. May be NULL. */
    bool (*admit)(void *user, mt_http_request *request, mt_http_refusal *refusal);
    /* Says what else stands in the head of an answer to somebody; see mt_http_extra. May be NULL. */
    void (*headers)(void *user, const void *who, mt_http_extra *extra);
    /* Writes the body of an error. path is NULL when the request could not be read, code where the refusal has none.
       NULL: the sentence as text. */
    void (*error_body)(void *user, const char *path, int status, const char *code, const char *sentence, mt_buf *body);
    const char *error_type; /* content type of what error_body writes; NULL: "application/json" */
} mt_http_hooks;

/* Everything is borrowed until mt_http_server_free, except tls_* and host, which mt_http_server_new alone needs. */
typedef struct mt_http_config {
    const char *host; /* name, address, or "unix:PATH" */
    int port;         /* 0 takes any */
    const mt_http_route *routes;
    size_t route_count;
    mt_http_hooks hooks;
    const char *const *origins; /* whose pages may call (CORS): "https://app.example", or "*" for all */
    size_t origin_count;
    const char *tls_certificate, *tls_key; /* PEM files, both or none */
    const struct mt_http_proxies *proxies; /* that are trusted; NULL: none */
    mt_room *room; /* what bodies take, from their first byte on; beyond, 503. NULL: one of limits.bodies_bytes */
    mt_http_limits limits;
} mt_http_config;

/* Listens when it returns. NULL with a sentence in *err. Free with mt_http_server_free. Ignores SIGPIPE. */
mt_http_server *mt_http_server_new(const mt_http_config *config, mt_error *err) MT_NODISCARD;

/* Of a server with TLS: connections that come from now on see this certificate. False, and nothing has changed. */
bool mt_http_server_certify(mt_http_server *server, const char *certificate, const char *key,
                            mt_error *err) MT_NODISCARD;

/* The loop must have ended and no thread may post any more. Clients still connected are dropped. NULL is fine. */
void mt_http_server_free(mt_http_server *server);

/* The limit of bodies from now on; io thread. */
void mt_http_server_bound(mt_http_server *server, size_t body_bytes);

int mt_http_server_port(const mt_http_server *server); /* 0 for a unix socket */

/* The application's own timers, signals and descriptors go into the same loop. */
struct event_base *mt_http_server_loop(mt_http_server *server);

/* Serves until a drain has ended; once. */
void mt_http_server_run(mt_http_server *server);

/* Stops listening, closes idle connections, lets what runs end, and drops what is left after deadline_ms (0: at once).
   Any thread, but no signal handler. Only the first call counts. */
void mt_http_server_drain(mt_http_server *server, int deadline_ms);

typedef struct mt_http_stats {
    uint64_t connections_open, connections_accepted, connections_refused;
    uint64_t connections_yielded; /* closed so that others had room */
    uint64_t exchanges_open;      /* requests with a handler that is not done */
    uint64_t answers[6];          /* but to probes; by hundreds of the status; [0] is empty */
    uint64_t bytes_in, bytes_out;
    uint64_t body_bytes;        /* of bodies being read */
    uint64_t dropped_slow;      /* clients that did not read what they had asked for */
    uint64_t dropped_timed_out; /* clients that did not send what they had begun */
    uint64_t gone;              /* clients that left before their answer was complete */
} mt_http_stats;

void mt_http_server_stats(const mt_http_server *server, mt_http_stats *stats); /* any thread */

/* What the producer of an answer wants to hear; members may be NULL. Calls come on the io thread. */
typedef struct mt_http_follower {
    /* The client left, or was dropped, before the answer was complete. The last call of this exchange. */
    void (*gone)(void *user);
    /* The client reads more slowly than it is written to (also from within mt_http_write), or has caught up. */
    void (*paused)(void *user, bool paused);
} mt_http_follower;

/* Borrows follower until the answer is complete or gone was called. False: the client has left already. */
bool mt_http_follow(mt_http_server *server, mt_http_handle handle, const mt_http_follower *follower, void *user);

/* Bytes that may not stand in a header are sent as blanks. content-length, connection and date are the server's. So is
   x-request-id where the client gave one, or headers have none. */
typedef struct mt_http_response {
    int status;
    const char *type; /* content type; NULL: none */
    const mt_http_header *headers;
    size_t header_count;
} mt_http_response;

/* The io thread answers with these. All copy what they are given, and return false when the client has left, which
   needs no other care than to stop. An answer is one mt_http_answer, or a begin, any number of writes, and an end. */
bool mt_http_answer(mt_http_server *server, mt_http_handle handle, const mt_http_response *response, const void *body,
                    size_t len);
bool mt_http_begin(mt_http_server *server, mt_http_handle handle, const mt_http_response *response);
bool mt_http_write(mt_http_server *server, mt_http_handle handle, const void *data, size_t len);
bool mt_http_end(mt_http_server *server, mt_http_handle handle);

/* An error in the shape of hooks.error_body; path as in the request. */
bool mt_http_fail(mt_http_server *server, mt_http_handle handle, const char *path, int status, const char *sentence);

/* Ends a begun answer so that the client sees it is not whole: the connection closes without the end mark. */
bool mt_http_abort(mt_http_server *server, mt_http_handle handle);

#endif
