/* The bytes behind a URL of a request: data:, http:, https:, and file: under a folder the operator named. */
#ifndef MT_MEDIA_SOURCE_H
#define MT_MEDIA_SOURCE_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/error.h"
#include "media/limits.h"

typedef enum mt_media_kind { MT_MEDIA_IMAGE, MT_MEDIA_VIDEO } mt_media_kind;

/* Appends to bytes what url names; at most limits->bytes. Blocks for as long as limits->fetch_ms when it has to ask the
   network, so it is for threads that may wait. cancel may be NULL; once it is true, a fetch ends within a second.
   Failures are MT_E_INVALID with a sentence for the client. */
bool mt_media_load(mt_buf *bytes, const char *url, size_t len, mt_media_kind kind, const mt_media_limits *limits,
                   const atomic_bool *cancel, mt_error *err) MT_NODISCARD;

#endif
