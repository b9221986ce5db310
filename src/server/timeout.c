/* Calls whose time is over. A call that is late ends as one does whose client has left, and its client is told: the
   engine, the lanes and the fleet give back what it had on the way that they give back everything. So there is one
   place that knows of time, whatever a call is at: the io thread, which looks at all calls again and again.

   Rejected: a time that the engine looks at between steps. It would hold only for what the engine has already, not for
   a body that is read, a picture that is fetched or a model that is loaded. */
#include "server/timeout.h"

#include <math.h>

#include "api/fields.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/inside.h"
#include "server/watch.h"

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
        return mt_failure_set(why, 400, "invalid_type", "timeout", "\"timeout\" is %s: send a number of seconds",
                              mt_json_kind(value));
    if (!(seconds > 0 && seconds <= MT_LIMIT_TIMEOUT_SECONDS))
        return mt_failure_set(why, 400, "invalid_value", "timeout",
                              "\"timeout\" is %g: send a number of seconds above 0 and up to %d", seconds,
                              MT_LIMIT_TIMEOUT_SECONDS);
    set(call, seconds);
    return true;
}

static mt_timeout_phase phase_of(const mt_call *call)
{
    if (!call->prepared)
        return MT_TIMEOUT_PREPARING;
    return call->first_token ? MT_TIMEOUT_RUNNING : MT_TIMEOUT_WAITING;
}

static void end(mt_call *call, double seconds)
{
    static const char *const while_it[MT_TIMEOUT_PHASES] = {"while the request was prepared", "before the first token",
                                                            "before the answer was complete"};
    const mt_timeout_phase phase = phase_of(call);
    mt_failure why;

    call->server->timeouts[phase]++;
    call->timed_out = true;
    mt_failure_set(&why, 504, "timeout", NULL, "the time of %.4g s for this request was over %s: allow more (timeout)",
                   seconds, while_it[phase]);
    mt_log_info("request.timeout", "%s after %.4g s, %s", call->id, seconds, while_it[phase]);
    mt_call_fail(call, &why);
    if (call->prepared && call->answer)
        call->answer->failed = true; /* that it is cancelled now is no other end */
}

void mt_timeouts_look(mt_server *server)
{
    const uint64_t now = mt_clock_ns();

    for (mt_call *call = server->calls, *next; call; call = next) {
        const uint64_t until = atomic_load_explicit(&call->until, memory_order_relaxed); /* see set */

        next = call->next;
        if (call->over || now < until)
            continue;
        call->held = true; /* it may go while it is written to */
        end(call, (double)(until - call->received) * 1e-9);
        mt_watch_tell(call, call->over);
        call->held = false;
        mt_call_release(call);
    }
}
