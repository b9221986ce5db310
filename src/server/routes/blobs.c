/* HEAD and POST /api/blobs/sha256:DIGEST of Ollama's API: files that clients upload to make models of (hub/upload.h).

   Each upload has a thread of its own, since it waits for the disk. The io thread appends what comes to a buffer, which
   the thread takes whole; where too much waits, nothing more is read from the client until the thread has taken it.
   Invariants:

   1. The letter is posted once at a time: `posted` is true until it is opened.
   2. The letter posted with `done` set is the last. An upload is freed on the io thread when that was opened and the
      http server has let go of it: the answer is complete, or `gone` was called. When the server ends, the threads are
      joined before the mailbox is emptied.
   3. A client that leaves ends its upload, of which nothing stays. */
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "base/log.h"
#include "hub/names.h"
#include "hub/upload.h"
#include "server/inside.h"
#include "server/limits.h"

struct mt_uploading {
    mt_letter letter; /* the first member */
    mt_server *server;
    pthread_t thread;
    char digest[MT_UPLOAD_DIGITS + 1];
    uint64_t size; /* as the client announced it; UINT64_MAX: it did not */

    /* Under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t come;   /* there is something for the thread */
    mt_buf coming;         /* not written yet */
    bool ended, cancelled; /* all has come; nothing more will */
    bool held;             /* nothing more is read from the client */
    bool posted, done;     /* the letter is in the mailbox; the thread has ended its work */
    mt_error err;          /* MT_OK: the file is kept */

    /* Only the io thread uses these. */
    mt_http_handle handle;
    bool followed; /* the http server refers to the upload and will report that the client has left */
    bool finished; /* the last letter was opened */
    mt_uploading *next;
};

/* The caller has the lock. */
static void post(mt_uploading *u)
{
    if (!u->posted)
        mt_mailbox_post(u->server->mailbox, &u->letter);
    u->posted = true;
}

/* Waits for bytes and takes them. False: there are none left. */
static bool take(mt_uploading *u, mt_buf *taken)
{
    const mt_buf empty = *taken;
    bool more;

    pthread_mutex_lock(&u->lock);
    while (u->coming.len == 0 && !u->ended && !u->cancelled)
        pthread_cond_wait(&u->come, &u->lock);
    more = u->coming.len > 0 && !u->cancelled;
    *taken = u->coming;
    u->coming = empty;
    if (u->held)
        post(u);
    pthread_mutex_unlock(&u->lock);
    return more;
}

static bool was_cancelled(mt_uploading *u)
{
    bool cancelled;

    pthread_mutex_lock(&u->lock);
    cancelled = u->cancelled;
    pthread_mutex_unlock(&u->lock);
    return cancelled;
}

static bool receive(mt_uploading *u, mt_error *err)
{
    mt_buf taken = {.limit = SIZE_MAX};
    char cache[MT_LIMIT_PATH];
    mt_upload *file;
    bool ok = mt_hub_cache(cache, getenv) ||
              mt_fail(err, MT_E_UNSUPPORTED, "there is no folder for uploaded files: set HF_HUB_CACHE or HOME");

    file = ok ? mt_upload_new(cache, u->digest, u->size, err) : NULL;
    ok = file != NULL;
    while (ok && take(u, &taken)) {
        ok = mt_upload_add(file, taken.data, taken.len, err);
        taken.len = 0;
    }
    ok = ok && (!was_cancelled(u) || mt_fail(err, MT_E_AWAY, "the upload was broken off: send the file again")) &&
         mt_upload_end(file, err);
    mt_upload_free(file);
    mt_buf_free(&taken);
    return ok;
}

static void *run(void *arg)
{
    mt_uploading *u = arg;
    mt_error err = {0};

    if (!receive(u, &err))
        mt_log_info("upload.failed", "sha256:%.12s: %s", u->digest, err.text);
    pthread_mutex_lock(&u->lock);
    u->err = err;
    u->done = true;
    post(u);
    pthread_mutex_unlock(&u->lock);
    return NULL;
}

static void free_upload(mt_uploading *u)
{
    pthread_cond_destroy(&u->come);
    pthread_mutex_destroy(&u->lock);
    mt_buf_free(&u->coming);
    mt_free(u);
}

/* Frees the upload where invariant 2 allows it. */
static void release(mt_uploading *u)
{
    mt_uploading **at = &u->server->uploads;

    if (!u->finished || u->followed)
        return;
    if (!u->server->closing) /* when closing, mt_blobs_stop has joined it */
        pthread_join(u->thread, NULL);
    while (*at != u)
        at = &(*at)->next;
    *at = u->next;
    u->server->upload_count--;
    free_upload(u);
}

static void cancel(mt_uploading *u)
{
    pthread_mutex_lock(&u->lock);
    u->cancelled = true;
    pthread_cond_signal(&u->come);
    pthread_mutex_unlock(&u->lock);
}

/* Called by the http server when the client has left. */
static void gone(void *user)
{
    mt_uploading *u = user;

    u->followed = false;
    cancel(u);
    release(u);
}

/* Called by the http server with what the client has sent. */
static void add(void *user, const char *data, size_t len)
{
    mt_uploading *u = user;
    bool held;

    pthread_mutex_lock(&u->lock);
    if (!data)
        u->ended = true;
    else if (!u->done && !mt_buf_add(&u->coming, data, len))
        u->cancelled = true; /* there is no memory for it */
    held = u->held = data && u->coming.len >= MT_LIMIT_UPLOAD_AHEAD;
    pthread_cond_signal(&u->come);
    pthread_mutex_unlock(&u->lock);
    if (held)
        mt_http_hold(u->server->http, u->handle, true);
}

static const mt_http_follower follower = {.gone = gone, .body = add};

/* The answer is complete, and the http server lets go of the upload, unless the client has left: then `gone` comes. */
static void tell(mt_uploading *u)
{
    const mt_http_response created = {.status = 201};
    mt_failure why;
    bool told;

    if (u->err.code == MT_OK)
        told = mt_http_answer(u->server->http, u->handle, &created, "", 0);
    else {
        mt_failure_from_files(&why, &u->err, "digest", NULL);
        told = mt_server_fail(u->server, u->handle, &mt_ollama_chat, &why);
    }
    if (told)
        u->followed = false;
}

static void open_upload(mt_letter *letter)
{
    mt_uploading *u = (mt_uploading *)letter; /* letter is the first member */
    bool done;

    pthread_mutex_lock(&u->lock);
    u->posted = u->held = false;
    done = u->done;
    pthread_mutex_unlock(&u->lock);
    if (u->followed && !u->server->closing) {
        if (done)
            tell(u);
        else
            mt_http_hold(u->server->http, u->handle, false);
    }
    u->finished = done;
    release(u);
}

/* Starts an upload. False: no thread can be started; the request has no answer then. */
static bool start(mt_server *server, const mt_http_request *request, const char *digest)
{
    mt_uploading *u = mt_alloc(sizeof(*u));

    u->letter.open = open_upload;
    u->server = server;
    snprintf(u->digest, sizeof(u->digest), "%s", digest);
    u->size = request->announced;
    u->handle = request->handle;
    mt_buf_init(&u->coming, SIZE_MAX);
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->come, NULL);
    if (pthread_create(&u->thread, NULL, run, u)) {
        free_upload(u);
        return false;
    }
    u->next = server->uploads;
    server->uploads = u;
    server->upload_count++;
    u->followed = mt_http_follow(server->http, u->handle, &follower, u);
    if (!u->followed)
        cancel(u);
    return true;
}

static bool read_digest(const char *param, char digest[MT_UPLOAD_DIGITS + 1], mt_failure *why)
{
    return mt_upload_digest(param, digest) ||
           mt_failure_value(why, "digest", "is no digest: send \"sha256:\" and 64 hexadecimal digits");
}

void mt_blobs_put(void *user, mt_http_server *http, mt_http_request *request)
{
    mt_server *server = user;
    char digest[MT_UPLOAD_DIGITS + 1];
    mt_failure why = {.status = 0};

    (void)http;
    if (!read_digest(request->params[0], digest, &why)) {
    } else if (request->coding != MT_HTTP_PLAIN)
        mt_failure_set(&why, 415, "invalid_encoding", NULL,
                       "a file is taken as it is: send it without content-encoding");
    else if (server->upload_count >= MT_LIMIT_UPLOADING)
        mt_failure_set(&why, 429, "queue_full", NULL, "%d files are being uploaded: try again in a moment",
                       MT_LIMIT_UPLOADING);
    else if (!start(server, request, digest))
        mt_failure_set(&why, 503, "overloaded", NULL, "no thread can be started for it: try again in a moment");
    if (why.status)
        mt_server_fail(server, request->handle, &mt_ollama_chat, &why);
    mt_http_request_free(request);
}

bool mt_task_blob(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    char digest[MT_UPLOAD_DIGITS + 1], cache[MT_LIMIT_PATH];

    (void)body;
    (void)out;
    return read_digest(call->param, digest, why) &&
           ((mt_hub_cache(cache, getenv) && mt_upload_has(cache, digest)) ||
            mt_failure_set(why, 404, "file_not_found", "digest", "the file sha256:%s was not found here", digest));
}

void mt_blobs_cancel(mt_server *server)
{
    for (mt_uploading *u = server->uploads; u; u = u->next)
        cancel(u);
}

void mt_blobs_stop(mt_server *server)
{
    mt_blobs_cancel(server);
    for (mt_uploading *u = server->uploads; u; u = u->next)
        pthread_join(u->thread, NULL);
}
