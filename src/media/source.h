/* The bytes behind a URL of a request: data:, http:, https:, and file: under a folder the operator named. */
#ifndef MT_MEDIA_SOURCE_H
#define MT_MEDIA_SOURCE_H

#include "base/buf.h"
#include "base/error.h"
#include "media/limits.h"
#include "media/watch.h"

/* Sets bytes up and fills it with what url names, at most limits->bytes; free with mt_buf_free, empty after a failure.
   Blocks for up to limits->fetch_ms when it has to ask the network, so it is for threads that may wait. Asks the watch
   for the memory; a fetch that is stopped ends within about a second. Failures are MT_E_INVALID with a sentence for the
   client, or the watch's. */
bool mt_media_load(mt_buf *bytes, const char *url, size_t len, const mt_media_limits *limits,
                   const mt_media_watch *watch, mt_error *err) MT_NODISCARD;

/* Appends what base64 text stands for. Blanks and line ends between the letters do not count; padding may be left out.
   Anything else fails, and so does what buf's limit does not allow. */
bool mt_base64_decode(mt_buf *out, const char *text, size_t len, mt_error *err) MT_NODISCARD;

#endif
