/* A deadline for a process that was told to end: if it has not ended in time, a thread of its own ends it with a line
   in the log, whatever the other threads do, one of which may never end. Used by server.c. */
#ifndef MT_SERVER_CALLS_DEADLINE_H
#define MT_SERVER_CALLS_DEADLINE_H

#include <pthread.h>
#include <stdbool.h>

typedef struct mt_deadline {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int ms;        /* milliseconds from mt_deadline_set on */
    bool set, met; /* the thread runs; the process has ended its work in time */
} mt_deadline;

/* Starts the clock, once, on a zeroed mt_deadline. False: the thread cannot be started. */
bool mt_deadline_set(mt_deadline *deadline, int ms);

/* The work is done: ends the thread. Does nothing where the deadline was never set. */
void mt_deadline_meet(mt_deadline *deadline);

#endif
