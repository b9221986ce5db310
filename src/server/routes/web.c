/* See web.h. */
#include "server/routes/web.h"

#include <math.h>
#include <string.h>

#include "base/json_write.h"
#include "http/coding.h"
#include "http/field.h"
#include "media/limits.h"
#include "options/limits.h"
#include "server/inside.h"
#include "server/limits.h"

/* What pages may do: load our own files and call our own server, nothing else. Inline scripts are forbidden, and so is
   making scripts or (where browsers know trusted types) markup from text. */
static const char policy[] = /* %s: origins of --web-connect, each behind a blank */
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src blob:; "
    "manifest-src 'self'; connect-src 'self'%s; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
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

bool mt_web_may_connect(const char *origin, mt_error *err)
{
    static const char host[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]";
    const size_t scheme = strncmp(origin, "https://", 8) == 0 ? 8 : strncmp(origin, "http://", 7) == 0 ? 7 : 0;
    const size_t len = strlen(origin);

    return (scheme > 0 && len > scheme && len < MT_LIMIT_ORIGIN && strspn(origin + scheme, host) == len - scheme) ||
           mt_fail(err, MT_E_INVALID,
                   "--web-connect \"%.100s\" is no origin: write https://host or https://host:port, without a path",
                   origin);
}

/* The policy with the origins that the operator allows the page to call. They were checked with the options. */
static void write_policy(const mt_server *server, mt_buf *out)
{
    const char *const place = strstr(policy, "%s");

    mt_buf_add(out, policy, (size_t)(place - policy));
    for (size_t i = 0; i < server->opt->web_connect.count; i++)
        mt_buf_printf(out, " %s", server->opt->web_connect.at[i]);
    mt_buf_add(out, place + 2, strlen(place + 2));
}

static void answer(mt_server *server, const mt_http_request *request, const mt_web_file *file)
{
    mt_buf allowed = {.limit = sizeof(policy) + (size_t)MT_LIMIT_OPTION_LIST * (MT_LIMIT_ORIGIN + 1)};

    const char *accepted = mt_http_request_header(request, "accept-encoding");
    const bool packed = accepted && mt_http_list_accepts(accepted, "gzip");

    write_policy(server, &allowed);
    mt_http_header headers[] = {
        {"etag", file->tag},
        {"cache-control", file->lasting ? "public, max-age=31536000, immutable" : "no-cache"},
        {"vary", strcmp(file->path, "/") == 0 ? "accept, accept-encoding" : "accept-encoding"},
        {"content-security-policy", allowed.data},
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
    mt_buf_free(&allowed);
}

bool mt_web_limits(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    const double alone = mt_timeout_alone(server);

    (void)request, (void)why;
    mt_json_write(out, "{'body_bytes':%zu,'picture_bytes':%zu,'upload_bytes':%zu", server->body_most,
                  (size_t)server->opt->media_max_bytes, mt_uploads_look(&server->uploaded).limit);
    if (isfinite(alone))
        mt_json_write(out, "'background_alone':%.6g", alone);
    mt_json_write(out, "'connect':[");
    for (size_t i = 0; i < server->opt->web_connect.count; i++)
        mt_json_write(out, "%s", server->opt->web_connect.at[i]);
    mt_json_write(out, "]}");
    return true;
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
