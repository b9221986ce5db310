/* How many choices may wait and run, of all clients and of each: whoever submits one has a place for it. Any thread.

   One client alone may have `most` of them. What it must leave to others is a third part more: each may have at most
   three times as many as are free, so one gets three quarters of all, two get three sevenths each, and there is always
   something left for the next. Who has none gets the last ones. Nobody who was let in is put out again for another:
   that would be an error in the middle of a stream, where this is a 429 before anything was said. */
#ifndef MT_ENGINE_PLACES_H
#define MT_ENGINE_PLACES_H

#include <pthread.h>
#include <stddef.h>

#include "base/error.h"
#include "engine/clients.h"

typedef struct mt_places {
    size_t all; /* that there are; does not change */

    pthread_mutex_t lock; /* over what follows */
    size_t taken;
    struct mt_places_of {
        uint64_t client;
        size_t taken; /* at least 1 */
    } * of;
    size_t count;
} mt_places;

/* How many there are for everybody, where one client may have so many. */
size_t mt_places_all(size_t most);

/* Free with mt_places_free. */
void mt_places_init(mt_places *places, size_t most);
void mt_places_free(mt_places *places);

/* As many as the client may have, between `least` (1 or more) and `most`; 0 with MT_E_BUSY when those are fewer. */
size_t mt_places_take(mt_places *places, const mt_client *client, size_t least, size_t most,
                      mt_error *err) MT_NODISCARD;

/* Whether the client may have not even one: then MT_E_BUSY, as mt_places_take says it. A moment later it may. */
bool mt_places_full(mt_places *places, const mt_client *client, mt_error *err) MT_NODISCARD;
void mt_places_give(mt_places *places, const mt_client *client, size_t count);

#endif
