/* How many choices may wait and run: whoever submits one has a place for it. Any thread. */
#ifndef MT_ENGINE_PLACES_H
#define MT_ENGINE_PLACES_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/error.h"

typedef struct mt_places {
    atomic_size_t taken;
    size_t most;
} mt_places;

/* As many as there are, between `least` (1 or more) and `most`; 0 with MT_E_BUSY when there are fewer. */
size_t mt_places_take(mt_places *places, size_t least, size_t most, mt_error *err) MT_NODISCARD;
void mt_places_give(mt_places *places, size_t count);

#endif
