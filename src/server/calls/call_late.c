/* Ends calls whose deadline has passed, and tells their clients; and answers in the background that nobody follows.
   Called by a timer of the io thread; timeout.c sets the deadlines. */
#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/calls/watch.h"
#include "server/inside.h"
#include "server/limits.h"

static mt_timeout_phase phase_of(const mt_call *call)
{
    if (!mt_call_is_prepared(call))
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
    if (mt_call_is_prepared(call) && call->answer)
        call->answer->failed = true; /* the cancelled requests' events must not end it a second time */
}

double mt_timeout_alone(const mt_server *server)
{
    const double given = server->opt->background_alone;

    return isnan(given) ? MT_LIMIT_ALONE_SECONDS : given < 0 ? INFINITY : given;
}

/* Whether no client has followed an answer in the background, or asked about it, for as long as that is allowed. */
static bool is_forsaken(const mt_call *call, uint64_t now)
{
    return call->state == MT_CALL_ALONE && !call->watchers && !mt_call_cancelled((mt_call *)call) &&
           (double)(now - call->alone_since) * 1e-9 > mt_timeout_alone(call->server);
}

/* The answer so far is kept. */
static void forsake(mt_call *call)
{
    call->server->forsaken_total++;
    call->answer->cancelled = true;
    mt_log_info("request.alone", "%s ends: nobody has followed it for %.4g s (--background-alone)", call->id,
                mt_timeout_alone(call->server));
    mt_call_cancel(call);
}

void mt_timeouts_check(mt_server *server)
{
    const uint64_t now = mt_clock_ns();

    for (mt_call *call = server->calls, *next; call; call = next) {
        const uint64_t until = atomic_load_explicit(&call->until, memory_order_relaxed); /* as in timeout.c */

        next = call->next;
        if (is_forsaken(call, now))
            forsake(call);
        if (mt_call_is_over(call) || now < until)
            continue;
        call->held = true; /* it would be freed when the client has left */
        end(call, (double)(until - call->received) * 1e-9);
        mt_watch_tell(call, mt_call_is_over(call));
        call->held = false;
        mt_call_release(call);
    }
}
