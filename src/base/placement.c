/* See placement.h. */
#include "base/placement.h"

#ifdef __linux__

#include <sched.h>
#include <unistd.h>

void mt_placement_sleep(mt_placement *place)
{
    if (place->thread == 0)
        place->thread = (int)gettid();
    place->core = sched_getcpu();
}

/* Forbids the sleeper its waker's core until it is awake. The mask is read each time, since an administrator may change
   it. */
void mt_placement_wake(mt_placement *place)
{
    int core = sched_getcpu();
    cpu_set_t mask;

    if (core < 0 || core != place->core || sched_getaffinity(place->thread, sizeof(mask), &mask))
        return;
    place->saved = mask;
    CPU_CLR((size_t)core, &mask);
    place->moved = CPU_COUNT(&mask) > 0 && sched_setaffinity(place->thread, sizeof(mask), &mask) == 0;
}

void mt_placement_awake(mt_placement *place)
{
    if (place->moved)
        sched_setaffinity(0, sizeof(place->saved), &place->saved);
    place->moved = false;
}

#else

void mt_placement_sleep(mt_placement *place)
{
    (void)place;
}

void mt_placement_wake(mt_placement *place)
{
    (void)place;
}

void mt_placement_awake(mt_placement *place)
{
    (void)place;
}

#endif
