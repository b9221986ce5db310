/* Confines the server process to the files it needs, once its options are known. lockdown.c says which. */
#ifndef MT_SERVER_LOCKDOWN_H
#define MT_SERVER_LOCKDOWN_H

#include "server/fleet/fleet.h"

/* Called when the models are named and before there are threads, by server.c. Logs what the kernel cannot confine. */
void mt_lockdown(const mt_options *opt, const mt_fleet *fleet);

unsigned mt_lockdown_done(void); /* what was confined: bits of base/confine.h */

#endif
