/* A lane: a queue of calls and the threads that prepare them, in the order they came, one at a time each. mt_lane in
   call.h lists the lanes. */
#ifndef MT_SERVER_WORKERS_H
#define MT_SERVER_WORKERS_H

#include "base/error.h"
#include "server/call.h"

typedef struct mt_workers mt_workers;

/* Starts threads that call prepare for each call. capacity: how many calls may wait. NULL: *err. */
mt_workers *mt_workers_start(size_t threads, size_t capacity, void (*prepare)(mt_call *call),
                             mt_error *err) MT_NODISCARD;

/* Prepares the calls that still wait (cancelled ones end at once), ends the threads and frees everything. NULL is
   fine. */
void mt_workers_stop(mt_workers *workers);

/* Adds a call, which may be prepared and freed before this returns. False: too many wait, or the lane is stopping. */
bool mt_workers_add(mt_workers *workers, mt_call *call) MT_NODISCARD;
size_t mt_workers_waiting(mt_workers *workers); /* how many calls wait */

#endif
