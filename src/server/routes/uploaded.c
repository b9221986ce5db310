/* Routes of uploaded pictures (prepare/uploads.h): POST /v1/uploads/pictures with the bytes of one as its body gives an
   id; GET tells whether it is still here, DELETE forgets it. */
#include <stdio.h>

#include "base/json_write.h"
#include "media/limits.h"
#include "server/inside.h"
#include "server/limits.h"

static bool take(mt_server *server, mt_http_request *request, char id[MT_RANDOM_ID], mt_failure *why)
{
    if (request->coding != MT_HTTP_PLAIN)
        return mt_failure_set(why, 415, "invalid_encoding", NULL,
                              "a picture or video is uploaded as it is: send it without a content-encoding");
    if (request->body_len == 0)
        return mt_failure_set(why, 400, "invalid_body", NULL,
                              "the body is empty: send the bytes of a picture or video");
    return mt_uploads_add(&server->uploaded, request->who, request->body, request->body_len, request->charged, id) ||
           mt_failure_set(why, 413, "upload_too_large", NULL,
                          "a picture or video of %zu bytes cannot be kept here: %zu bytes may be (--upload-bytes)",
                          request->body_len, mt_uploads_look(&server->uploaded).limit);
}

void mt_upload_put(void *user, mt_http_server *http, mt_http_request *request)
{
    mt_server *server = user;
    mt_buf out = {.limit = 1024};
    char id[MT_RANDOM_ID], url[MT_RANDOM_ID + 8];
    mt_failure why;

    (void)http;
    if (!take(server, request, id, &why)) {
        mt_server_fail(server, request->handle, NULL, &why);
        mt_http_request_free(request);
        return;
    }
    snprintf(url, sizeof(url), "upload:%s", id);
    mt_json_write(&out, "{'id':%s,'object':'upload','url':%s,'bytes':%zu}", id, url, request->body_len);
    request->body = NULL; /* the uploads own it and what was charged for it */
    request->charged = 0;
    mt_server_json(server, request->handle, &out);
    mt_buf_free(&out);
    mt_http_request_free(request);
}

static bool tell(mt_server *server, const mt_http_request *request, bool remove, mt_buf *out, mt_failure *why)
{
    const char *id = request->params[0];

    if (!mt_uploads_has(&server->uploaded, request->who, id, remove))
        return mt_failure_set(why, 404, "upload_not_found", NULL, "the upload is not here any more: upload it again");
    mt_json_write(out, remove ? "{'id':%s,'object':'upload','deleted':true}" : "{'id':%s,'object':'upload'}", id);
    return true;
}

bool mt_upload_get(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    return tell(server, request, false, out, why);
}

bool mt_upload_delete(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    return tell(server, request, true, out, why);
}
