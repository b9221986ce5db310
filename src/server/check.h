/* motet serve --check: whether a server would start, told part by part, without starting it. */
#ifndef MT_SERVER_CHECK_H
#define MT_SERVER_CHECK_H

#include "base/buf.h"
#include "server/options.h"

/* Appends a line for each part, "ok" or "FAILED" with a sentence. False where one failed. */
bool mt_serve_check(const mt_options *opt, mt_buf *out);

#endif
