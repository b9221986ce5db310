/* What the server is at, for who looks after it: all of it on SIGQUIT, and steps that do not end. See state.c. */
#ifndef MT_SERVER_STATE_H
#define MT_SERVER_STATE_H

#include "server/call.h"

/* Io thread. Writes one line of JSON to standard error, whole. */
void mt_state_dump(mt_server *server);

/* Io thread, once a second: names steps that have run for longer than --slow-step, each once. */
void mt_state_check_steps(mt_server *server);

#endif
