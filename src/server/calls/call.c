/* A call is worked on by three threads, first in turn, then by two at once:

   1. The io thread makes the call and follows the connection, so that a client that leaves cancels it at any time.
   2. A preparation thread reads the body, makes the answer object and the requests, hands the requests to the engine
      and posts the call's own message (prepared_message) to the io thread.
   3. The engine's thread posts a message for each event; the io thread feeds events to the answer and sends its bytes.

   Invariants:
   1. A call outlives its messages. The io thread frees it when its own message and the last event of each submitted
      request have been opened, nothing more is to be sent, and the http server has let go of it: the answer is
      complete, or `gone` was called, which may come some time after writing failed.
   2. Events may come before the call's own message, since the engine begins at once. Their bytes are kept in `out`:
      nothing is sent before all requests are known to be accepted, so that a refusal can still have its status.
   3. A request is touched only under the lock and only while its source points to it: the engine frees the request
      after its last event.
   4. When MT_LIMIT_OUTBOX events of a call wait in the mailbox, its requests are paused; one step may add some more.
   5. A call is admitted once, before anything of it is computed. A call with many texts keeps its places for the
      texts that are still to be handed over, so that calls that come later cannot get them.
   6. From preparation to its end a call has a reference to its model. While that is not loaded, the call waits in the
      fleet, on no thread; its message is posted in the end even where the client has left.
   7. A call in the state MT_CALL_ALONE has no client any more: nothing is sent, and its dialect keeps the answer in
      the store. The engine's bounds hold for it as for others. Clients may come back to its stream: watch.c.
   8. A call of the server itself (a prompt to warm up with, a line of a batch) has no client from the start: its handle
      names nothing, so what is sent is dropped, and nothing but its end is told, when its answer is still in `out`. */
#include "server/calls/call.h"

#include <stdio.h>
#include <string.h>

#include "api/limits.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "http/limits.h"
#include "server/calls/client.h"
#include "server/calls/timeout.h"
#include "server/calls/watch.h"
#include "server/inside.h"
#include "server/limits.h"

/* Tells the engine whether the call's requests are paused. */
static void update_pause(mt_call *call)
{
    bool changed = false;

    pthread_mutex_lock(&call->lock);
    for (size_t i = 0; i < call->source_count; i++) {
        mt_request *request = call->sources[i].request;

        /* relaxed: the engine reads the flag between steps, and no other data depends on it */
        if (request && atomic_exchange_explicit(&request->paused, call->slow || call->choked, memory_order_relaxed) !=
                           (call->slow || call->choked))
            changed = true;
    }
    pthread_mutex_unlock(&call->lock);
    if (changed)
        mt_engine_poke(call->served->engine);
}

/* Called by the http server, too, when the client reads too slowly, and when it has caught up. */
static void set_slow(void *user, bool slow)
{
    mt_call *call = user;

    pthread_mutex_lock(&call->lock);
    call->slow = slow;
    pthread_mutex_unlock(&call->lock);
    update_pause(call);
}

static void give_up(mt_call *call)
{
    mt_call_end(call);
    mt_call_cancel(call);
}

/* The answer is computed without a client from here on. */
static void leave_alone(mt_call *call)
{
    if (call->state != MT_CALL_ALONE) { /* the http server may have reported it while something was written */
        call->server->detached_total++;
        call->alone_since = mt_clock_ns();
        mt_call_change(call, MT_CALL_ALONE);
    }
    set_slow(call, false);
}

/* The client has left: an answer in the background goes on, any other is cancelled. */
static void lose(mt_call *call)
{
    if (mt_call_answers(call) && call->answer && call->answer->form.background)
        leave_alone(call);
    else
        give_up(call);
}

/* Called by the http server when the client has left. */
static void gone(void *user)
{
    mt_call *call = user;

    call->followed = false;
    lose(call);
    call->server->cancelled_total += call->state != MT_CALL_ALONE && call->state != MT_CALL_KEPT;
    mt_call_release(call);
}

/* Ends the call. ok: the answer is complete, and the http server does not refer to the call any more; else the client
   has left, and `gone` will be called. */
static void complete(mt_call *call, bool ok)
{
    mt_call_end(call);
    if (ok)
        call->followed = false;
}

static const mt_http_follower follower = {.gone = gone, .paused = set_slow};

void mt_call_fail(mt_call *call, const mt_failure *why)
{
    if (call->over)
        call->failure = *why;
    call->server->refused_total += why->status == 429;
    mt_recent_fail(call->recent);
    mt_dashboard_fault(call->server, call->account, call->id, why->status, why->text);
    if (call->state == MT_CALL_ALONE && call->answer->form.stream)
        call->dialect->fail(call->answer, why, &call->out);
    else if (call->state == MT_CALL_ALONE)
        call->dialect->keep(call->answer, why);
    else if (call->state != MT_CALL_STREAMING)
        complete(call, mt_server_fail(call->server, call->handle, call->dialect, why));
    else {
        call->out.len = 0;
        call->answer->dialect->fail(call->answer, why, &call->out);
        complete(call, mt_http_write(call->server->http, call->handle, call->out.data, call->out.len) &&
                           mt_http_end(call->server->http, call->handle));
    }
    give_up(call);
}

/* Bytes of a stream without a reader are dropped; the dialect keeps the answer. */
static void go_on_alone(mt_call *call)
{
    call->out.len = 0;
    if (call->answer->open == 0)
        mt_call_end(call);
}

static void send_stream(mt_call *call)
{
    bool ok = call->state == MT_CALL_STREAMING || mt_call_begin_stream(call, call->handle);

    if (call->state == MT_CALL_ANSWERING)
        mt_call_change(call, MT_CALL_STREAMING);
    if (ok && call->out.len > 0)
        ok = mt_http_write(call->server->http, call->handle, call->out.data, call->out.len);
    call->spoke = call->spoke || call->out.len > 0;
    call->out.len = 0;
    if (mt_call_is_over(call)) /* the client left while it was written to */
        return;
    if (!ok)
        lose(call);
    if (call->state == MT_CALL_ALONE)
        go_on_alone(call);
    else if (ok && call->answer->open == 0)
        complete(call, mt_http_end(call->server->http, call->handle));
}

/* Sends something on each stream that was silent since the last time, so that proxies do not close it. A call may be
   freed, and leave the list, while it is written to. */
void mt_server_keep_alive(mt_server *server)
{
    for (mt_call *call = server->calls, *next; call; call = next) {
        next = call->next;
        call->held = true;
        mt_watch_keep_alive(call);
        if (call->state == MT_CALL_STREAMING && !call->spoke &&
            !mt_http_write(server->http, call->handle, call->dialect->idle, strlen(call->dialect->idle)))
            lose(call);
        call->spoke = call->held = false;
        mt_call_release(call);
    }
}

static void send_whole(mt_call *call)
{
    mt_http_header headers[MT_CALL_HEADERS];
    const size_t count = mt_call_headers(call, headers);
    const mt_http_response response = {
        .status = 200, .type = "application/json", .headers = headers, .header_count = count};

    if (call->answer->open > 0)
        return;
    complete(call, mt_http_answer(call->server->http, call->handle, &response, call->out.data, call->out.len));
}

/* Tells the client that its answer will be kept, and lets it go. Where it has left already, `gone` is called later. */
static void detach(mt_call *call)
{
    mt_buf body = {.limit = MT_LIMIT_RESPONSE_BYTES};

    call->dialect->now(call->answer, NULL, &body);
    if (mt_server_json(call->server, call->handle, &body))
        call->followed = false;
    leave_alone(call);
    mt_buf_free(&body);
}

/* Hands more requests to the engine where the call has some left. */
static void go_on(mt_call *call)
{
    mt_failure why;
    mt_error err;

    if (!mt_call_answers(call) || call->failure.status || mt_call_more(call, &err))
        return;
    mt_failure_from(&why, &err, NULL);
    mt_call_fail(call, &why);
}

/* Sends what can be sent: nothing before the call is prepared; a whole answer only when it is complete. */
static void progress(mt_call *call)
{
    if (!mt_call_answers(call))
        return;
    if (call->out.full) {
        call->answer->failed = true;
        if (call->out.refused)
            mt_failure_starved(&call->answer->why);
        else
            mt_failure_set(&call->answer->why, 500, "answer_too_large", NULL,
                           "the answer has more than %u bytes: stream it, or ask for fewer logprobs",
                           MT_LIMIT_RESPONSE_BYTES);
    }
    if (call->answer->failed)
        mt_call_fail(call, &call->answer->why);
    else if (call->state == MT_CALL_ALONE)
        go_on_alone(call);
    else if (call->answer->form.stream)
        send_stream(call);
    else
        send_whole(call);
}

static bool send_text(mt_call *call)
{
    const mt_http_header warning = {"warning", call->warning};
    const mt_http_response response = {.status = 200,
                                       .type = call->type ? call->type : "application/json",
                                       .headers = &warning,
                                       .header_count = call->warning != NULL};

    return mt_http_answer(call->server->http, call->handle, &response, call->text.len ? call->text.data : "",
                          call->text.len);
}

static void open_prepared(mt_message *message)
{
    mt_call *call = (mt_call *)message; /* prepared_message is the first member */

    call->held = true; /* writing to a client may find that it has left, and would free the call */
    mt_call_change(call, call->state == MT_CALL_LEFT ? MT_CALL_OVER : MT_CALL_ANSWERING);
    call->prepared_at = mt_clock_ns();
    if (call->answer && !call->failure.status)
        mt_account_charge(call->account, call->prepared_at, mt_answer_usage(call->answer).prompt, 0);
    if (call->server->closing)
        give_up(call);
    if (!mt_call_is_over(call) && call->failure.status)
        mt_call_fail(call, &call->failure);
    else if (!mt_call_is_over(call) && !call->answer) /* a task was done, or nothing is to be computed */
        complete(call, send_text(call));
    else {
        go_on(call);
        if (!mt_call_is_over(call) && call->answer->form.background && !call->answer->form.stream &&
            !call->answer->failed)
            detach(call);
        progress(call);
    }
    call->held = false;
    mt_call_release(call);
}

mt_call *mt_call_find(const mt_server *server, const mt_account *account, const char *id)
{
    mt_call *call = server->calls;

    while (call && (mt_call_is_over(call) || strcmp(call->id, id) != 0))
        call = call->next;
    return call && (!account || call->account == account) ? call : NULL;
}

mt_store *mt_call_store(const mt_call *call)
{
    return call->account ? call->account->store : call->server->store;
}

void mt_call_receive(mt_call *call, size_t prompt, const mt_event *event, bool resume)
{
    call->held = true;
    if (event->kind == MT_EVENT_TOKEN && !call->first_token)
        call->first_token = mt_clock_ns();
    if (event->kind == MT_EVENT_TOKEN)
        mt_account_charge(call->account, mt_clock_ns(), 0, 1);
    if (event->last)
        call->ended++;
    if (call->server->closing)
        give_up(call);
    mt_answer_feed(call->answer, prompt, event, &call->out);
    /* Before the client hears of the end: its next request finds a place */
    mt_call_give_places(call, call->answer->open);
    if (event->last)
        go_on(call);
    if (mt_call_is_over(call))
        call->out.len = 0;
    else
        progress(call);
    mt_watch_tell(call, mt_call_is_over(call));
    if (resume)
        update_pause(call);
    call->held = false;
    mt_call_release(call);
}

/* A call with what its request says, in the server's list. Gets the body from request. */
static mt_call *new_call(mt_server *server, mt_http_request *request, const mt_dialect *dialect, const mt_task *task)
{
    mt_call *call = mt_alloc(sizeof(*call));

    call->prepared_message.open = open_prepared;
    call->server = server;
    call->dialect = dialect;
    call->task = task;
    call->handle = request->handle;
    call->received = mt_clock_ns();
    call->account = request->who;
    call->recent = request->socket ? mt_recent_hold(((const mt_socket *)request->socket)->recent) : NULL;
    call->channel = -1;
    call->address = mt_client_address(request);
    call->client = mt_client_of(call->account, request);
    call->prep = (mt_prep){.stop = &call->stop,
                           .client = &call->client,
                           .account = call->account,
                           .uploads = &server->uploaded,
                           .files = server->files,
                           .rendered = &server->rendered,
                           .pdf_pages = server->opt->pdf_pages,
                           .pdf_pictures = server->opt->pdf_pictures};
    call->body = request->body;
    call->body_len = request->body_len;
    call->bodiless = call->body_len == 0 &&
                     (request->method == MT_HTTP_GET || request->method == MT_HTTP_HEAD || (task && task->no_body));
    call->coding = request->coding;
    call->body_charge = request->charged;
    request->body = NULL;
    request->charged = 0;
    call->param = request->params && request->params[0] ? mt_strdup(request->params[0]) : NULL;
    /* A call of the server itself has no route */
    call->names_model = request->route && (request->route->flags & MT_SERVER_MODEL);
    if (mt_http_request_name(request))
        snprintf(call->name, sizeof(call->name), "%s", mt_http_request_name(request));
    if (mt_http_request_session(request))
        snprintf(call->session, sizeof(call->session), "%s", mt_http_request_session(request));
    mt_random_id(call->id, dialect ? dialect->prefix : "task-");
    mt_buf_init(&call->text, MT_LIMIT_RESPONSE_BYTES);
    mt_buf_init(&call->out, MT_LIMIT_RESPONSE_BYTES);
    pthread_mutex_init(&call->lock, NULL);
    mt_timeout_begin(call);
    call->crash = mt_crash_enter(call->id);
    call->next = server->calls;
    if (call->next)
        call->next->prev = call;
    server->calls = call;
    server->call_count++;
    server->calls_total++;
    mt_timeouts_watch(server);
    return call;
}

/* Whether memory can be allocated again after the system has refused some. Until then no call is begun. */
static bool has_memory(mt_server *server)
{
    const uint64_t refused = mt_alloc_refused_all();

    if (refused != server->memory_refused)
        mt_log_error("memory.refused", "the system has refused memory %llu times: give it more, or lower --memory",
                     (unsigned long long)(refused - server->memory_refused));
    server->memory_refused = refused;
    if (mt_alloc_scarce())
        mt_alloc_reserve();
    return !mt_alloc_scarce();
}

/* Says why a call cannot be started. */
static void explain(const mt_server *server, mt_failure *why)
{
    if (mt_alloc_scarce())
        mt_failure_starved(why);
    else if (server->ready)
        mt_failure_set(why, 429, "queue_full", NULL, "too many requests are waiting: try again in a moment");
    else
        mt_failure_set(why, 503, "loading", NULL, "the model is being loaded: try again in a moment");
}

/* Whether one more call may wait in a lane that one client alone may fill up to `most`. A third more places are for
   other clients, as in engine/places.h, so that a client that sends too much keeps no other out. */
static bool may_wait(const mt_server *server, mt_workers *lane, size_t most, const mt_http_request *request)
{
    const size_t waiting = mt_workers_waiting(lane), all = most + most / 3;
    const mt_client client = mt_client_of(request->who, request);
    size_t own = 0;

    if (waiting < most / 3)
        return true;
    for (const mt_call *call = server->calls; call; call = call->next)
        own += !mt_call_is_prepared(call) && call->client.id == client.id;
    return waiting < all && (own == 0 || own < 3 * (all - waiting));
}

/* Called before a body is read: reading it would be in vain where all places are taken. */
bool mt_call_may_start(mt_server *server, const mt_http_request *request, mt_failure *why)
{
    const mt_client client = mt_client_of(request->who, request);
    const char *name = mt_http_request_name(request);
    mt_error err;

    if (!(request->route->flags & MT_SERVER_WRITES) || !mt_fleet_full(&server->fleet, &client, &err))
        return true;
    mt_failure_from(why, &err, NULL);
    server->refused_total++;
    mt_dashboard_fault(server, request->who, name ? name : "", why->status, why->text);
    return false;
}

static bool may_start(mt_server *server, const mt_http_request *request, mt_workers *lane, size_t most, mt_failure *why)
{
    if (!mt_call_may_start(server, request, why))
        return false;
    /* The lanes' queues are longer than `most`, since calls also come from other lanes: adding one cannot fail here. */
    if (server->ready && has_memory(server) && may_wait(server, lane, most, request))
        return true;
    server->refused_total++;
    explain(server, why);
    return false;
}

/* Hands a new call to its lane. */
static void begin(mt_call *call)
{
    call->lane = call->body_len > MT_LIMIT_SMALL_BODY ? MT_LANE_LARGE : MT_LANE_SMALL;
    if (!mt_workers_add(call->server->lanes[call->lane], call)) /* the server is closing: nothing more is prepared */
        mt_mailbox_post(call->server->mailbox, &call->prepared_message);
}

mt_call *mt_call_start(mt_server *server, mt_http_request *request, const mt_dialect *dialect, const mt_task *task)
{
    const bool large = request->body_len > MT_LIMIT_SMALL_BODY;
    mt_workers *lane = server->lanes[large ? MT_LANE_LARGE : MT_LANE_SMALL];
    mt_failure why;
    mt_call *call;

    if (!may_start(server, request, lane, large ? MT_LIMIT_PREPARING_LARGE : MT_LIMIT_PREPARING, &why)) {
        mt_server_fail(server, request->handle, dialect, &why);
        mt_http_request_free(request);
        return NULL;
    }
    call = new_call(server, request, dialect, task);
    call->followed = mt_http_follow(server->http, call->handle, &follower, call);
    if (!call->followed)
        give_up(call);
    begin(call);
    mt_http_request_free(request);
    return call;
}

void mt_call_start_own(mt_server *server, const mt_call_own *own)
{
    mt_http_request request = {.method = MT_HTTP_POST,
                               .client = "",
                               .body = own->body,
                               .body_len = own->body_len,
                               .charged = own->charged,
                               .who = own->account};
    mt_call *call = new_call(server, &request, own->dialect, NULL);

    if (own->waiter)
        call->waiter = *own->waiter;
    call->over = own->over;
    call->job = own->job;
    call->client.id ^= MT_CLIENT_OWN;
    call->client.last = true;
    atomic_store_explicit(&call->until, UINT64_MAX, memory_order_relaxed); /* no other thread has the call yet */
    begin(call);
}
