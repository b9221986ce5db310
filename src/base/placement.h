/* Keeps a sleeping thread from being woken on the core its waker computes on. A scheduler that has seen two threads
   run in turn leaves them on one core; when they are then to run at the same time, one waits for the other until a
   timer tick moves it: milliseconds. Does nothing on systems other than Linux. */
#ifndef MT_BASE_PLACEMENT_H
#define MT_BASE_PLACEMENT_H

#include <stdbool.h>
#ifdef __linux__
#include <sched.h>
#endif

typedef struct mt_placement {
    int thread; /* of the sleeper, in the system's numbering */
    int core;   /* where it went to sleep */
    bool moved; /* saved holds its affinity mask */
#ifdef __linux__
    cpu_set_t saved;
#endif
} mt_placement;

/* Called by the sleeper before it sleeps, and again when it is awake. */
void mt_placement_sleep(mt_placement *place);
void mt_placement_awake(mt_placement *place);

/* Called by the waker, between the two, right before it wakes the sleeper. */
void mt_placement_wake(mt_placement *place);

#endif
