/* `motet serve`: HTTP, dialects, preparation and engines wired together. Called by the command line. */
#ifndef MT_SERVER_SERVER_H
#define MT_SERVER_SERVER_H

#include "options/options.h"

/* Serves until SIGTERM or SIGINT, then finishes what is being answered. False: *err, it cannot begin. Only once at a
   time in a process, since signal handlers and jansson's allocator belong to the process. */
bool mt_serve(const mt_options *opt, mt_error *err) MT_NODISCARD;

/* `motet serve --check`: whether a server with these options would start, without starting it. Appends to out a line
   for each part, "ok" or "FAILED" with a sentence. False where one failed. See check.c. */
bool mt_serve_check(const mt_options *opt, mt_buf *out);

#endif
