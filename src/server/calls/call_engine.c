/* The engine's side of a call: events of requests become messages to the io thread, and pausing or cancelling a call
   becomes flags of its requests. */
#include <string.h>

#include "base/alloc.h"
#include "base/json_tree.h"
#include "server/calls/call.h"
#include "server/inside.h"
#include "server/limits.h"

typedef struct event_message {
    mt_message message;
    mt_call_source *source;
    mt_event event; /* its pointers point into bytes, or to error */
    mt_error error;
    char bytes[];
} event_message;

/* Copies len bytes to *at and moves *at behind them. Returns where the copy begins. */
static char *put(char **at, const void *from, size_t len)
{
    char *to = *at;

    if (len > 0)
        memcpy(to, from, len);
    *at += len;
    return to;
}

/* A message with a deep copy of an event, in one allocation: it is made on the engine's thread and freed on the io
   thread. */
static event_message *copy(mt_call_source *source, const mt_event *event)
{
    const size_t tops = event->top_count * sizeof(*event->top);
    const size_t vector = event->vector_len * sizeof(*event->vector);
    event_message *e = mt_alloc(sizeof(*e) + vector + tops + event->text_len + event->stop.len);
    char *at = e->bytes;

    e->source = source;
    e->event = *event;
    e->event.vector = event->vector ? (const float *)(const void *)put(&at, event->vector, vector) : NULL;
    e->event.top = (const mt_logprob *)(const void *)put(&at, event->top, tops);
    e->event.text = put(&at, event->text, event->text_len);
    e->event.stop.str = event->stop.str ? put(&at, event->stop.str, event->stop.len) : NULL;
    if (event->error) {
        e->error = *event->error;
        e->event.error = &e->error;
    }
    return e;
}

static void open_event(mt_message *message)
{
    event_message *e = (event_message *)message; /* message is the first member */
    mt_call *call = e->source->call;
    bool resume;

    pthread_mutex_lock(&call->lock);
    call->pending--;
    resume = call->choked && call->pending == 0;
    if (resume)
        call->choked = false;
    pthread_mutex_unlock(&call->lock);
    mt_call_receive(call, e->source->prompt, &e->event, resume);
    mt_free(e);
}

/* The engine's thread, for each event of a request; ctx is an mt_call_source. Copies the event and has the io thread
   call mt_call_receive. */
static void post_event(void *ctx, const mt_event *event)
{
    mt_call_source *source = ctx;
    mt_call *call = source->call;
    event_message *e = copy(source, event);

    e->message.open = open_event;
    pthread_mutex_lock(&call->lock);
    if (++call->pending >= MT_LIMIT_OUTBOX && !call->choked) {
        call->choked = true;
        for (size_t i = 0; i < call->source_count; i++)
            if (call->sources[i].request)
                atomic_store_explicit(&call->sources[i].request->paused, true, memory_order_relaxed);
    }
    if (event->last)
        source->request = NULL;
    pthread_mutex_unlock(&call->lock);
    mt_mailbox_post(call->server->mailbox, &e->message);
}

void mt_call_cancel(mt_call *call)
{
    bool any = false;
    mt_failure why;

    atomic_store_explicit(&call->stop, true, memory_order_relaxed); /* relaxed: readers look at it again and again */
    pthread_mutex_lock(&call->lock);
    for (size_t i = 0; i < call->source_count; i++)
        if (call->sources[i].request) {
            atomic_store_explicit(&call->sources[i].request->cancelled, true, memory_order_relaxed);
            any = true;
        }
    pthread_mutex_unlock(&call->lock);
    if (any)
        mt_engine_poke(call->served->engine);
    else {
        mt_failure_set(&why, 409, "cancelled", NULL, "the request was cancelled before it began");
        mt_fleet_withdraw(&call->server->fleet, &call->waiter, &why);
    }
}

bool mt_call_cancelled(mt_call *call)
{
    return atomic_load_explicit(&call->stop, memory_order_relaxed); /* as in mt_call_cancel */
}

/* Makes the requests known in call->sources, so that they can be cancelled. False: the call was cancelled before. */
static bool publish(mt_call *call, mt_request **requests, size_t count)
{
    mt_call_source *sources = mt_alloc_array(count, sizeof(*sources));
    bool ok;

    for (size_t i = 0; i < count; i++) {
        sources[i] = (mt_call_source){.call = call, .prompt = i, .request = requests[i]};
        requests[i]->event = post_event;
        requests[i]->ctx = &sources[i];
        requests[i]->placed = call->answer->form.vectors;
    }
    pthread_mutex_lock(&call->lock);
    ok = !mt_call_cancelled(call);
    call->sources = sources;
    call->source_count = ok ? count : 0;
    pthread_mutex_unlock(&call->lock);
    return ok;
}

/* Frees the requests from number `first` on, which the engine has not got. */
static void withdraw(mt_call *call, mt_request **requests, size_t first, size_t count)
{
    pthread_mutex_lock(&call->lock);
    for (size_t i = first; i < call->source_count; i++)
        call->sources[i].request = NULL;
    pthread_mutex_unlock(&call->lock);
    for (size_t i = first; i < count; i++)
        mt_request_free(requests[i]);
}

/* Takes places for as many texts as are computed at a time, or for fewer. False where the call has not even one. */
static bool take_places(mt_call *call, mt_error *err)
{
    const size_t open = call->answer->open;
    const size_t most = open < MT_LIMIT_EMBEDDING_FLIGHT ? open : MT_LIMIT_EMBEDDING_FLIGHT;

    call->queue = mt_engine_places(call->served->engine, call->encoder);
    if (call->places < most)
        call->places += mt_places_take(call->queue, &call->client, 1, most - call->places, err);
    return call->places > 0;
}

void mt_call_give_places(mt_call *call, size_t needed)
{
    if (call->places <= needed || call->server->closing) /* when closing, the queue may be freed already */
        return;
    mt_places_give(call->queue, &call->client, call->places - needed);
    call->places = needed;
}

bool mt_call_more(mt_call *call, mt_error *err)
{
    bool ok = call->submitted == call->source_count || take_places(call, err);

    for (; ok && call->submitted < call->source_count && call->submitted < call->ended + call->places;
         call->submitted += ok)
        ok = mt_engine_submit(call->served->engine, call->sources[call->submitted].request, err);
    return ok;
}

/* Takes room for the memory that a call holds while it waits and runs: its prompts, and what the answer repeats of the
   body. */
static bool charge(mt_call *call, mt_request **requests, size_t count, mt_error *err)
{
    const mt_answer *a = call->answer;
    size_t bytes = mt_arena_used(a->arena) + mt_json_tree_memory(a->extra) + mt_json_tree_memory(a->tools);

    for (size_t i = 0; i < count; i++)
        bytes += mt_arena_used(requests[i]->arena);
    if (!mt_room_take(&call->server->room, bytes))
        return mt_fail(err, MT_E_BUSY, "the requests that wait take as much memory as they may: try again in a moment");
    call->charged += bytes;
    return true;
}

bool mt_call_submit(mt_call *call, mt_request **requests, size_t count, mt_error *err)
{
    const bool vectors = call->answer->form.vectors;
    bool ok;

    if (mt_alloc_refused() != call->refused) /* while this call was prepared: it may lack something */
        ok = mt_fail(err, MT_E_MEMORY, "the system has no memory for this request: try again in a moment");
    else
        ok =
            charge(call, requests, count, err) &&
            (publish(call, requests, count) || mt_fail(err, MT_E_INVALID, "the request was cancelled before it began"));
    if (!ok) {
        withdraw(call, requests, 0, count);
        return false;
    }
    ok = !vectors || take_places(call, err);
    const size_t first = vectors ? call->places : count;
    for (; ok && call->submitted < first; call->submitted += ok)
        ok = mt_engine_submit(call->served->engine, requests[call->submitted], err);
    if (!ok) {
        withdraw(call, requests, call->submitted, count);
        mt_call_cancel(call);
    }
    return ok;
}
