/* What http and https URLs give. */
#ifndef MT_MEDIA_FETCH_H
#define MT_MEDIA_FETCH_H

#include <sys/socket.h>

#include "base/buf.h"
#include "base/error.h"
#include "media/watch.h"

/* False in a build without libcurl, where every URL is refused as MT_E_UNSUPPORTED. */
extern const bool mt_fetch_present;

typedef struct mt_fetch_rules {
    int64_t ms;                                      /* in all */
    bool (*allowed)(const struct sockaddr *address); /* asked of every address before it is connected to; NULL: all */
    const mt_media_watch *watch;                     /* may be NULL */
} mt_fetch_rules;

/* Appends the body to bytes, whose limit holds. Follows MT_LIMIT_MEDIA_REDIRECTS redirects. Failures are MT_E_INVALID
   with a sentence that tells the client nothing of networks it cannot see itself, or the watch's. */
bool mt_fetch(mt_buf *bytes, const char *url, const mt_fetch_rules *rules, mt_error *err) MT_NODISCARD;

#endif
