/* How long a call may take, from its arrival to its end: what the client says (`timeout`, in seconds) or the operator
   (--request-timeout), whichever is less. See timeout.c. */
#ifndef MT_SERVER_TIMEOUT_H
#define MT_SERVER_TIMEOUT_H

#include "server/call.h"

/* Where a call was when its time was over. */
typedef enum mt_timeout_phase {
    MT_TIMEOUT_PREPARING, /* read, tokenized, its pictures fetched, or its model loaded */
    MT_TIMEOUT_WAITING,   /* for its first token */
    MT_TIMEOUT_RUNNING,
    MT_TIMEOUT_PHASES
} mt_timeout_phase;

const char *mt_timeout_name(mt_timeout_phase phase); /* "preparing", ... */

/* Io thread: the operator's time runs from now on. */
void mt_timeout_begin(mt_call *call);

/* Io thread: there are calls, whose time is looked at. */
void mt_timeouts_watch(mt_server *server);

/* Preparation thread: what the body says of it, before anything else is done with it. */
bool mt_timeout_read(mt_call *call, const json_t *body, mt_failure *why) MT_NODISCARD;

/* Io thread, every MT_LIMIT_TIMEOUT_MS while there are calls: ends those whose time is over. */
void mt_timeouts_check(mt_server *server);

#endif
