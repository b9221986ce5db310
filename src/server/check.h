/* `motet serve --check`: finds out whether a server with these options would start, without starting it. */
#ifndef MT_SERVER_CHECK_H
#define MT_SERVER_CHECK_H

#include "base/buf.h"
#include "server/options.h"

/* Appends to out a line for each part, "ok" or "FAILED" with a sentence. False where one failed. */
bool mt_serve_check(const mt_options *opt, mt_buf *out);

#endif
