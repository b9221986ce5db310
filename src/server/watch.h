/* Clients that come back to the stream of a background answer while it is being given. See watch.c. Io thread. */
#ifndef MT_SERVER_WATCH_H
#define MT_SERVER_WATCH_H

#include "server/call.h"

/* Where in a log of events the one begins that follows the one of that number; its end where none does yet. */
size_t mt_watch_offset(const mt_buf *log, int64_t after);

/* Streams the events of a call that runs to one more client, from a place in its log on; false where as many watch as
   may. */
bool mt_watch_start(mt_call *call, mt_http_handle handle, size_t offset) MT_NODISCARD;

/* The log has grown, or nothing more will come: tells all who watch. The caller holds the call. */
void mt_watch_tell(mt_call *call, bool complete);

/* Says to those who heard nothing since the last time that the stream lives. The caller holds the call. */
void mt_watch_keep_alive(mt_call *call);

#endif
