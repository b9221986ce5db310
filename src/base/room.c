/* See room.h. */
#include "base/room.h"

#include <assert.h>

/* relaxed everywhere: the number is all that matters */
bool mt_room_take_leaving(mt_room *room, size_t bytes, size_t rest)
{
    size_t used = atomic_load_explicit(&room->used, memory_order_relaxed);

    do
        if (used > room->limit || rest > room->limit - used || bytes > room->limit - used - rest)
            return false;
    while (!atomic_compare_exchange_weak_explicit(&room->used, &used, used + bytes, memory_order_relaxed,
                                                  memory_order_relaxed));
    return true;
}

bool mt_room_take(mt_room *room, size_t bytes)
{
    return mt_room_take_leaving(room, bytes, 0);
}

void mt_room_give(mt_room *room, size_t bytes)
{
    const size_t before = atomic_fetch_sub_explicit(&room->used, bytes, memory_order_relaxed);

    assert(before >= bytes);
    (void)before;
}
