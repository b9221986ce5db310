/* SIGHUP: what the server can read again while it runs. See reload.c. */
#ifndef MT_SERVER_RELOAD_H
#define MT_SERVER_RELOAD_H

#include "server/call.h"

/* Io thread. What cannot be read leaves what there is, with a line in the log. */
void mt_reload(mt_server *server);

/* Io thread: opens what accounts keep, of those that have none yet, and says whether accounts are kept apart. */
void mt_reload_share(mt_server *server);

#endif
