/* Loads the bytes behind a URL in a request: data:, http:, https:, and file: in a folder that the operator allows. */
#ifndef MT_MEDIA_SOURCE_H
#define MT_MEDIA_SOURCE_H

#include "base/buf.h"
#include "base/error.h"
#include "media/limits.h"
#include "media/watch.h"

/* Initialises bytes and fills it with what url names, at most limits->bytes; free with mt_buf_free; empty after a
   failure. May wait limits->fetch_ms for the network, so call it only on threads that may wait. Asks the watch for
   memory; a download that is stopped ends within about a second. Failures are MT_E_INVALID with a sentence for the
   client, or the watch's error. */
bool mt_media_load(mt_buf *bytes, const char *url, size_t len, const mt_media_limits *limits,
                   const mt_media_watch *watch, mt_error *err) MT_NODISCARD;

/* Appends bytes as base64 text. False: it does not fit. */
bool mt_base64_add(mt_buf *out, const void *data, size_t len);

/* Appends the decoded bytes of base64 text. Whitespace between letters is ignored; padding may be missing. Any other
   character fails, and so does exceeding the buffer's limit. */
bool mt_base64_decode(mt_buf *out, const char *text, size_t len, mt_error *err) MT_NODISCARD;

#endif
