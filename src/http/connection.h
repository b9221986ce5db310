/* A connection of a client. connection.c says how it works. */
#ifndef MT_HTTP_CONNECTION_H
#define MT_HTTP_CONNECTION_H

#include "http/frames.h"
#include "http/name.h"
#include "http/parser.h"
#include "http/server.h"

struct bufferevent;
struct evbuffer;

typedef enum mt_http_phase {
    MT_HTTP_READING_HEAD, /* or waiting for one */
    MT_HTTP_READING_BODY,
    MT_HTTP_ANSWERING, /* the handler has the request */
    MT_HTTP_CLOSING,   /* the last answer is complete and being sent */
    MT_HTTP_LINGERING  /* it is sent and our side is shut; the client's end is awaited */
} mt_http_phase;

/* The purpose of the timer. A connection that lingers has NONE, and its timer runs for limits.linger_ms; one that is
   doomed is freed by its timer, whatever the alarm is. */
typedef enum mt_http_alarm {
    MT_HTTP_ALARM_NONE,
    MT_HTTP_ALARM_IDLE, /* no request has begun: limits.idle_ms */
    MT_HTTP_ALARM_HEAD, /* a head comes, or a TLS handshake is under way: limits.head_ms */
    MT_HTTP_ALARM_BODY  /* a body comes: limits.body_ms */
} mt_http_alarm;

/* A request and its answer. */
typedef struct mt_http_exchange {
    uint64_t id;                  /* 0 until a handler has the request */
    bool head_only;               /* the request is a HEAD: the body of the answer is left out */
    bool http10;                  /* the client speaks HTTP/1.0 */
    bool keep_alive;              /* the connection stays open behind the answer */
    bool begun;                   /* the head of the answer is out */
    bool chunked;                 /* the body of the answer is sent in chunks, as its head says; not with HTTP/1.0 */
    bool paused;                  /* the follower was told to pause: too much waits (limits.output_pause) */
    void *who;                    /* the owner of the request, as hooks.admit said; NULL: none in particular */
    char name[MT_HTTP_NAME_SIZE]; /* what the client calls it; "": nothing */
    char *origin;                 /* the page that is allowed to read the answer, "*", or NULL; mt_free */
    char *errors;                 /* what an error is sent behind (mt_http_errors_begin), or NULL; mt_free */
    const mt_http_follower *follower; /* NULL: none */
    void *follower_user;
} mt_http_exchange;

/* State of a connection that has become a WebSocket. */
typedef struct mt_http_socket {
    mt_frames frames;
    mt_http_request *greeting; /* of the handshake; owned */
    void *state;               /* of hooks.socket_open */
    uint64_t until;            /* mt_clock_ns when it is as old as it may be */
    bool closed;               /* a close frame was sent: nothing may follow */
    bool many;                 /* MT_HTTP_SOCKET_MANY: several messages are answered at once */
    /* Exchanges that go on, beside the connection's own; that one is none (id 0) only where these are none, too */
    mt_http_exchange others[MT_LIMIT_HTTP_SOCKET_MANY];
    size_t other_count;
} mt_http_socket;

struct mt_http_connection {
    mt_http_server *server;
    uint32_t slot; /* its index in server->slots */
    struct bufferevent *bev;
    struct event *timer;
    mt_http_alarm alarm;
    mt_http_phase phase;
    bool eof;        /* the client has shut its side */
    bool doomed;     /* is freed by the loop in a moment */
    bool advancing;  /* its input is being read: an answer that ends meanwhile leaves the next request to the reader */
    bool asked;      /* it has had a request */
    bool held;       /* its follower takes nothing more of the body for now */
    size_t streamed; /* bytes of the body that it was given since its alarm was set */
    bool spare;      /* there was no room for it: see crowd.c */
    mt_http_peer *from; /* the address that it counts for, among those of the crowd */
    /* mt_clock_ns when it came, when its last answer was complete, or when crowd.c found bytes of it that were not read
       yet; of equals, the one that has been quiet for longest is closed for another */
    uint64_t quiet;
    uint64_t linger_until; /* mt_clock_ns: until then, bytes that come prolong the lingering by limits.linger_ms */
    char peer[64];         /* the client's address as inet_ntop writes it, or "unix" */

    mt_http_parser parser;
    mt_http_request *request;   /* while its body is read */
    const mt_http_route *route; /* of that request */
    mt_buf body;                /* what of its body has come */
    size_t charged;             /* bytes of server->room that the body has */
    mt_http_exchange exchange;
    mt_http_socket *socket; /* owned; NULL: it speaks HTTP */
};

/* Owns fd. NULL: the system refuses; fd is closed then. */
mt_http_connection *mt_http_connection_new(mt_http_server *server, int fd, uint32_t slot, const char *peer);
void mt_http_connection_free(mt_http_connection *connection);

/* From here on nothing is read or written; the follower is called and the memory freed when the loop runs next. */
void mt_http_connection_doom(mt_http_connection *connection);

/* The answer is complete: goes on with the next request, or closes. */
void mt_http_connection_finish(mt_http_connection *connection);

/* Sends what is waiting and closes, without reading another request. */
void mt_http_connection_close(mt_http_connection *connection);

/* The same where the client has said that it leaves, or cannot go on: the follower hears of it. */
void mt_http_connection_leave(mt_http_connection *connection);

/* Of a WebSocket that answers many messages at once: makes the exchange with this id the connection's own. False: it
   is over. */
bool mt_http_connection_turn_to(mt_http_connection *connection, uint64_t id);

/* The request is complete: nothing more of the client is awaited. */
void mt_http_connection_await_answer(mt_http_connection *connection);

/* The same where more messages are read while this one is answered: the exchange before it is set aside. */
void mt_http_connection_await_more(mt_http_connection *connection);

/* Appends to the body. False: there is no room, and the client was told. */
bool mt_http_connection_add_body(mt_http_connection *connection, const char *piece, size_t len);

/* Stops reading the body of the request, or goes on with it. */
void mt_http_connection_hold(mt_http_connection *connection, bool held);

/* Closes it where it waits for a request of which no byte has come. */
void mt_http_connection_close_idle(mt_http_connection *connection);

/* Frees a request whose body is being read, and the body. */
void mt_http_connection_drop_request(mt_http_connection *connection);

/* The bytes that are still to be sent, and their number. */
struct evbuffer *mt_http_connection_output(mt_http_connection *connection);
size_t mt_http_connection_waiting(mt_http_connection *connection);

#endif
