/* Calls whose time is over. A call that is late ends as one does whose client has left, and its client is told: the
   engine, the lanes and the fleet give back what it had on the way that they give back everything. So there is one
   place that knows of time, whatever a call is at: the io thread, which looks at all calls again and again.

   Rejected: a time that the engine looks at between steps. It would hold only for what the engine has already, not for
   a body that is read, a picture that is fetched or a model that is loaded. */
#include "server/timeout.h"

#include <math.h>

#include <event2/event.h>

#include "api/fields.h"
#include "base/limits.h"
#include "server/inside.h"

const char *mt_timeout_name(mt_timeout_phase phase)
{
    static const char *const names[MT_TIMEOUT_PHASES] = {"preparing", "waiting", "running"};

    return names[phase];
}

/* Only ever sooner. */
static void set(mt_call *call, double seconds)
{
    const uint64_t until = call->received + (uint64_t)(seconds * 1e9);

    /* relaxed: the io thread looks at it again and again, and no data hangs on it */
    if (until < atomic_load_explicit(&call->until, memory_order_relaxed))
        atomic_store_explicit(&call->until, until, memory_order_relaxed);
}

void mt_timeout_begin(mt_call *call)
{
    const double seconds = call->server->opt->request_timeout; /* NaN: not given; 0 and below: never */

    atomic_init(&call->until, UINT64_MAX);
    if (seconds > 0)
        set(call, seconds);
}

bool mt_timeout_read(mt_call *call, const json_t *body, mt_failure *why)
{
    const json_t *value = json_object_get(body, "timeout");
    const double seconds = json_number_value(value);

    if (!value || json_is_null(value))
        return true;
    if (!json_is_number(value))
        return mt_failure_type(why, "timeout", value, "a number of seconds");
    if (!(seconds > 0 && seconds <= MT_LIMIT_TIMEOUT_SECONDS))
        return mt_failure_set(why, 400, "invalid_value", "timeout",
                              "\"timeout\" is %g: send a number of seconds above 0 and up to %d", seconds,
                              MT_LIMIT_TIMEOUT_SECONDS);
    set(call, seconds);
    return true;
}

void mt_timeouts_watch(mt_server *server)
{
    static const struct timeval often = {.tv_usec = MT_LIMIT_TIMEOUT_MS * 1000};

    if (server->timeouts_look && !event_pending(server->timeouts_look, EV_TIMEOUT, NULL))
        event_add(server->timeouts_look, &often); /* where that fails, the next call tries again */
}
