/* Routes for responses by their ids. Preparation threads look up those that are kept, since the store may be a file;
   the io thread knows those that still run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/limits.h"
#include "api/responses.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "http/request.h"
#include "server/calls/watch.h"
#include "server/inside.h"
#include "server/limits.h"

static const char *id_of(const json_t *body)
{
    return mt_body_text(body, "id");
}

static bool answer_stored_get(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    json_t *kept = mt_store_get(mt_call_store(call), id_of(body));

    if (!kept)
        return mt_responses_missing(id_of(body), why);
    mt_json_tree_write(out, json_object_get(kept, "response"));
    json_decref(kept);
    return true;
}

static const mt_task get_task = {.run = answer_stored_get, .no_model = true};

static bool no_stream(mt_failure *why)
{
    return mt_failure_set(
        why, 400, "unsupported_value", "stream",
        "this response has no stream to go on with: create it with \"background\" and \"stream\" true, "
        "or ask for it without \"stream\"");
}

/* Parses the number of the last event that a client has got; -1 where there is none. */
static bool read_after(const char *text, int64_t *after, mt_failure *why)
{
    char *end;

    *after = -1;
    if (!text)
        return true;
    errno = 0;
    *after = strtoll(text, &end, 10);
    return (*text && !*end && !errno && *after >= 0) ||
           mt_failure_value(why, "starting_after", "is not the number of an event: send an integer from 0 on");
}

/* Task: sends again the events of a response that has ended. */
static bool answer_stored_replay(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    json_t *kept = mt_store_get(mt_call_store(call), id_of(body));
    const json_t *events = json_object_get(kept, "events");
    int64_t after;
    bool ok = kept ? events || no_stream(why) : mt_responses_missing(id_of(body), why);

    ok = ok && read_after(json_string_value(json_object_get(body, "starting_after")), &after, why);
    if (ok) {
        const mt_buf log = {.data = (char *)(uintptr_t)json_string_value(events), .len = json_string_length(events)};
        const size_t offset = mt_watch_offset(&log, after);

        mt_buf_add(out, log.data + offset, log.len - offset);
        call->type = "text/event-stream";
    }
    json_decref(kept);
    return ok;
}

static const mt_task replay_task = {.run = answer_stored_replay, .no_model = true};

static void tell_deleted(mt_buf *out, const char *id)
{
    mt_json_write(out, "{'id':%s,'object':'response','deleted':true}", id);
}

static bool answer_stored_delete(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    if (!mt_store_remove(mt_call_store(call), id_of(body)))
        return mt_responses_missing(id_of(body), why);
    tell_deleted(out, id_of(body));
    return true;
}

static const mt_task delete_task = {.run = answer_stored_delete, .no_model = true};

static bool answer_stored_items(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const mt_responses_page page = {.after = json_string_value(json_object_get(body, "after")),
                                    .limit = json_string_value(json_object_get(body, "limit")),
                                    .order = json_string_value(json_object_get(body, "order"))};

    return mt_responses_list(mt_call_store(call), id_of(body), json_object_get(body, "running"), &page, out, why);
}

static const mt_task items_task = {.run = answer_stored_items, .no_model = true};

/* Appends "key":"value" where the query has the key. */
static void add_query(mt_buf *out, const mt_http_request *request, const char *key)
{
    char *value = mt_http_request_query(request, key);

    if (value)
        mt_json_write(out, "%s:%s", key, value);
    mt_free(value);
}

/* Appends "running":{..}, which mt_responses_list takes. */
static void add_running(mt_buf *out, const mt_answer *answer)
{
    const json_t *input = json_object_get(answer->extra, "input"),
                 *previous = json_object_get(answer->extra, "previous");

    mt_json_write(out, "'running':{'response':{'id':%s},'previous':%s,'input':", answer->id,
                  json_string_value(previous));
    mt_buf_add(out, json_string_value(input), json_string_length(input)); /* it is JSON */
    mt_json_write(out, "}");
}

/* Starts a call with a task. The id and other values of the query become its body, with what a response that still runs
   was asked (NULL: none does). */
static void start(mt_server *server, mt_http_request *request, const mt_task *task, const mt_answer *running)
{
    static const char *const keys[] = {"after", "limit", "order", "starting_after"};
    const size_t more = running ? json_string_length(json_object_get(running->extra, "input")) : 0;
    mt_buf body = {.limit = (1u << 20) + more};
    mt_failure why;

    if (!mt_room_take(&server->room, more)) {
        mt_failure_set(&why, 503, "overloaded", NULL,
                       "too many large requests are being read at once: try again in a moment");
        mt_server_fail(server, request->handle, NULL, &why);
        mt_http_request_free(request);
        return;
    }
    mt_json_write(&body, "{'id':%s", request->params[0]);
    for (size_t i = 0; i < MT_COUNT(keys); i++)
        add_query(&body, request, keys[i]);
    if (running)
        add_running(&body, running);
    mt_json_write(&body, "}");
    mt_http_request_set_body(request, &body, &server->room, request->charged + more);
    request->coding = MT_HTTP_PLAIN; /* whatever the original body's compression was */
    mt_call_start(server, request, NULL, task);
}

/* The call of that id that is running and is to be kept; NULL: there is none. */
static mt_call *find_running(mt_server *server, const mt_http_request *request)
{
    mt_call *call = mt_call_find(server, request->who, request->params[0]);
    const bool kept = call && mt_call_is_prepared(call) && call->answer && call->answer->store && call->dialect->now &&
                      json_object_get(call->answer->extra, "input");

    return kept ? call : NULL;
}

/* Answers with the present state of a running response. */
static void tell(mt_server *server, mt_http_request *request, mt_call *call)
{
    mt_buf body = {.limit = MT_LIMIT_RESPONSE_BYTES};

    call->alone_since = mt_clock_ns();
    call->dialect->now(call->answer, NULL, &body);
    mt_server_json(server, request->handle, &body);
    mt_buf_free(&body);
    mt_http_request_free(request);
}

/* Streams a running response from the first event on that the client has not got. False: *why. */
static bool watch(mt_call *call, const mt_http_request *request, mt_failure *why)
{
    char *text = mt_http_request_query(request, "starting_after");
    int64_t after;
    bool ok;

    if (!call->answer->form.stream || !call->answer->form.background || call->answer->log.full)
        ok = no_stream(why);
    else
        ok = read_after(text, &after, why) &&
             (mt_watch_start(call, request->handle, mt_watch_offset(&call->answer->log, after)) ||
              mt_failure_set(why, 429, "too_many_watchers", NULL,
                             "%d clients follow this response already: try again in a moment", MT_LIMIT_WATCHERS));
    mt_free(text);
    return ok;
}

void mt_stored_get(void *user, mt_http_server *http, mt_http_request *request)
{
    mt_server *server = user;
    mt_call *call = find_running(server, request);
    char *stream = mt_http_request_query(request, "stream");
    const bool streams = stream && strcmp(stream, "true") == 0;
    mt_failure why;

    (void)http;
    mt_free(stream);
    if (streams && call) {
        if (!watch(call, request, &why))
            mt_server_fail(server, request->handle, NULL, &why);
        mt_http_request_free(request);
    } else if (streams)
        start(server, request, &replay_task, NULL);
    else if (call)
        tell(server, request, call);
    else
        start(server, request, &get_task, NULL);
}

/* A response that is running is cancelled, and not kept. */
void mt_stored_delete(void *user, mt_http_server *http, mt_http_request *request)
{
    mt_server *server = user;
    mt_call *call = find_running(server, request);
    mt_buf body = {.limit = 1024};

    (void)http;
    if (!call) {
        start(server, request, &delete_task, NULL);
        return;
    }
    call->answer->store = NULL;
    mt_call_cancel(call);
    tell_deleted(&body, call->id);
    mt_server_json(server, request->handle, &body);
    mt_buf_free(&body);
    mt_http_request_free(request);
}

void mt_stored_items(void *user, mt_http_server *http, mt_http_request *request)
{
    const mt_call *call = find_running(user, request);

    (void)http;
    start(user, request, &items_task, call ? call->answer : NULL);
}

/* A response that is running ends with what it has so far; one that has ended is returned as it is. */
void mt_stored_cancel(void *user, mt_http_server *http, mt_http_request *request)
{
    mt_server *server = user;
    mt_call *call = mt_call_find(server, request->who, request->params[0]);
    mt_buf body = {.limit = 1024};

    if (!call) {
        mt_stored_get(user, http, request);
        return;
    }
    mt_call_cancel(call);
    if (mt_call_is_prepared(call) && call->answer && call->dialect->now) {
        call->answer->cancelled = true;
        tell(server, request, call);
        return;
    }
    mt_json_write(&body, "{'id':%s,'object':'response','status':'cancelled'}", call->id);
    mt_server_json(server, request->handle, &body);
    mt_buf_free(&body);
    mt_http_request_free(request);
}
