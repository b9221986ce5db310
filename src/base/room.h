/* A room: a number of bytes that many share without waiting: where too few are left, the caller is told at once and
   gives up. So holders can never wait for one another. Any thread. */
#ifndef MT_BASE_ROOM_H
#define MT_BASE_ROOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

typedef struct mt_room {
    size_t limit; /* set while no thread takes any */
    atomic_size_t used;
} mt_room;

/* Takes all the bytes, or returns false and takes none. Give them back with mt_room_give. */
bool mt_room_take(mt_room *room, size_t bytes) MT_NODISCARD;
/* The same, but at least `rest` bytes must be left for others. */
bool mt_room_take_leaving(mt_room *room, size_t bytes, size_t rest) MT_NODISCARD;
void mt_room_give(mt_room *room, size_t bytes);

#endif
