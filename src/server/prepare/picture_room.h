/* The memory for pictures of a model: a bound on the bytes of all that are fetched, decoded, waiting or being answered,
   with all memory needed on the way. Unlike with mt_room, threads wait for bytes, and clients take turns;
   picture_room.c has the rules. Any thread may call. */
#ifndef MT_SERVER_PREPARE_PICTURE_ROOM_H
#define MT_SERVER_PREPARE_PICTURE_ROOM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/stats.h"

/* The share of the room that a client has, or a request. */
typedef struct mt_picture_share {
    uint64_t client;
    size_t bytes;
} mt_picture_share;

/* A request that waits for bytes. */
typedef struct mt_picture_waiter {
    const mt_picture_share *has;
    size_t bytes; /* that it wants beside */
    struct mt_picture_waiter *next;
} mt_picture_waiter;

typedef struct mt_picture_room {
    pthread_mutex_t lock; /* of all fields */
    pthread_cond_t freed; /* signalled when bytes are given back */
    size_t used, limit;   /* bytes */
    size_t given;         /* of used: bytes of requests that the engine has, which will be freed without our doing */
    size_t holders;       /* requests in preparation that have bytes */
    size_t stuck;         /* of holders: those that wait for more */
    uint64_t frees;       /* how often bytes were given back */
    mt_picture_share *shares;           /* of clients that have bytes */
    size_t share_count, share_capacity; /* elements; elements that there is memory for */
    mt_picture_waiter *waiters;         /* requests that wait for bytes, the oldest first */
    uint64_t pictures;                  /* how many were prepared so far */
    mt_histogram seconds;               /* that the pictures of a request took, from fetching to patches */
} mt_picture_room;

void mt_picture_room_init(mt_picture_room *room, size_t limit);
void mt_picture_room_free(mt_picture_room *room);

/* The most bytes that one request may have. */
size_t mt_picture_room_most(const mt_picture_room *room);

/* Takes more bytes for the request that has *has, waiting for others to give some back, until *stop is true. False:
   *err. */
bool mt_picture_room_take(mt_picture_room *room, mt_picture_share *has, size_t bytes, const atomic_bool *stop,
                          mt_error *err) MT_NODISCARD;

/* Gives back some of what a request in preparation has. */
void mt_picture_room_give(mt_picture_room *room, mt_picture_share *has, size_t bytes);

/* The engine has the request from now on. mt_picture_room_end: the engine has freed it. */
void mt_picture_room_hand_over(mt_picture_room *room, const mt_picture_share *has);
void mt_picture_room_end(mt_picture_room *room, const mt_picture_share *has);

/* Counts pictures that were prepared, for the metrics. */
void mt_picture_room_count(mt_picture_room *room, size_t pictures, double seconds);

#endif
