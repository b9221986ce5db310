/* motet as a server: HTTP, the dialects, preparation and the engine, wired together. See server.c. */
#ifndef MT_SERVER_SERVER_H
#define MT_SERVER_SERVER_H

#include "server/options.h"

/* Serves until SIGTERM or SIGINT, and what was being answered then has ended. False with a sentence when it cannot
   begin. One at a time in a process: signals and jansson's memory are the process's. */
bool mt_serve(const mt_options *opt, mt_error *err) MT_NODISCARD;

#endif
