/* Connections are shared by address when there are too few.

   1. One address alone may have limits.connections. A third more are for others: each address may have at most three
      times as many as are free, and an address without any gets the last one.
   2. Beyond that, a new connection replaces one that no client waits on: one that is closed except for the client's
      end, one without a request, or one whose head has not come yet. Those of the address with the most connections
      are closed first, and of these the one that has been so for longest. One whose body is being received is closed
      for an address that has two fewer. A connection with an answer under way is never closed for another.
   3. A connection that finds no room is a spare one: it may use routes that are always answered (MT_HTTP_ALWAYS, such
      as health checks) and gets 503 for all others, unless there is room by then. Spare connections are closed after
      one answer, and the oldest is closed for the newest, so that they cannot be used up.

   Closing for another means freeing at once: a loop that accepts many connections in one go has no time in between. */
#include "http/crowd.h"

#include <string.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "http/connection.h"
#include "http/proxies.h"

enum {
    TIMES = 3, /* see rule 1 */
    TRIES = 8, /* candidates that are tried for each new connection */
};

void mt_http_crowd_init(mt_http_crowd *crowd, size_t most, size_t spare)
{
    *crowd = (mt_http_crowd){.all = most + (most + TIMES - 1) / TIMES, .spare = spare};
    /* One more, for the address that has just come */
    crowd->peers = mt_alloc_array(crowd->all + spare + 1, sizeof(*crowd->peers));
}

void mt_http_crowd_free(mt_http_crowd *crowd)
{
    mt_free(crowd->peers);
    *crowd = (mt_http_crowd){0};
}

mt_http_peer *mt_http_crowd_peer(mt_http_crowd *crowd, const char *address)
{
    char name[MT_HTTP_CLIENT_SIZE];
    mt_http_peer *unused = NULL;
    uint64_t id;

    mt_http_client(NULL, address, NULL, 0, name);
    id = mt_hash(name, strlen(name));
    for (size_t i = 0; i < crowd->top; i++) {
        mt_http_peer *peer = &crowd->peers[i];

        if (peer->held > 0 && peer->id == id)
            return peer;
        if (peer->held == 0 && !unused)
            unused = peer;
    }
    if (!unused)
        unused = &crowd->peers[crowd->top++];
    *unused = (mt_http_peer){.id = id};
    return unused;
}

static bool has_room(const mt_http_crowd *crowd, const mt_http_peer *peer)
{
    const size_t left = crowd->all - crowd->open;

    return left > 0 && (peer->open == 0 || peer->open + 1 <= TIMES * (left - 1));
}

/* How little is lost by closing it: higher is less; 4: nothing, it is closing already; 0: it must stay. */
static int closable(mt_http_connection *c, const mt_http_peer *to)
{
    if (c->doomed && !c->spare)
        return 4;
    if (c->spare || (c->from != to && c->from->open <= to->open))
        return 0;
    switch (c->phase) {
    case MT_HTTP_LINGERING: return 3;
    case MT_HTTP_READING_HEAD: return mt_http_connection_waiting(c) > 0 || c->exchange.id ? 0 : 2;
    case MT_HTTP_READING_BODY: return !c->exchange.id && c->from->open >= to->open + 2;
    case MT_HTTP_ANSWERING:
    case MT_HTTP_CLOSING: break;
    }
    return 0;
}

/* Whether a is closed before b: of the address with the most, then the one that loses least, then the oldest. */
static bool goes_first(mt_http_connection *a, mt_http_connection *b, const mt_http_peer *to)
{
    const int x = closable(a, to), y = closable(b, to);

    if (x == 4 || y == 4)
        return x == 4;
    if ((x > 1) != (y > 1)) /* a connection with a request is kept before one without, whatever its address */
        return x > 1;
    if (a->from->open != b->from->open)
        return a->from->open > b->from->open;
    return x != y ? x > y : a->quiet < b->quiet;
}

static mt_http_connection *who_goes(const mt_http_server *server, const mt_http_peer *peer)
{
    mt_http_connection *first = NULL;

    for (size_t i = 0; i < server->slot_count; i++) {
        mt_http_connection *c = server->slots[i];

        if (c && closable(c, peer) && (!first || goes_first(c, first, peer)))
            first = c;
    }
    return first;
}

/* Whether something has come that was not read yet: then it is no better to close than the new one. */
static bool has_input(mt_http_connection *c)
{
    char byte;

    if (c->phase != MT_HTTP_READING_HEAD || (evbuffer_get_length(bufferevent_get_input(c->bev)) == 0 &&
                                             recv(bufferevent_getfd(c->bev), &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0))
        return false;
    c->quiet = mt_clock_ns();
    return true;
}

bool mt_http_crowd_close_one(mt_http_server *server, const mt_http_peer *peer)
{
    mt_http_connection *first = NULL;

    for (int tries = 0; tries < TRIES; tries++) {
        first = who_goes(server, peer);
        if (!first || !has_input(first))
            break;
        first = NULL;
    }
    if (!first)
        return false;
    mt_http_count_add(&server->count.yielded, !first->doomed);
    mt_http_connection_free(first);
    return true;
}

bool mt_http_crowd_make_room(mt_http_server *server, const mt_http_peer *peer)
{
    return has_room(&server->crowd, peer) || mt_http_crowd_close_one(server, peer);
}

void mt_http_crowd_make_spare(mt_http_server *server)
{
    mt_http_connection *first = NULL;

    if (server->crowd.spares < server->crowd.spare)
        return;
    for (size_t i = 0; i < server->slot_count; i++) {
        mt_http_connection *c = server->slots[i];

        if (c && c->spare && (!first || c->quiet < first->quiet))
            first = c;
    }
    mt_http_count_add(&server->count.yielded, 1);
    mt_http_connection_free(first);
}

void mt_http_crowd_enter(mt_http_crowd *crowd, mt_http_peer *peer, mt_http_connection *c, bool spare)
{
    c->from = peer;
    c->spare = spare;
    peer->held++;
    peer->open += !spare;
    *(spare ? &crowd->spares : &crowd->open) += 1;
}

void mt_http_crowd_leave(mt_http_crowd *crowd, mt_http_connection *c)
{
    c->from->held--;
    c->from->open -= !c->spare;
    *(c->spare ? &crowd->spares : &crowd->open) -= 1;
}

bool mt_http_crowd_settle(mt_http_connection *c)
{
    mt_http_crowd *crowd = &c->server->crowd;
    mt_http_peer *peer = c->from;

    if (!c->spare || !mt_http_crowd_make_room(c->server, peer))
        return !c->spare;
    mt_http_crowd_leave(crowd, c);
    mt_http_crowd_enter(crowd, peer, c, false);
    return true;
}
