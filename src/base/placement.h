/* Keeps a sleeping thread from being woken on the core that its waker computes on. A scheduler that has seen two
   threads run in turn leaves them on one core; when both are to run at once, one waits until a timer tick moves it, for
   milliseconds. Does nothing on systems other than Linux. */
#ifndef MT_BASE_PLACEMENT_H
#define MT_BASE_PLACEMENT_H

#include <stdbool.h>
#ifdef __linux__
#include <sched.h>
#endif

typedef struct mt_placement {
    int thread; /* the sleeper's number in the system */
    int core;   /* where it went to sleep */
    bool moved; /* saved has its affinity mask */
#ifdef __linux__
    cpu_set_t saved;
#endif
} mt_placement;

/* Called by the sleeper before it sleeps, and when it is awake again. */
void mt_placement_sleep(mt_placement *place);
void mt_placement_awake(mt_placement *place);

/* Called by the waker in between, right before it wakes the sleeper. */
void mt_placement_wake(mt_placement *place);

#endif
