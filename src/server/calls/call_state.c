/* The states of a call, and its end: the line in the log and freeing it. */
#include <assert.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/json_write.h"
#include "base/log.h"
#include "server/inside.h"

#define OF(state) (1u << MT_CALL_##state)

void mt_call_change(mt_call *call, mt_call_state to)
{
    static const unsigned from[] = {
        /* from which states each state can be reached */
        [MT_CALL_LEFT] = OF(PREPARING),
        [MT_CALL_ANSWERING] = OF(PREPARING),
        [MT_CALL_STREAMING] = OF(ANSWERING),
        [MT_CALL_ALONE] = OF(ANSWERING) | OF(STREAMING),
        [MT_CALL_OVER] = OF(LEFT) | OF(ANSWERING) | OF(STREAMING),
        [MT_CALL_KEPT] = OF(ALONE),
    };

    assert(from[to] >> call->state & 1);
    call->state = to;
}

void mt_call_end(mt_call *call)
{
    if (!mt_call_is_over(call))
        mt_call_change(call, call->state == MT_CALL_PREPARING ? MT_CALL_LEFT
                             : call->state == MT_CALL_ALONE   ? MT_CALL_KEPT
                                                              : MT_CALL_OVER);
}

static double ms_since(uint64_t start, uint64_t end)
{
    return end > start ? (double)(end - start) / 1e6 : 0;
}

static const char *finish_name(const mt_call *call)
{
    if (call->answer->failed || call->timed_out)
        return call->timed_out ? "timeout" : "error";
    return call->answer->open ? "cancelled" : mt_finish_name(call->answer->choices[0].finish);
}

/* The fields of the log line of a finished call, as members of a JSON object. */
static void add_members(mt_buf *out, const mt_call *call, const mt_usage *all, uint64_t now)
{
    mt_json_write(out,
                  "'id':%s,'dialect':%s,'prompt_tokens':%zu,'cached_tokens':%zu,'tokens':%zu,'finish':%s,"
                  "'prepared_ms':%.1f,'first_ms':%.1f,'total_ms':%.1f",
                  call->id, call->dialect->name, all->prompt, all->cached, all->tokens, finish_name(call),
                  ms_since(call->received, call->prepared_at), ms_since(call->received, call->first_token),
                  ms_since(call->received, now));
    if (call->account)
        mt_json_write(out, "'key':%s", call->account->name);
    if (call->name[0])
        mt_json_write(out, "'as':%s", call->name);
    if (call->session[0])
        mt_json_write(out, "'session':%s", call->session);
}

/* Logs a line for each finished call: at level info where something was computed, else at level debug. */
static void report(const mt_call *call)
{
    const uint64_t now = mt_clock_ns();

    if (!call->answer || call->failure.status) {
        mt_log_debug("request.done", "%s %d after %.1f ms", call->id, call->failure.status,
                     ms_since(call->received, now));
        return;
    }
    const mt_usage all = mt_answer_usage(call->answer);
    mt_buf members = {.limit = MT_LIMIT_LOG_LINE};

    add_members(&members, call, &all, now);
    mt_log_fields(
        MT_LOG_INFO, "request.done", members.data,
        "%s %s prompt %zu cached %zu generated %zu finish %s prepared %.1f ms first %.1f ms total %.1f ms%s%s%s%s%s%s",
        call->id, call->dialect->name, all.prompt, all.cached, all.tokens, finish_name(call),
        ms_since(call->received, call->prepared_at), ms_since(call->received, call->first_token),
        ms_since(call->received, now), call->account ? " key " : "", call->account ? call->account->name : "",
        call->name[0] ? " as " : "", call->name, call->session[0] ? " session " : "", call->session);
    mt_buf_free(&members);
}

static void unlink_call(mt_call *call)
{
    if (call->next)
        call->next->prev = call->prev;
    *(call->prev ? &call->prev->next : &call->server->calls) = call->next;
    call->server->call_count--;
}

void mt_call_release(mt_call *call)
{
    if (call->held || call->followed || call->watchers || !mt_call_is_over(call) || !mt_call_is_prepared(call) ||
        call->ended < call->submitted)
        return;
    report(call);
    unlink_call(call);
    if (call->over)
        call->over(call);
    mt_call_give_places(call, 0);
    mt_room_give(&call->server->room, call->body_charge + call->charged);
    mt_answer_free(call->answer);
    mt_free(call->body);
    mt_buf_free(&call->text);
    mt_buf_free(&call->out);
    for (size_t i = call->submitted; i < call->source_count; i++)
        mt_request_free(call->sources[i].request);
    mt_free(call->sources);
    mt_free(call->warning);
    mt_free(call->param);
    json_decref(call->created);
    pthread_mutex_destroy(&call->lock);
    mt_recent_release(call->recent);
    mt_fleet_give(&call->waiter);
    mt_crash_leave(call->crash);
    mt_free(call);
}
