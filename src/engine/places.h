/* Places: permissions to wait or run, one a choice, which bound the engine's queue for all clients and for each.
   Whoever submits a request has a place for each choice. Any thread may call.

   A client alone gets at most `most` places. The total is a third more: a client may hold at most three times as many
   as are free, so one alone gets three quarters of the total, two get three sevenths each, and a newcomer always finds
   some. A client without any place may take the last ones. A place is never taken away for another client: that would
   be an error in the middle of a stream, while a refusal here is a 429 before the answer began. */
#ifndef MT_ENGINE_PLACES_H
#define MT_ENGINE_PLACES_H

#include <pthread.h>
#include <stddef.h>

#include "base/error.h"
#include "engine/clients.h"

typedef struct mt_places {
    size_t all; /* the total; does not change */

    pthread_mutex_t lock; /* protects the fields below */
    size_t taken;
    /* one element for each client that has places */
    struct mt_places_of {
        uint64_t client;
        size_t taken; /* at least 1 */
    } * of;
    size_t count;
} mt_places;

/* The total number of places, where one client alone may have `most`. */
size_t mt_places_all(size_t most);

/* Free with mt_places_free. */
void mt_places_init(mt_places *places, size_t most);
void mt_places_free(mt_places *places);

/* Takes as many as the client may have, up to `most`. 0 with MT_E_BUSY when that would be fewer than `least`, which is
   at least 1. Give back with mt_places_give. */
size_t mt_places_take(mt_places *places, const mt_client *client, size_t least, size_t most,
                      mt_error *err) MT_NODISCARD;

/* Whether the client could take no place now; then sets the error that mt_places_take would. Others may take or give
   places at any time. */
bool mt_places_full(mt_places *places, const mt_client *client, mt_error *err) MT_NODISCARD;
void mt_places_give(mt_places *places, const mt_client *client, size_t count);

#endif
