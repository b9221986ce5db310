/* Computes the prompts of --warm-prompts for every model that has been loaded, one after the other, as calls of the
   server itself: they take the way of a client's request and leave in the cache what that would leave. They are for one
   token, and every request of a client comes before them.

   A round is all prompts for one load of a model. A prompt that fails is logged, and the round goes on. Each call has a
   reference to its model from the start, which it gets only while that is loaded: so warming never loads a model, and a
   round ends where its model is unloaded. */
#include "server/fleet/warm.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/inside.h"

static void go_on(mt_server *server);

bool mt_warm_pending(const mt_server *server)
{
    return server->fleet.alone && server->warm.list.count > 0 && !server->warm.once;
}

/* Why the call of a prompt gave nothing; NULL: it was computed. */
static const char *failure_of(const mt_call *call)
{
    if (call->failure.status)
        return call->failure.text;
    if (call->answer && call->answer->failed)
        return call->answer->why.text;
    return !call->answer || call->answer->open > 0 ? "it was cancelled" : NULL;
}

/* The call of a prompt is over. */
static void over(mt_call *call)
{
    mt_server *server = call->server;
    mt_warm *w = &server->warm;
    const char *failure = failure_of(call);

    if (server->closing)
        return;
    if (failure) {
        w->failed++;
        mt_log_warn("warm.failed", "the prompt of line %zu for \"%s\": %s", w->list.at[w->next - 1].line,
                    w->member->name, failure);
    } else {
        const mt_usage usage = mt_answer_usage(call->answer);

        w->warmed++;
        w->tokens += usage.prompt;
        w->cached += usage.cached;
        mt_log_info("warm.prompt", "%zu of %zu for \"%s\": %zu tokens, %zu of them cached before", w->next,
                    w->list.count, w->member->name, usage.prompt, usage.cached);
    }
    go_on(server);
}

/* Whether a prompt is for the model of the round. */
static bool is_for(mt_server *server, const mt_warm_prompt *prompt)
{
    return !prompt->model || mt_fleet_find(&server->fleet, prompt->model, false) == server->warm.member;
}

/* Starts the next prompt of the round, or ends the round. */
static void go_on(mt_server *server)
{
    mt_warm *w = &server->warm;
    mt_waiter waiter = {0};

    while (w->next < w->list.count && !is_for(server, &w->list.at[w->next]))
        w->next++;
    if (w->next < w->list.count && !server->signals && mt_fleet_hold(w->member, &waiter)) {
        const mt_warm_prompt *prompt = &w->list.at[w->next++];

        mt_call_start_own(server, &(mt_call_own){.dialect = prompt->dialect,
                                                 .body = mt_strdup(prompt->body),
                                                 .body_len = strlen(prompt->body),
                                                 .waiter = &waiter,
                                                 .over = over});
        return;
    }
    mt_log_info("warm.done", "%zu prompts for \"%s\" in %.1f s: %zu tokens, %zu of them cached before; %zu failed",
                w->warmed, w->member->name, (double)(mt_clock_ns() - w->began) * 1e-9, w->tokens, w->cached, w->failed);
    w->member = NULL;
    w->once = true;
    mt_warm_check(server); /* another model may have been loaded meanwhile */
}

/* A model that was loaded since its last round; NULL: there is none. */
static mt_member *next_member(mt_server *server)
{
    mt_member *found = NULL;

    pthread_mutex_lock(&server->fleet.lock);
    for (size_t i = 0; i < server->fleet.count && !found; i++) {
        mt_member *m = server->fleet.members[i];

        if (!m->open || m->warmed == m->loads)
            continue;
        m->warmed = m->loads;
        if (m->served.opened.checkpoint) /* writes text */
            found = m;
    }
    pthread_mutex_unlock(&server->fleet.lock);
    return found;
}

void mt_warm_check(mt_server *server)
{
    mt_warm *w = &server->warm;
    mt_member *member;

    if (w->list.count == 0 || w->member || !server->ready || server->signals || !(member = next_member(server)))
        return;
    *w = (mt_warm){.list = w->list, .once = w->once, .member = member, .began = mt_clock_ns()};
    mt_log_info("warm.begun", "prompts of --warm-prompts for \"%s\"", member->name);
    go_on(server);
}
