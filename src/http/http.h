/* An HTTP/1.1 server on one event loop, which knows nothing of what is served. docs/http.md says what it accepts, what
   it refuses and why.

   The thread that calls mt_http_server_run is the io thread. Handlers, hooks and followers are called on it and return
   at once. A handler gets a whole request, owns it, and answers through the request's handle, at once or later
   (mt_http_answer, mt_http_begin, ...). A handle names one exchange (a request and its answer) of one connection; what
   is sent to a client that has left is dropped. */
#ifndef MT_HTTP_HTTP_H
#define MT_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/room.h"
#include "http/limits.h"

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

/* How a body is compressed (content-encoding). The server does not unpack it, which takes time: see http/coding.h. */
typedef enum mt_http_coding { MT_HTTP_PLAIN, MT_HTTP_GZIP, MT_HTTP_DEFLATE, MT_HTTP_ZSTD } mt_http_coding;

typedef struct mt_http_header {
    const char *name, *value; /* of a request: the name in lower case */
} mt_http_header;

typedef struct mt_http_request {
    mt_http_handle handle;
    mt_http_method method;     /* HEAD where a GET route serves one: the server leaves out the answer's body */
    const char *path;          /* percent-decoded; may have any byte but controls */
    const char *query;         /* what follows '?', as sent; "" where there is none */
    const char *query_key;     /* the value of "key" in it, decoded; NULL: none. It may be an API key */
    const char *socket_key;    /* the API key among the subprotocols of a WebSocket; NULL: none */
    const char *peer;          /* address of the connection's other end, without a port; "unix" */
    const char *client;        /* the client behind proxies, for fair shares: see proxies.h */
    const char *const *params; /* what the segments {name} of the route's pattern matched, decoded, in order */
    size_t param_count;
    const mt_http_header *headers; /* in the order sent */
    size_t header_count;
    const struct mt_http_route *route; /* NULL until one is found */
    void *who;                         /* the owner of the request, set by hooks.admit; NULL: none in particular */
    /* NUL-terminated; "" where there is none. A handler that sets it to NULL owns the body; mt_free */
    char *body;
    size_t body_len;
    /* Bytes of the body by the head; UINT64_MAX: it comes in chunks, of unknown length */
    uint64_t announced;
    mt_http_coding coding; /* of the body */
    /* Bytes of config.room taken for the body; the owner of the body gives them back */
    size_t charged;
    void *socket; /* of a message on a WebSocket: what hooks.socket_open returned; else NULL */
} mt_http_request;

/* NULL is fine. Any thread. */
void mt_http_request_free(mt_http_request *request);

/* The value of the first header of that name (in lower case); NULL: none. */
const char *mt_http_request_header(const mt_http_request *request, const char *name);

/* The client's name for the request (x-request-id); NULL: none, or not a valid one. */
const char *mt_http_request_name(const mt_http_request *request);
const char *mt_http_request_session(const mt_http_request *request); /* the same of x-session-id */

/* The decoded value of a key in the query; NULL: none. Free with mt_free. */
char *mt_http_request_query(const mt_http_request *request, const char *key);

/* The subprotocol of a WebSocket by which a page in a browser sends its API key, since it cannot set headers; the key
   follows it. OpenAI's realtime API has it so. */
#define MT_HTTP_SOCKET_KEY "openai-insecure-api-key."

/* The key in "authorization: Bearer KEY", else "x-api-key: KEY", else "x-goog-api-key: KEY", else, where the route has
   MT_HTTP_QUERY_KEY, "?key=KEY", and where it has MT_HTTP_SOCKET, MT_HTTP_SOCKET_KEY; NULL: none. */
const char *mt_http_request_key(const mt_http_request *request);

/* Owns request. */
typedef void mt_http_handler(void *user, mt_http_server *server, mt_http_request *request);

/* Flags of a route. */
enum {
    MT_HTTP_PUBLIC = 1u << 0,     /* hooks.admit is not asked */
    MT_HTTP_REQUEST_ID = 1u << 1, /* answers also have the request's name as "request-id" */
    MT_HTTP_ALWAYS = 1u << 2,     /* answered even when there are too many connections */
    MT_HTTP_PROBE = 1u << 3,      /* a health check: its answers are not counted, and a 503 is no failure */
    MT_HTTP_NAMELESS = 1u << 4,   /* may be asked with an empty "host", as some health checks do */
    /* Of a GET route without parameters: a WebSocket. The handler gets each message as a POST, and each line of the
       answer, or the whole of one that is not streamed, is sent as a message; an empty line becomes a ping. */
    MT_HTTP_SOCKET = 1u << 5,
    MT_HTTP_QUERY_KEY = 1u << 6, /* the API key may stand in the query */
    /* The handler gets the request once its head was read; the body goes to follower.body as it comes, and is dropped
       where there is none. The connection is closed behind the answer, which may come before the end of the body. */
    MT_HTTP_STREAMED = 1u << 7,
    /* With MT_HTTP_SOCKET: a message does not wait for the answers to those before it. Lines of several answers come in
       any order, so each says what it is about; a whole answer may have several lines, too. */
    MT_HTTP_SOCKET_MANY = 1u << 8,
    MT_HTTP_FLAGS_FREE = 1u << 9, /* this bit and all above are the application's */
};

/* A pattern consists of segments: "/v1/models", "/v1/files/{id}" (one segment), "/v1/models/{id*}" (the rest, slashes
   included, at least one byte; only last). Behind a parameter may stand how it has to end: "/v1/models/{id*}:verb"
   matches "/v1/models/a/b:verb", with "a/b". The first route of the table that matches wins. A GET route serves HEAD,
   too. */
typedef struct mt_http_route {
    mt_http_method method;
    const char *pattern;
    mt_http_handler *handler;
    void *user;
    const void *about; /* for a handler of several routes, which finds it in request->route */
    unsigned flags;
    size_t body_bytes; /* limit of the body; 0: the server's */
} mt_http_route;

/* Limits in milliseconds and bytes; mt_http_limits_default has the values of http/limits.h. None may be 0. */
typedef struct mt_http_limits {
    size_t connections;    /* of one address alone; a third more are for others */
    size_t spare;          /* connections beyond these, for routes that are always answered */
    size_t head_bytes;     /* of the request line and headers; also of a body's trailers */
    size_t headers;        /* number of headers of a request */
    size_t body_bytes;     /* of a request's body */
    size_t bodies_bytes;   /* of all bodies, where config.room is NULL */
    size_t pipeline_bytes; /* read ahead of the request that is being answered; beyond, the client is cut off */
    size_t output_pause;   /* waiting for a client to read; beyond, its follower is told to pause */
    size_t output_drop;    /* writing when this much waits already drops the client */
    int idle_ms;           /* between requests */
    int head_ms;           /* from a request's first byte to the end of its headers */
    int body_ms;           /* from there to the end of its body */
    int send_ms;           /* without the client reading a byte of what waits for it */
    int linger_ms;         /* for the client to close after us */
    int socket_ms;         /* from the handshake of a WebSocket to its end */
} mt_http_limits;

mt_http_limits mt_http_limits_default(void);

/* Why hooks.admit refuses a request. */
typedef struct mt_http_refusal {
    int status;       /* a 401 also gets "www-authenticate: Bearer" */
    int retry_after;  /* seconds; 0: not known */
    const char *code; /* for hooks.error_body; NULL: the status says it all */
    char text[MT_LIMIT_ERROR_TEXT];
} mt_http_refusal;

/* Further headers of an answer, with their text. */
typedef struct mt_http_extra {
    mt_http_header headers[MT_LIMIT_HTTP_EXTRA];
    size_t count;
    char text[MT_LIMIT_HTTP_EXTRA][32];
} mt_http_extra;

/* Adds a header. name is borrowed until the head is written; a value that is too long is cut. */
void mt_http_extra_add(mt_http_extra *extra, const char *name, const char *fmt, ...) MT_PRINTF(3, 4);

typedef struct mt_http_hooks {
    void *user;
    /* Examines a request before its body is read (body is "") and may set request->who. False: it is answered with
       *refusal. May be NULL. */
    bool (*admit)(void *user, mt_http_request *request, mt_http_refusal *refusal);
    /* Adds headers to an answer for `who`. May be NULL. */
    void (*headers)(void *user, const void *who, mt_http_extra *extra);
    /* Writes the body of an error. path is NULL where the request could not be read, and request where it was handed to
       its handler already, too; code is NULL where there is none; route is that of a message on a WebSocket, else NULL.
       NULL: the sentence is sent as plain text. */
    void (*error_body)(void *user, const mt_http_route *route, const mt_http_request *request, const char *path,
                       int status, const char *code, const char *sentence, mt_buf *body);
    /* A WebSocket was opened: what is returned comes with each of its messages. It is closed. May both be NULL. */
    void *(*socket_open)(void *user);
    void (*socket_closed)(void *user, void *socket);
    const char *error_type; /* content type of what error_body writes; NULL: "application/json" */
} mt_http_hooks;

/* Everything is borrowed until mt_http_server_free, except host and tls_*, which only mt_http_server_new needs. */
typedef struct mt_http_config {
    const char *host; /* a name, an address, or "unix:PATH" */
    int port;         /* 0: any free one */
    const mt_http_route *routes;
    size_t route_count;
    mt_http_hooks hooks;
    const char *const *origins; /* whose pages may call (CORS): "https://app.example", or "*" for all */
    size_t origin_count;
    const char *tls_certificate, *tls_key; /* PEM files, both or none */
    const struct mt_http_proxies *proxies; /* trusted proxies; NULL: none */
    /* For bodies, from their first byte on; beyond it, 503. NULL: one of limits.bodies_bytes */
    mt_room *room;
    mt_http_limits limits;
} mt_http_config;

/* Listens when it returns. NULL: *err. Free with mt_http_server_free. Ignores SIGPIPE. */
mt_http_server *mt_http_server_new(const mt_http_config *config, mt_error *err) MT_NODISCARD;

/* For a server with TLS: new connections get this certificate from now on. False: *err, and nothing has changed. */
bool mt_http_server_certify(mt_http_server *server, const char *certificate, const char *key,
                            mt_error *err) MT_NODISCARD;

/* The loop must have ended, and no thread may post any more. Clients that are still connected are dropped. NULL is
   fine. */
void mt_http_server_free(mt_http_server *server);

/* Io thread: sets the limit of bodies from now on. */
void mt_http_server_bound(mt_http_server *server, size_t body_bytes);

int mt_http_server_port(const mt_http_server *server); /* 0 for a unix socket */

/* The event loop, for the application's own timers, signals and descriptors. */
struct event_base *mt_http_server_loop(mt_http_server *server);

/* Serves until a drain has ended; only once. */
void mt_http_server_run(mt_http_server *server);

/* Io thread, before a drain: the drain does not stop listening at once. New clients are answered (hooks.admit may
   refuse) until no exchange runs any more and `ms` are over, or until the drain's deadline. */
void mt_http_server_leave(mt_http_server *server, int ms);

/* Stops listening, closes idle connections, lets running exchanges end, and drops the rest after deadline_ms (0: at
   once). Any thread, but no signal handler. Only the first call counts. */
void mt_http_server_drain(mt_http_server *server, int deadline_ms);

typedef struct mt_http_stats {
    uint64_t connections_open, connections_accepted, connections_refused;
    uint64_t connections_yielded; /* closed to make room for others */
    uint64_t exchanges_open;      /* requests whose answer is not complete */
    uint64_t answers[6];          /* by the status' first digit, without health checks; [0] is unused */
    uint64_t bytes_in, bytes_out;
    uint64_t body_bytes;        /* of bodies being read */
    uint64_t dropped_slow;      /* clients that did not read their answers */
    uint64_t dropped_timed_out; /* clients that did not send what they had begun */
    uint64_t gone;              /* clients that left before their answer was complete */
} mt_http_stats;

void mt_http_server_stats(const mt_http_server *server, mt_http_stats *stats); /* any thread */

/* Callbacks for the producer of an answer, on the io thread; members may be NULL. */
typedef struct mt_http_follower {
    /* The client left, or was dropped, before the answer was complete. The last call for this exchange. */
    void (*gone)(void *user);
    /* The client reads more slowly than is written (may be called from within mt_http_write), or has caught up. */
    void (*paused)(void *user, bool paused);
    /* Of a route with MT_HTTP_STREAMED: the next bytes of the body; data is NULL at its end. */
    void (*body)(void *user, const char *data, size_t len);
} mt_http_follower;

/* Borrows follower until the answer is complete or `gone` was called. False: the client has left already. */
bool mt_http_follow(mt_http_server *server, mt_http_handle handle, const mt_http_follower *follower, void *user);

/* Io thread: of a body that is streamed, reads nothing more of it (held), or goes on reading. What the client sends
   meanwhile waits, and it has as much time as the follower takes. */
void mt_http_hold(mt_http_server *server, mt_http_handle handle, bool held);

/* Bytes that may not stand in a header are sent as blanks. The server adds content-length, connection and date; also
   x-request-id, where the client gave one or headers have none. */
typedef struct mt_http_response {
    int status;
    const char *type; /* content type; NULL: none */
    const mt_http_header *headers;
    size_t header_count;
} mt_http_response;

/* Io thread: answer a request. All copy what they are given, and return false where the client has left; then just
   stop. An answer is one mt_http_answer, or mt_http_begin, any number of mt_http_write, and mt_http_end. */
bool mt_http_answer(mt_http_server *server, mt_http_handle handle, const mt_http_response *response, const void *body,
                    size_t len);
bool mt_http_begin(mt_http_server *server, mt_http_handle handle, const mt_http_response *response);
bool mt_http_write(mt_http_server *server, mt_http_handle handle, const void *data, size_t len);
bool mt_http_end(mt_http_server *server, mt_http_handle handle);

/* Io thread: where the answer to a message of a WebSocket (MT_HTTP_SOCKET_MANY) is an error, its body is sent behind
   this text, and a closing brace behind the body. */
void mt_http_errors_begin(mt_http_server *server, mt_http_handle handle, const char *text);

/* Io thread: from here on the WebSocket of this handle takes messages of so many bytes. */
void mt_http_socket_bound(mt_http_server *server, mt_http_handle handle, size_t bytes);

/* Answers with an error in the form of hooks.error_body; path as in the request. */
bool mt_http_fail(mt_http_server *server, mt_http_handle handle, const char *path, int status, const char *sentence);

/* Ends a begun answer so that the client sees it is incomplete: the connection is closed without the end mark. */
bool mt_http_abort(mt_http_server *server, mt_http_handle handle);

#endif
