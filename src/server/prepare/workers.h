/* A lane: a queue of calls and the threads that prepare them, one call a thread at a time. mt_lane in call.h lists the
   lanes. Clients take turns; workers.c has the rules. */
#ifndef MT_SERVER_PREPARE_WORKERS_H
#define MT_SERVER_PREPARE_WORKERS_H

#include "base/error.h"
#include "server/calls/call.h"

typedef struct mt_workers mt_workers;

typedef struct mt_workers_settings {
    size_t threads;  /* how many calls are prepared at once; at least 1 */
    size_t spare;    /* threads beyond these, for clients that would otherwise wait behind long work */
    int long_ms;     /* after which preparing a call counts as long work */
    size_t capacity; /* how many calls may wait */
    /* Prepares a call, which may be freed or in another lane when this returns. Returns the seconds of a processor that
       it took, in this thread and elsewhere. */
    double (*prepare)(mt_call *call);
} mt_workers_settings;

/* Starts the threads. NULL: *err. */
mt_workers *mt_workers_start(const mt_workers_settings *settings, mt_error *err) MT_NODISCARD;

/* Prepares the calls that still wait (cancelled ones end at once), ends the threads and frees everything. NULL is
   fine. */
void mt_workers_stop(mt_workers *workers);

/* Adds a call, which may be prepared and freed before this returns. False: too many wait, or the lane is stopping. */
bool mt_workers_add(mt_workers *workers, mt_call *call) MT_NODISCARD;
size_t mt_workers_waiting(mt_workers *workers); /* how many calls wait */

#endif
