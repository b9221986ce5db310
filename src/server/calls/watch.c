/* A watcher is a client beside the one that sent the request. It has an offset in the answer's log of events and is
   sent what lies behind it. The log keeps all events, so a watcher that reads slowly delays only itself, and one that
   comes late or comes back misses nothing.

   Invariants:
   1. A call lives until each of its watchers has got the whole log or has left.
   2. A watcher is freed when the http server lets go of it: its answer is complete, or its client has left. Writing may
      find that the client has left, and free the watcher; so loops read `next` before they write. */
#include "server/calls/watch.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "server/inside.h"
#include "server/limits.h"

struct mt_watcher {
    mt_call *call;
    mt_watcher *next;
    mt_http_handle handle;
    size_t offset; /* in the log: up to here it was sent */
    bool paused;   /* the client reads too slowly */
    bool spoke;    /* something was sent since the last mt_watch_keep_alive */
};

size_t mt_watch_offset(const mt_buf *log, int64_t after)
{
    const char *at = log->data, *end;

    /* Events are numbered from 0 without gaps, and none has an empty line in it. */
    for (int64_t i = 0; at && i <= after; i++) {
        end = strstr(at, "\n\n");
        if (!end)
            return log->len;
        at = end + 2;
    }
    return at ? (size_t)(at - log->data) : 0;
}

static void unlink_watcher(mt_watcher *w)
{
    mt_watcher **at = &w->call->watchers;

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    w->call->alone_since = mt_clock_ns();
    mt_free(w);
}

/* Called by the http server when the client has left. */
static void gone(void *user)
{
    mt_watcher *w = user;
    mt_call *call = w->call;

    unlink_watcher(w);
    mt_call_release(call);
}

/* Sends a watcher what is new. It may be freed thereby. */
static void tell(mt_watcher *w, bool complete)
{
    mt_call *call = w->call;
    mt_http_server *http = call->server->http;
    const mt_buf *log = &call->answer->log;
    const mt_http_handle handle = w->handle;
    const size_t from = w->offset;

    if (w->paused)
        return;
    w->offset = log->len;
    w->spoke = w->spoke || log->len > from;
    if (log->len > from && !mt_http_write(http, handle, log->data + from, log->len - from))
        return; /* the client has left: `gone` was or will be called */
    /* a full log has lost its end: the stream is broken off */
    if (log->full ? mt_http_abort(http, handle) : complete && mt_http_end(http, handle))
        unlink_watcher(w);
}

/* Called by the http server when the client reads too slowly, and when it has caught up. */
static void paused(void *user, bool is_paused)
{
    mt_watcher *w = user;
    mt_call *call = w->call;

    w->paused = is_paused;
    if (is_paused)
        return;
    tell(w, mt_call_is_over(call));
    mt_call_release(call);
}

static const mt_http_follower follower = {.gone = gone, .paused = paused};

bool mt_watch_start(mt_call *call, mt_http_handle handle, size_t offset)
{
    mt_http_server *http = call->server->http;
    size_t count = 0;
    mt_watcher *w;

    for (w = call->watchers; w; w = w->next)
        count++;
    if (count == MT_LIMIT_WATCHERS)
        return false;
    w = mt_alloc(sizeof(*w));
    *w = (mt_watcher){.call = call, .next = call->watchers, .handle = handle, .offset = offset};
    call->watchers = w;
    if (!mt_http_follow(http, handle, &follower, w))
        unlink_watcher(w);
    else if (mt_call_begin_stream(call, handle))
        tell(w, false);
    return true;
}

void mt_watch_tell(mt_call *call, bool complete)
{
    for (mt_watcher *w = call->watchers, *next; w; w = next) {
        next = w->next;
        tell(w, complete);
    }
}

void mt_watch_keep_alive(mt_call *call)
{
    for (mt_watcher *w = call->watchers, *next; w; w = next) {
        const bool spoke = w->spoke || w->paused;

        next = w->next;
        w->spoke = false;
        if (!spoke)
            mt_http_write(call->server->http, w->handle, call->dialect->idle, strlen(call->dialect->idle));
    }
}
