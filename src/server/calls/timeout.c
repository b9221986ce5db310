/* A call whose deadline has passed ends as one does whose client has left, except that its client is told. So engine,
   lanes and fleet need not know of deadlines: the io thread alone checks all calls, whatever they are at.

   Rejected: a deadline that the engine checks between steps. It would miss calls whose body is read, whose pictures are
   fetched or whose model is loaded. */
#include "server/calls/timeout.h"

#include <event2/event.h>

#include "base/json_tree.h"
#include "server/inside.h"
#include "server/limits.h"

/* Sets a deadline, unless there is an earlier one. */
static void set_deadline(mt_call *call, double seconds)
{
    const uint64_t until = call->received + (uint64_t)(seconds * 1e9);

    /* relaxed: the io thread reads it again and again, and no other data depends on it */
    if (until < atomic_load_explicit(&call->until, memory_order_relaxed))
        atomic_store_explicit(&call->until, until, memory_order_relaxed);
}

void mt_timeout_begin(mt_call *call)
{
    const double seconds = call->server->opt->request_timeout; /* NaN: not given; 0 and below: none */

    atomic_init(&call->until, UINT64_MAX);
    if (seconds > 0)
        set_deadline(call, seconds);
}

bool mt_timeout_read(mt_call *call, const json_t *body, mt_failure *why)
{
    const json_t *value = json_object_get(body, "timeout");
    const double seconds = json_number_value(value);
    char given[MT_JSON_SHOWN];

    if (!value || json_is_null(value))
        return true;
    if (!json_is_number(value))
        return mt_failure_type(why, "timeout", value, "a number of seconds");
    if (!(seconds > 0 && seconds <= MT_LIMIT_TIMEOUT_SECONDS))
        return mt_failure_value(why, "timeout", "is %s: send a number of seconds above 0 and up to %d",
                                mt_json_shown(value, given), MT_LIMIT_TIMEOUT_SECONDS);
    set_deadline(call, seconds);
    return true;
}

void mt_timeouts_watch(mt_server *server)
{
    static const struct timeval often = {.tv_usec = MT_LIMIT_TIMEOUT_MS * 1000};

    if (server->timeouts_look && !event_pending(server->timeouts_look, EV_TIMEOUT, NULL))
        event_add(server->timeouts_look, &often); /* where it fails, the next call tries again */
}
