/* Who may stay when connections run short. See crowd.c. */
#ifndef MT_HTTP_CROWD_H
#define MT_HTTP_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mt_http_server mt_http_server;
typedef struct mt_http_connection mt_http_connection;

/* An address, or an IPv6 network of 64 bits, that has connections. */
typedef struct mt_http_peer {
    uint64_t id; /* a hash of its name */
    size_t open; /* connections, without spare ones */
    size_t held; /* all of them; 0: the entry is free */
} mt_http_peer;

typedef struct mt_http_crowd {
    size_t all;          /* connections that there may be */
    size_t spare;        /* that there may be besides */
    size_t open, spares; /* how many there are of each now */
    mt_http_peer *peers; /* all + spare + 1 of them, the first `top` of which have been used */
    size_t top;
} mt_http_crowd;

/* most: connections that one address alone may have. Free with mt_http_crowd_free. */
void mt_http_crowd_init(mt_http_crowd *crowd, size_t most, size_t spare);
void mt_http_crowd_free(mt_http_crowd *crowd);

/* Who comes from an address, as inet_ntop writes it or "unix": hand it to mt_http_crowd_enter, or leave it alone. */
mt_http_peer *mt_http_crowd_peer(mt_http_crowd *crowd, const char *address);

/* Makes room for one more of a peer, for which another may be closed; false: there is none. The second closes another
   in any case, where the system has no descriptors left; the third makes room for a spare one, which there always is.
   A connection that is closed is gone at once: not from within its own callbacks. */
bool mt_http_crowd_make_room(mt_http_server *server, const mt_http_peer *peer);
bool mt_http_crowd_close_one(mt_http_server *server, const mt_http_peer *peer);
void mt_http_crowd_make_spare(mt_http_server *server);

/* A connection is there, and is not any more. */
void mt_http_crowd_enter(mt_http_crowd *crowd, mt_http_peer *peer, mt_http_connection *connection, bool spare);
void mt_http_crowd_leave(mt_http_crowd *crowd, mt_http_connection *connection);

/* A spare one becomes one like others, where there is room by now. */
bool mt_http_crowd_settle(mt_http_connection *connection);

#endif
