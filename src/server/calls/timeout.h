/* The deadline of a call: after the seconds that the client (`timeout` in the body) or the operator (--request-timeout)
   allows, whichever is less, from the arrival of the request on. timeout.c says how it works. */
#ifndef MT_SERVER_CALLS_TIMEOUT_H
#define MT_SERVER_CALLS_TIMEOUT_H

#include "server/calls/call.h"
#include "server/limits.h"

/* The phase of a call in which its deadline passed. */
typedef enum mt_timeout_phase {
    MT_TIMEOUT_PREPARING, /* read, tokenized, fetching pictures, or waiting for its model */
    MT_TIMEOUT_WAITING,   /* waiting for its first token */
    MT_TIMEOUT_RUNNING,
    MT_TIMEOUT_PHASES
} mt_timeout_phase;

/* Io thread: sets the operator's deadline. */
void mt_timeout_begin(mt_call *call);

/* Io thread: starts the timer that checks deadlines; there is a call. */
void mt_timeouts_watch(mt_server *server);

/* Preparation thread: sets the client's deadline, where the body has one. False: *why. */
bool mt_timeout_read(mt_call *call, const json_t *body, mt_failure *why) MT_NODISCARD;

/* Io thread, every MT_LIMIT_TIMEOUT_MS while there are calls: ends calls whose deadline has passed. See call_late.c. */
void mt_timeouts_check(mt_server *server);

/* Seconds that an answer in the background is computed although no client follows it (--background-alone). */
double mt_timeout_alone(const mt_server *server);

#endif
