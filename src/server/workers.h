/* A lane of preparation: threads that take calls in the order these came and prepare one at a time each. See mt_lane
   for which there are. */
#ifndef MT_SERVER_WORKERS_H
#define MT_SERVER_WORKERS_H

#include "base/error.h"
#include "server/call.h"

typedef struct mt_workers mt_workers;

mt_workers *mt_workers_start(size_t threads, size_t capacity, void (*prepare)(mt_call *call),
                             mt_error *err) MT_NODISCARD;

/* Prepares what is left (cancelled calls end at once), ends the threads and frees everything. NULL is fine. */
void mt_workers_stop(mt_workers *workers);

/* False when as many calls wait as may. */
bool mt_workers_add(mt_workers *workers, mt_call *call) MT_NODISCARD;
size_t mt_workers_waiting(mt_workers *workers);

#endif
