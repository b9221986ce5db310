/* What the server gives up once its options are known. See lockdown.c. */
#ifndef MT_SERVER_LOCKDOWN_H
#define MT_SERVER_LOCKDOWN_H

#include "server/fleet.h"

/* When the models are named, before there are threads. Says in the log what the kernel could do. */
void mt_lockdown(const mt_options *opt, const mt_fleet *fleet);

unsigned mt_lockdown_done(void); /* bits of base/confine.h */

#endif
