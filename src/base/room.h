/* So many bytes that many share. Nobody waits for them: who finds too few is told so at once, and comes again later. So
   those who have some can never wait for one another. Any thread. */
#ifndef MT_BASE_ROOM_H
#define MT_BASE_ROOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

typedef struct mt_room {
    size_t limit; /* set while nobody takes */
    atomic_size_t used;
} mt_room;

/* All or nothing. */
bool mt_room_take(mt_room *room, size_t bytes) MT_NODISCARD;
void mt_room_give(mt_room *room, size_t bytes);

#endif
