/* Downloads http and https URLs. */
#ifndef MT_MEDIA_FETCH_H
#define MT_MEDIA_FETCH_H

#include <sys/socket.h>

#include "base/buf.h"
#include "base/error.h"
#include "media/limits.h"
#include "media/watch.h"

/* False in a build without libcurl, where every URL is refused as MT_E_UNSUPPORTED. */
extern const bool mt_fetch_present;

typedef struct mt_fetch_rules {
    int64_t ms; /* most milliseconds for everything */
    /* asked before each connection whether the address is allowed; NULL: all are */
    bool (*allowed)(const struct sockaddr *address);
    const mt_media_watch *watch; /* may be NULL */
} mt_fetch_rules;

/* Appends the body to bytes, up to its limit. Follows at most MT_LIMIT_MEDIA_REDIRECTS redirects. Failures are
   MT_E_INVALID with a sentence that tells the client nothing about internal networks, or the watch's error. */
bool mt_fetch(mt_buf *bytes, const char *url, const mt_fetch_rules *rules, mt_error *err) MT_NODISCARD;

#endif
