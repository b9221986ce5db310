/* POST /api/pull of Ollama's API: a model is downloaded from the hub, and the client is told how far that is.

   Each pull has a thread of its own, since it waits for the network. The thread appends lines for the client and posts
   the pull as a message; the io thread writes the lines. Invariants:

   1. The message is posted once at a time: `posted` is true until it is opened, and lines that are added meanwhile go
      with it.
   2. The message posted with `done` set is the last. A pull is freed on the io thread when that was opened and the http
      server has let go of it: the answer is complete, or `gone` was called. When the server ends, the threads are
      joined before the mailbox is emptied.
   3. A client that leaves ends its pull. What was downloaded stays on disk, and the next pull continues from there. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/json_body.h"
#include "api/limits.h"
#include "base/alloc.h"
#include "base/json_write.h"
#include "base/log.h"
#include "hub/pull.h"
#include "server/inside.h"
#include "server/limits.h"

struct mt_pulling {
    mt_message message; /* the first member */
    mt_server *server;
    char *model;
    mt_fleet_fetch fetch; /* for calls that ask for the model meanwhile */
    bool stream;
    atomic_bool cancel;
    pthread_t thread;

    /* Only the pull's thread uses these. */
    uint64_t *told; /* for each file, its bytes as the client was last told */
    size_t told_count;

    /* Under the lock. */
    pthread_mutex_t lock;
    mt_buf lines;      /* not written to the client yet */
    bool posted, done; /* the message is in the mailbox; the thread has ended its work */
    mt_error err;      /* MT_OK: the model was downloaded */

    /* Only the io thread uses these. */
    mt_http_handle handle;
    bool begun;    /* the status line was sent */
    bool followed; /* the http server refers to the pull and will report that the client has left */
    bool over;     /* nothing more is sent */
    bool ended;    /* the last message was opened */
    mt_pulling *next;
};

/* The caller has the lock. */
static void post(mt_pulling *p)
{
    if (!p->posted)
        mt_mailbox_post(p->server->mailbox, &p->message);
    p->posted = true;
}

static void add_status(mt_pulling *p, const char *status)
{
    mt_json_write(&p->lines, "{'status':%s}\n", status);
}

/* Ollama names a file by the beginning of its digest. */
static void add_file(mt_pulling *p, const mt_pull_file *file)
{
    char start[13];

    snprintf(start, sizeof(start), "%s", file->digest);
    mt_json_write(&p->lines, "{'status':'pulling %-s','digest':'%-s:%-s','total':%" PRIu64, start,
                  strlen(file->digest) == 64 ? "sha256" : "sha1", file->digest, file->size);
    if (file->done)
        mt_json_write(&p->lines, "'completed':%" PRIu64, file->done);
    mt_json_write(&p->lines, "}\n");
}

/* A line for each file whose progress has changed. */
static void add_files(mt_pulling *p, const mt_pull_status *status)
{
    if (p->told_count != status->count) { /* the list of files has just become known */
        mt_free(p->told);
        p->told = mt_alloc_array(status->count + 1, sizeof(*p->told));
        p->told_count = status->count;
        memset(p->told, 0xFF, status->count * sizeof(*p->told));
    }
    for (size_t i = 0; i < status->count; i++)
        if (p->told[i] != status->files[i].done) {
            p->told[i] = status->files[i].done;
            add_file(p, &status->files[i]);
        }
}

/* The callback mt_pull_params.progress. */
static void progress(void *arg, const mt_pull_status *status)
{
    mt_pulling *p = arg;

    mt_fleet_fetch_told(&p->server->fleet, &p->fetch, status->done, status->total);
    pthread_mutex_lock(&p->lock);
    if (p->stream)
        add_files(p, status);
    if (p->lines.len)
        post(p);
    pthread_mutex_unlock(&p->lock);
}

static void *run(void *arg)
{
    mt_pulling *p = arg;
    const mt_pull_params params = {.model = p->model,
                                   .env = getenv,
                                   .memory = (uint64_t)p->server->opt->memory,
                                   .progress = progress,
                                   .arg = p,
                                   .cancel = &p->cancel};
    mt_error err = {0};
    char *folder;

    mt_fleet_fetch_begin(&p->server->fleet, &p->fetch);
    folder = mt_pull(&params, &err);
    mt_fleet_fetch_end(&p->server->fleet, &p->fetch);
    mt_log_info("model.pulled", "\"%s\": %s", p->model, folder ? folder : err.text);
    pthread_mutex_lock(&p->lock);
    if (folder && p->stream) {
        add_status(p, "verifying sha256 digest");
        add_status(p, "writing manifest");
    }
    if (folder)
        add_status(p, "success");
    p->err = err;
    p->done = true;
    post(p);
    pthread_mutex_unlock(&p->lock);
    mt_free(folder);
    return NULL;
}

static void free_pull(mt_pulling *p)
{
    pthread_mutex_destroy(&p->lock);
    mt_buf_free(&p->lines);
    mt_free(p->told);
    mt_free(p->model);
    mt_free(p);
}

/* Frees the pull where invariant 2 allows it. */
static void release(mt_pulling *p)
{
    mt_pulling **at = &p->server->pulls;

    if (!p->ended || p->followed)
        return;
    if (!p->server->closing) /* when closing, mt_pulls_stop has joined it */
        pthread_join(p->thread, NULL);
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    p->server->pull_count--;
    free_pull(p);
}

/* No client waits for the pull any more. */
static void give_up(mt_pulling *p)
{
    p->over = true;
    atomic_store(&p->cancel, true); /* checked again and again */
}

/* Called by the http server when the client has left. */
static void gone(void *user)
{
    mt_pulling *p = user;

    p->followed = false;
    give_up(p);
    release(p);
}

static const mt_http_follower follower = {.gone = gone};

/* ok: the answer is complete; else the client has left, and `gone` will be called. */
static void complete(mt_pulling *p, bool ok)
{
    p->over = true;
    if (ok)
        p->followed = false;
}

/* An error has an HTTP status where nothing was sent yet; else it is a line of the stream. */
static void tell_error(mt_pulling *p)
{
    mt_failure why;

    mt_failure_from_files(&why, &p->err, "model", p->model);
    if (!p->begun) {
        complete(p, mt_server_fail(p->server, p->handle, &mt_ollama_chat, &why));
        return;
    }
    mt_ollama_chat.fail(NULL, &why, &p->lines);
    complete(p, mt_http_write(p->server->http, p->handle, p->lines.data, p->lines.len) &&
                    mt_http_end(p->server->http, p->handle));
}

static void tell_lines(mt_pulling *p)
{
    const mt_http_response stream = {.status = 200, .type = mt_ollama_chat.stream_type};
    const bool ok = (p->begun || mt_http_begin(p->server->http, p->handle, &stream)) &&
                    mt_http_write(p->server->http, p->handle, p->lines.data, p->lines.len);

    p->begun = true;
    if (!ok)
        give_up(p);
}

/* Sends what is new. The caller has the lock. Where writing finds that the client has left, `gone` may be called from
   within; it does not free the pull, since its last message is not opened before this returns. */
static void tell(mt_pulling *p)
{
    const bool fetched = p->done && p->err.code == MT_OK;

    if (p->stream && p->lines.len && (fetched || !p->done || p->begun))
        tell_lines(p);
    if (p->over)
        return;
    if (p->done && !fetched) {
        p->lines.len = 0;
        tell_error(p);
    } else if (fetched)
        complete(p,
                 p->stream ? mt_http_end(p->server->http, p->handle) : mt_server_json(p->server, p->handle, &p->lines));
}

static void open_pull(mt_message *message)
{
    mt_pulling *p = (mt_pulling *)message; /* message is the first member */
    bool done;

    pthread_mutex_lock(&p->lock);
    p->posted = false;
    done = p->done;
    if (!p->over && !p->server->closing)
        tell(p);
    p->lines.len = 0;
    pthread_mutex_unlock(&p->lock);
    p->ended = done;
    release(p);
}

/* Starts a pull. False: no thread can be started; the request has no answer then. */
static bool start(mt_server *server, mt_http_request *request, const char *model, bool stream)
{
    mt_pulling *p = mt_alloc(sizeof(*p));

    p->message.open = open_pull;
    p->server = server;
    p->model = mt_strdup(model);
    p->fetch.name = p->model;
    p->stream = stream;
    p->handle = request->handle;
    mt_buf_init(&p->lines, MT_LIMIT_RESPONSE_BYTES);
    if (stream)
        add_status(p, "pulling manifest");
    pthread_mutex_init(&p->lock, NULL);
    if (pthread_create(&p->thread, NULL, run, p)) {
        free_pull(p);
        return false;
    }
    p->next = server->pulls;
    server->pulls = p;
    server->pull_count++;
    p->followed = mt_http_follow(server->http, p->handle, &follower, p);
    if (!p->followed)
        give_up(p);
    return true;
}

/* The body is parsed on the io thread, since it is small: the route limits it (body_bytes). */
void mt_ollama_pull(void *user, mt_http_server *http, mt_http_request *request)
{
    mt_server *server = user;
    mt_failure why;
    json_t *body = mt_json_body_parse(request->body, request->body_len, NULL, &why);
    char *model = body ? mt_ollama_model(body, &why) : NULL;

    (void)http;
    if (model && server->pull_count >= MT_LIMIT_PULLS)
        mt_failure_set(&why, 429, "queue_full", NULL, "%d models are being fetched: try again in a moment",
                       MT_LIMIT_PULLS);
    else if (model && start(server, request, model, !json_is_false(json_object_get(body, "stream"))))
        why.status = 0;
    else if (model)
        mt_failure_set(&why, 503, "overloaded", NULL, "no thread can be started for it: try again in a moment");
    if (why.status)
        mt_server_fail(server, request->handle, &mt_ollama_chat, &why);
    mt_free(model);
    mt_json_body_free(body, request->body_len);
    mt_http_request_free(request);
}

void mt_pulls_cancel(mt_server *server)
{
    for (mt_pulling *p = server->pulls; p; p = p->next)
        atomic_store(&p->cancel, true);
}

void mt_pulls_stop(mt_server *server)
{
    mt_pulls_cancel(server);
    for (mt_pulling *p = server->pulls; p; p = p->next)
        pthread_join(p->thread, NULL);
}
