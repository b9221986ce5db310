/* HEAD and POST /api/blobs/sha256:DIGEST of Ollama's API: files that clients upload to make models of (hub/upload.h).
   A client that leaves ends its upload, of which nothing stays. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "hub/names.h"
#include "hub/upload.h"
#include "server/calls/transfer.h"
#include "server/inside.h"
#include "server/limits.h"

typedef struct blob {
    char digest[MT_UPLOAD_DIGITS + 1];
    uint64_t size; /* as the client announced it; UINT64_MAX: it did not */
} blob;

/* The transfer's thread. */
static bool receive(mt_transfer *t, void *job, mt_error *err)
{
    const blob *b = job;
    mt_buf taken = {.limit = SIZE_MAX};
    char cache[MT_LIMIT_PATH];
    mt_upload *file;
    bool ok = mt_hub_cache(cache, getenv) ||
              mt_fail(err, MT_E_UNSUPPORTED, "there is no folder for uploaded files: set HF_HUB_CACHE or HOME");

    file = ok ? mt_upload_new(cache, b->digest, b->size, err) : NULL;
    ok = file != NULL;
    while (ok && mt_transfer_take(t, &taken))
        ok = mt_upload_add(file, taken.data, taken.len, err);
    ok = ok && mt_transfer_whole(t, err) && mt_upload_end(file, err);
    mt_upload_free(file);
    mt_buf_free(&taken);
    return ok;
}

static bool tell(mt_server *server, mt_http_handle handle, void *job)
{
    const mt_http_response created = {.status = 201};

    (void)job;
    return mt_http_answer(server->http, handle, &created, "", 0);
}

static const mt_transfer_kind upload = {.run = receive,
                                        .tell = tell,
                                        .free = mt_free,
                                        .done = "uploaded",
                                        .field = "digest",
                                        .most = MT_LIMIT_UPLOADING,
                                        .own = MT_LIMIT_UPLOADING};

static bool start(mt_server *server, const mt_http_request *request, const char *digest, mt_failure *why)
{
    blob *b = mt_alloc(sizeof(*b));

    snprintf(b->digest, sizeof(b->digest), "%s", digest);
    b->size = request->announced;
    return mt_transfer_start(server, request, &upload, b, &mt_ollama_chat, why);
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
    else if (start(server, request, digest, &why))
        why.status = 0;
    if (why.status)
        mt_server_fail(server, request->handle, &mt_ollama_chat, &why);
    mt_http_request_free(request);
}

static bool answer_blob(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    char digest[MT_UPLOAD_DIGITS + 1], cache[MT_LIMIT_PATH];

    (void)body;
    (void)out;
    return read_digest(call->param, digest, why) &&
           ((mt_hub_cache(cache, getenv) && mt_upload_has(cache, digest)) ||
            mt_failure_set(why, 404, "file_not_found", "digest", "the file sha256:%s was not found here", digest));
}

const mt_task mt_task_blob = {.run = answer_blob, .no_model = true};
