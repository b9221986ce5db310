/* Shares connections among clients' addresses when there are too few. crowd.c has the rules. */
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
    size_t held; /* all connections; 0: this entry is free */
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

/* The entry of an address, as inet_ntop writes it or "unix". Used only by mt_http_crowd_enter; else it stays free. */
mt_http_peer *mt_http_crowd_peer(mt_http_crowd *crowd, const char *address);

/* mt_http_crowd_make_room makes room for one more connection of a peer, perhaps by closing another; false: there is
   none. mt_http_crowd_close_one closes another in any case, when the system has no descriptors left.
   mt_http_crowd_make_spare makes room for a spare connection, which always succeeds. A connection that is closed is
   freed at once, so these must not be called from its own callbacks. */
bool mt_http_crowd_make_room(mt_http_server *server, const mt_http_peer *peer);
bool mt_http_crowd_close_one(mt_http_server *server, const mt_http_peer *peer);
void mt_http_crowd_make_spare(mt_http_server *server);

/* A connection was accepted; was closed. */
void mt_http_crowd_enter(mt_http_crowd *crowd, mt_http_peer *peer, mt_http_connection *connection, bool spare);
void mt_http_crowd_leave(mt_http_crowd *crowd, mt_http_connection *connection);

/* Makes a spare connection an ordinary one, if there is room by now. False: there is not. */
bool mt_http_crowd_settle(mt_http_connection *connection);

#endif
