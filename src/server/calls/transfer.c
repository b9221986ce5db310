/* The io thread appends what comes to a buffer, which the thread takes whole; where too much waits, nothing more is
   read from the client until the thread has taken it. The other way round, the thread fills a buffer, which the io
   thread takes whole while the client keeps up. Invariants:

   1. The message is posted once at a time: `posted` is true until it is opened.
   2. The message posted with `done` set is the last. A transfer is freed on the io thread when that was opened and the
      http server has let go of it: the answer is complete, or `gone` was called. When the server ends, the threads are
      joined before the mailbox is emptied.
   3. A client that leaves ends its transfer. */
#include "server/calls/transfer.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/calls/client.h"
#include "server/inside.h"
#include "server/limits.h"

struct mt_transfer {
    mt_message message; /* the first member */
    mt_server *server;
    const mt_transfer_kind *kind;
    const mt_dialect *dialect;
    void *job;
    mt_client client;
    pthread_t thread;

    /* Under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t come;   /* there is something for the thread */
    mt_buf coming, going;  /* not taken by the thread yet; not sent yet */
    bool ended, cancelled; /* all has come; nothing more will */
    bool held;             /* nothing more is read from the client */
    bool slow;             /* the client does not read what it was sent */
    bool posted, done;     /* the message is in the mailbox; the thread has ended its work */
    mt_error err;          /* MT_OK: it has succeeded */

    /* Only the io thread uses these. */
    mt_http_handle handle;
    bool followed; /* the http server refers to the transfer and will report that the client has left */
    bool begun;    /* a part of the answer was sent */
    bool finished; /* the last message was opened */
    mt_transfer *next;
};

/* The caller has the lock. */
static void post(mt_transfer *t)
{
    if (!t->posted)
        mt_mailbox_post(t->server->mailbox, &t->message);
    t->posted = true;
}

bool mt_transfer_take(mt_transfer *t, mt_buf *taken)
{
    mt_buf empty = *taken;
    bool more;

    empty.len = 0;
    pthread_mutex_lock(&t->lock);
    while (t->coming.len == 0 && !t->ended && !t->cancelled)
        pthread_cond_wait(&t->come, &t->lock);
    more = t->coming.len > 0 && !t->cancelled;
    *taken = t->coming;
    t->coming = empty;
    if (t->held)
        post(t);
    pthread_mutex_unlock(&t->lock);
    return more;
}

static bool was_cancelled(mt_transfer *t)
{
    bool cancelled;

    pthread_mutex_lock(&t->lock);
    cancelled = t->cancelled;
    pthread_mutex_unlock(&t->lock);
    return cancelled;
}

bool mt_transfer_whole(mt_transfer *t, mt_error *err)
{
    return !was_cancelled(t) || mt_fail(err, MT_E_AWAY, "the upload was broken off: send the file again");
}

bool mt_transfer_give(mt_transfer *t, const char *data, size_t len)
{
    bool ok;

    pthread_mutex_lock(&t->lock);
    while ((t->going.len > 0 || t->slow) && !t->cancelled)
        pthread_cond_wait(&t->come, &t->lock);
    ok = !t->cancelled && mt_buf_add(&t->going, data, len);
    if (ok)
        post(t);
    pthread_mutex_unlock(&t->lock);
    return ok;
}

static void *run(void *arg)
{
    mt_transfer *t = arg;
    mt_error err = {0};

    if (!t->kind->run(t, t->job, &err))
        mt_log_info("transfer.failed", "a file was not %s: %s", t->kind->done, err.text);
    else
        mt_error_clear(&err);
    pthread_mutex_lock(&t->lock);
    t->err = err;
    t->done = true;
    post(t);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void free_transfer(mt_transfer *t)
{
    t->kind->free(t->job);
    pthread_cond_destroy(&t->come);
    pthread_mutex_destroy(&t->lock);
    mt_buf_free(&t->coming);
    mt_buf_free(&t->going);
    mt_free(t);
}

/* Frees the transfer where invariant 2 allows it. */
static void release(mt_transfer *t)
{
    mt_transfer **at = &t->server->transfers;

    if (!t->finished || t->followed)
        return;
    if (!t->server->closing) /* when closing, mt_transfer_stop_all has joined it */
        pthread_join(t->thread, NULL);
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    free_transfer(t);
}

static void cancel(mt_transfer *t)
{
    pthread_mutex_lock(&t->lock);
    t->cancelled = true;
    pthread_cond_signal(&t->come);
    pthread_mutex_unlock(&t->lock);
}

/* Called by the http server when the client has left. */
static void gone(void *user)
{
    mt_transfer *t = user;

    t->followed = false;
    cancel(t);
    release(t);
}

/* Called by the http server when the client reads too slowly, and when it has caught up. */
static void set_slow(void *user, bool slow)
{
    mt_transfer *t = user;

    pthread_mutex_lock(&t->lock);
    t->slow = slow;
    pthread_cond_signal(&t->come);
    pthread_mutex_unlock(&t->lock);
}

/* Called by the http server with what the client has sent. */
static void add(void *user, const char *data, size_t len)
{
    mt_transfer *t = user;
    bool held;

    pthread_mutex_lock(&t->lock);
    if (!data)
        t->ended = true;
    else if (!t->done && !mt_buf_add(&t->coming, data, len))
        t->cancelled = true; /* there is no memory for it */
    held = t->held = data && t->coming.len >= MT_LIMIT_UPLOAD_AHEAD;
    pthread_cond_signal(&t->come);
    pthread_mutex_unlock(&t->lock);
    if (held)
        mt_http_hold(t->server->http, t->handle, true);
}

static const mt_http_follower follower = {.gone = gone, .paused = set_slow, .body = add};

/* Sends what the thread has given. False: the client has left. */
static bool flush(mt_transfer *t)
{
    mt_buf out;
    bool ok;

    pthread_mutex_lock(&t->lock);
    out = t->going;
    mt_buf_init(&t->going, SIZE_MAX);
    pthread_mutex_unlock(&t->lock);
    ok = out.len == 0 || t->begun || t->kind->begin(t->server, t->handle, t->job);
    t->begun = t->begun || out.len > 0;
    ok = ok && (out.len == 0 || mt_http_write(t->server->http, t->handle, out.data, out.len));
    mt_buf_free(&out);
    pthread_mutex_lock(&t->lock);
    pthread_cond_signal(&t->come);
    pthread_mutex_unlock(&t->lock);
    return ok;
}

/* The answer is complete, and the http server lets go of the transfer, unless the client has left: then `gone`
   comes. */
static void tell(mt_transfer *t)
{
    mt_failure why;
    bool told;

    if (t->begun)
        told = (t->err.code == MT_OK ? mt_http_end : mt_http_abort)(t->server->http, t->handle);
    else if (t->err.code == MT_OK)
        told = t->kind->tell(t->server, t->handle, t->job);
    else {
        mt_failure_from_files(&why, &t->err, t->kind->field, NULL);
        told = mt_server_fail(t->server, t->handle, t->dialect, &why);
    }
    if (told)
        t->followed = false;
}

static void open_message(mt_message *message)
{
    mt_transfer *t = (mt_transfer *)message; /* message is the first member */
    bool done, held;

    pthread_mutex_lock(&t->lock);
    held = t->held;
    t->posted = t->held = false;
    done = t->done;
    pthread_mutex_unlock(&t->lock);
    if (held && t->followed && !t->server->closing && !done)
        mt_http_hold(t->server->http, t->handle, false);
    if (t->followed && !t->server->closing && flush(t) && done)
        tell(t);
    t->finished = done;
    release(t);
}

static mt_transfer *new_transfer(mt_server *server, const mt_http_request *request, const mt_transfer_kind *kind,
                                 void *job)
{
    mt_transfer *t = mt_alloc(sizeof(*t));

    t->message.open = open_message;
    t->server = server;
    t->kind = kind;
    t->job = job;
    t->client = mt_client_of(request->who, request);
    t->handle = request->handle;
    mt_buf_init(&t->coming, SIZE_MAX);
    mt_buf_init(&t->going, SIZE_MAX);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->come, NULL);
    return t;
}

/* Whether one more of a kind may run, and of its client. */
static bool may_start(const mt_transfer *t, mt_failure *why)
{
    size_t all = 0, own = 0;

    for (const mt_transfer *each = t->server->transfers; each; each = each->next)
        if (each->kind == t->kind) {
            all++;
            own += each->client.id == t->client.id;
        }
    if (all < t->kind->most && own < t->kind->own)
        return true;
    t->server->refused_total++;
    return mt_failure_set(why, 429, "queue_full", NULL, "%zu files are being %s: try again in a moment", all,
                          t->kind->done);
}

bool mt_transfer_start(mt_server *server, const mt_http_request *request, const mt_transfer_kind *kind, void *job,
                       const mt_dialect *dialect, mt_failure *why)
{
    mt_transfer *t = new_transfer(server, request, kind, job);

    t->dialect = dialect;
    if (!may_start(t, why) ||
        (pthread_create(&t->thread, NULL, run, t) &&
         !mt_failure_set(why, 503, "overloaded", NULL, "no thread can be started for it: try again in a moment"))) {
        free_transfer(t);
        return false;
    }
    t->next = server->transfers;
    server->transfers = t;
    t->followed = mt_http_follow(server->http, t->handle, &follower, t);
    if (!t->followed)
        cancel(t);
    return true;
}

void mt_transfer_cancel_all(mt_server *server)
{
    for (mt_transfer *t = server->transfers; t; t = t->next)
        cancel(t);
}

void mt_transfer_stop_all(mt_server *server)
{
    mt_transfer_cancel_all(server);
    for (mt_transfer *t = server->transfers; t; t = t->next)
        pthread_join(t->thread, NULL);
}
