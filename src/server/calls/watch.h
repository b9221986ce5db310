/* Watchers: clients that come back to the stream of a background answer while it is computed. Only the io thread uses
   this. watch.c says how it works. */
#ifndef MT_SERVER_CALLS_WATCH_H
#define MT_SERVER_CALLS_WATCH_H

#include "server/calls/call.h"
#include "server/limits.h"

/* The offset in a log of events at which the event after number `after` begins; the log's length where there is none
   yet. */
size_t mt_watch_offset(const mt_buf *log, int64_t after);

/* Streams the events of a running call to one more client, from an offset in its log on. False: there are
   MT_LIMIT_WATCHERS already. */
bool mt_watch_start(mt_call *call, mt_http_handle handle, size_t offset) MT_NODISCARD;

/* Sends the watchers what is new in the log. complete: nothing more will come. call->held must be set. */
void mt_watch_tell(mt_call *call, bool complete);

/* Sends something to watchers whose streams were silent since the last time. call->held must be set. */
void mt_watch_keep_alive(mt_call *call);

#endif
