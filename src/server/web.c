/* See web.h. */
#include "server/web.h"

#include <string.h>

#include "http/coding.h"
#include "http/field.h"
#include "server/inside.h"

/* What pages may do: load our own files and call our own server, nothing else. Inline scripts are forbidden, and so is
   making scripts or (where browsers know trusted types) markup from text. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src blob:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

bool mt_web_wanted(const mt_server *server, const mt_http_request *request)
{
    const char *accept = mt_http_request_header(request, "accept");

    return server->opt->web == MT_WEB_ON && accept && mt_http_list_accepts(accept, "text/html");
}

/* Pages are found by their route's pattern, since the router accepts other spellings of a path; assets by their exact
   path. */
static const mt_web_file *find(const mt_http_request *request)
{
    const bool whole = request->param_count > 0;
    const char *path = whole ? request->path : request->route->pattern;

    for (size_t i = 0; i < mt_web_count; i++)
        if (strcmp(mt_web_files[i].path, path) == 0)
            return &mt_web_files[i];
    return NULL;
}

/* Whether the client has this content already. */
static bool is_known(const mt_web_file *file, const mt_http_request *request)
{
    const char *have = mt_http_request_header(request, "if-none-match");

    return have && (strcmp(have, "*") == 0 || mt_http_list_has(have, file->tag) ||
                    mt_http_list_has(have, file->tag + 2)); /* without W/ */
}

/* For rare clients that do not accept gzip the file is unpacked each time. */
static void answer_plain(mt_server *server, mt_http_handle handle, const mt_http_response *response,
                         const mt_web_file *file)
{
    mt_room room = {.limit = SIZE_MAX};
    size_t charged = 0;
    mt_buf body;

    mt_buf_init(&body, file->size + 1);
    if (mt_http_unpack(MT_HTTP_GZIP, (const char *)file->packed, file->packed_size, &body, &room, &charged, NULL) ==
        MT_HTTP_UNPACKED)
        mt_http_answer(server->http, handle, response, body.data, body.len);
    else
        mt_http_abort(server->http, handle);
    mt_buf_free(&body);
}

static void answer(mt_server *server, const mt_http_request *request, const mt_web_file *file)
{
    const char *accepted = mt_http_request_header(request, "accept-encoding");
    const bool packed = accepted && mt_http_list_accepts(accepted, "gzip");
    mt_http_header headers[] = {
        {"etag", file->tag},
        {"cache-control", file->lasting ? "public, max-age=31536000, immutable" : "no-cache"},
        {"vary", strcmp(file->path, "/") == 0 ? "accept, accept-encoding" : "accept-encoding"},
        {"content-security-policy", policy},
        {"x-content-type-options", "nosniff"},
        {"referrer-policy", "no-referrer"},
        {"cross-origin-opener-policy", "same-origin"},
        {"content-encoding", "gzip"}, /* the last, left out of plain answers */
    };
    mt_http_response response = {
        .status = 200, .type = file->type, .headers = headers, .header_count = MT_COUNT(headers) - !packed};

    if (is_known(file, request)) {
        response.status = 304;
        response.type = NULL;
        response.header_count = MT_COUNT(headers) - 1;
        mt_http_answer(server->http, request->handle, &response, "", 0);
    } else if (packed) {
        mt_http_answer(server->http, request->handle, &response, file->packed, file->packed_size);
    } else {
        answer_plain(server, request->handle, &response, file);
    }
}

void mt_web_get(void *user, mt_http_server *http, mt_http_request *request)
{
    const mt_web_file *file = find(request);

    if (file)
        answer(user, request, file);
    else
        mt_http_fail(http, request->handle, request->path, 404, "there is nothing at this path");
    mt_http_request_free(request);
}
