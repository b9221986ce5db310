/* /v1/files of OpenAI's and of Anthropic's API, over one store (files/store.h): the same paths, told apart by the
   header that all of Anthropic's clients send. Files come and go on threads of their own (calls/transfer.h); what is
   known of them is told by preparation threads, since deleting waits for the disk and a list may be long. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/limits.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "files/form.h"
#include "http/request.h"
#include "server/calls/transfer.h"
#include "server/inside.h"
#include "server/limits.h"

enum { PIECE = 256 << 10, PAGE = 20 }; /* bytes that are sent at a time; files of a page of Anthropic's by default */

static bool is_anthropic(const mt_dialect *dialect)
{
    return dialect == &mt_anthropic_messages;
}

static bool are_kept(const mt_server *server, mt_failure *why)
{
    return server->files || mt_failure_set(why, 400, "unsupported", NULL,
                                           "files are not kept here: start the server with --files-dir FOLDER");
}

static bool is_missing(const char *id, mt_failure *why)
{
    return mt_failure_set(why, 404, "file_not_found", "id",
                          "there is no file \"%.60s\" here: upload it, or look at the list of files", id);
}

/* ---- what is told of a file ---- */

static void tell_openai(mt_buf *out, const mt_files_about *a)
{
    mt_json_write(out, "{'id':%s,'object':'file','bytes':%" PRIu64 ",'created_at':%" PRId64, a->id, a->bytes,
                  a->created);
    if (a->expires)
        mt_json_write(out, "'expires_at':%" PRId64, a->expires);
    mt_json_write(out, "'filename':%s,'purpose':%s,'status':'processed','status_details':null}", a->name, a->purpose);
}

static void tell_anthropic(mt_buf *out, const mt_files_about *a)
{
    char when[MT_CLOCK_TEXT];

    mt_clock_text((struct timespec){.tv_sec = (time_t)a->created}, 0, when);
    mt_json_write(out,
                  "{'id':%s,'type':'file','filename':%s,'mime_type':%s,'size_bytes':%" PRIu64
                  ",'created_at':%s,'downloadable':true",
                  a->id, a->name, a->type, a->bytes, when);
    if (a->expires)
        mt_clock_text((struct timespec){.tv_sec = (time_t)a->expires}, 0, when);
    mt_json_write(out, "'expires_at':%s}", a->expires ? when : NULL);
}

static void tell_file(mt_buf *out, const mt_files_about *a, const mt_dialect *dialect)
{
    (is_anthropic(dialect) ? tell_anthropic : tell_openai)(out, a);
}

/* ---- uploads ---- */

typedef struct upload {
    mt_files_form form;
    char owner[MT_FILES_OWNER];
    char *type; /* of the body */
    const mt_dialect *dialect;
} upload;

/* The transfer's thread. */
static bool receive(mt_transfer *t, void *job, mt_error *err)
{
    upload *u = job;
    mt_buf taken = {.limit = SIZE_MAX};
    bool ok = mt_files_form_init(&u->form, u->type, err);

    while (ok && mt_transfer_take(t, &taken))
        ok = mt_files_form_add(&u->form, taken.data, taken.len, err);
    ok = ok && mt_transfer_whole(t, err) && mt_files_form_end(&u->form, err);
    mt_files_form_free(&u->form);
    mt_buf_free(&taken);
    return ok;
}

static bool tell_uploaded(mt_server *server, mt_http_handle handle, void *job)
{
    const upload *u = job;
    mt_buf out = {.limit = MT_LIMIT_RESPONSE_BYTES};
    bool told;

    tell_file(&out, &u->form.about, u->dialect);
    told = mt_server_json(server, handle, &out);
    mt_buf_free(&out);
    return told;
}

static void free_upload(void *job)
{
    upload *u = job;

    mt_free(u->type);
    mt_free(u);
}

static const mt_transfer_kind uploading = {.run = receive,
                                           .tell = tell_uploaded,
                                           .free = free_upload,
                                           .done = "uploaded",
                                           .most = MT_LIMIT_FILES_MOVING,
                                           .own = MT_LIMIT_FILES_OWN};

static bool start_upload(mt_server *server, const mt_http_request *request, const mt_dialect *dialect, mt_failure *why)
{
    const char *type = mt_http_request_header(request, "content-type");
    upload *u = mt_alloc(sizeof(*u));

    u->type = mt_strdup(type ? type : "");
    u->dialect = dialect;
    mt_account_owner(request->who, u->owner);
    u->form.files = server->files;
    u->form.owner = u->owner;
    if (request->announced != UINT64_MAX && request->announced > MT_LIMIT_FORM_EXTRA)
        u->form.size = request->announced - MT_LIMIT_FORM_EXTRA;
    u->form.needs_purpose = !is_anthropic(dialect);
    return mt_transfer_start(server, request, &uploading, u, dialect, why);
}

void mt_files_put(void *user, mt_http_server *http, mt_http_request *request)
{
    const mt_dialect *dialect = mt_server_dialect_spoken(request);
    mt_server *server = user;
    mt_failure why;
    bool ok;

    (void)http;
    if (!are_kept(server, &why))
        ok = false;
    else if (request->coding != MT_HTTP_PLAIN)
        ok = mt_failure_set(&why, 415, "invalid_encoding", NULL,
                            "a file is taken as it is: send it without content-encoding");
    else
        ok = start_upload(server, request, dialect, &why);
    if (!ok)
        mt_server_fail(server, request->handle, dialect, &why);
    mt_http_request_free(request);
}

/* ---- contents ---- */

typedef struct download {
    mt_files *files;
    char owner[MT_FILES_OWNER];
    char *id;
    mt_files_about about;
} download;

/* Sends what is behind a descriptor. */
static bool send_all(mt_transfer *t, int fd, uint64_t bytes, mt_error *err)
{
    char *piece = mt_alloc(PIECE);
    bool ok = true;

    while (ok && bytes > 0) {
        const ssize_t n = read(fd, piece, bytes < PIECE ? (size_t)bytes : PIECE);

        if (n <= 0)
            ok = mt_fail(err, MT_E_IO, "the file cannot be read to its end");
        else
            ok = mt_transfer_give(t, piece, (size_t)n) || mt_fail(err, MT_E_AWAY, "the client has left");
        bytes -= ok ? (uint64_t)n : 0;
    }
    mt_free(piece);
    return ok;
}

/* The transfer's thread. */
static bool send_file(mt_transfer *t, void *job, mt_error *err)
{
    download *d = job;
    const int fd = mt_files_read(d->files, d->owner, d->id, &d->about, err);
    bool ok = fd >= 0;

    ok = ok && send_all(t, fd, d->about.bytes, err);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* A browser must neither show nor run an uploaded file: it would do so as a page of this server. */
static const mt_http_header apart[] = {{"content-disposition", "attachment"}, {"x-content-type-options", "nosniff"}};
static const mt_http_response content = {
    .status = 200, .type = "application/octet-stream", .headers = apart, .header_count = MT_COUNT(apart)};

static bool begin_content(mt_server *server, mt_http_handle handle, void *job)
{
    (void)job;
    return mt_http_begin(server->http, handle, &content);
}

static bool tell_empty(mt_server *server, mt_http_handle handle, void *job)
{
    (void)job;
    return mt_http_answer(server->http, handle, &content, "", 0);
}

static void free_download(void *job)
{
    download *d = job;

    mt_free(d->id);
    mt_free(d);
}

static const mt_transfer_kind downloading = {.run = send_file,
                                             .tell = tell_empty,
                                             .begin = begin_content,
                                             .free = free_download,
                                             .done = "fetched",
                                             .field = "id",
                                             .most = MT_LIMIT_FILES_MOVING,
                                             .own = MT_LIMIT_FILES_OWN};

static bool start_download(mt_server *server, const mt_http_request *request, const mt_dialect *dialect,
                           mt_failure *why)
{
    download *d = mt_alloc(sizeof(*d));

    d->files = server->files;
    d->id = mt_strdup(request->params[0]);
    mt_account_owner(request->who, d->owner);
    return mt_transfer_start(server, request, &downloading, d, dialect, why);
}

void mt_files_content(void *user, mt_http_server *http, mt_http_request *request)
{
    const mt_dialect *dialect = mt_server_dialect_spoken(request);
    mt_failure why;

    (void)http;
    if (!are_kept(user, &why) || !start_download(user, request, dialect, &why))
        mt_server_fail(user, request->handle, dialect, &why);
    mt_http_request_free(request);
}

/* ---- tasks ---- */

static bool get_file(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    char owner[MT_FILES_OWNER];
    mt_files_about about;

    (void)body;
    mt_account_owner(call->account, owner);
    if (!mt_files_find(call->server->files, owner, call->param, &about))
        return is_missing(call->param, why);
    tell_file(out, &about, call->dialect);
    return true;
}

static bool delete_file(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    char owner[MT_FILES_OWNER];

    (void)body;
    mt_account_owner(call->account, owner);
    if (!mt_files_remove(call->server->files, owner, call->param))
        return is_missing(call->param, why);
    if (is_anthropic(call->dialect))
        mt_json_write(out, "{'id':%s,'type':'file_deleted'}", call->param);
    else
        mt_json_write(out, "{'id':%s,'object':'file','deleted':true}", call->param);
    return true;
}

/* NULL: it is missing. */
static const char *word(const json_t *body, const char *key)
{
    return mt_json_word(json_object_get(body, key));
}

/* Reads how many files are wanted at most. */
static bool read_limit(const json_t *body, size_t most, size_t *limit, mt_failure *why)
{
    const char *text = word(body, "limit");
    char *end;
    const long value = text ? strtol(text, &end, 10) : 1;

    if (!text)
        return true;
    *limit = (size_t)value;
    return (*text && !*end && value >= 1 && (size_t)value <= most) ||
           mt_failure_value(why, "limit", "is no number of files: send an integer from 1 to %zu", most);
}

static bool read_order(const json_t *body, mt_files_query *q, mt_failure *why)
{
    const char *order = word(body, "order");

    q->oldest_first = order && strcmp(order, "asc") == 0;
    return !order || q->oldest_first || strcmp(order, "desc") == 0 ||
           mt_failure_value(why, "order", "is neither \"asc\" nor \"desc\"");
}

static bool read_query(const json_t *body, bool anthropic, mt_files_query *q, mt_failure *why)
{
    if (anthropic) {
        /* Later versions of the API go on with `page` instead, the `next_page` of the list before */
        const char *after = word(body, "after_id") ? word(body, "after_id") : word(body, "page");

        *q = (mt_files_query){.after = after, .before = word(body, "before_id"), .limit = PAGE};
        return read_limit(body, MT_LIMIT_FILES_PAGE, &q->limit, why);
    }
    *q = (mt_files_query){.purpose = word(body, "purpose"), .after = word(body, "after"), .limit = MT_LIMIT_FILES};
    return read_limit(body, MT_LIMIT_FILES, &q->limit, why) && read_order(body, q, why);
}

static bool list_files(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const bool anthropic = is_anthropic(call->dialect);
    char owner[MT_FILES_OWNER];
    mt_files_query query;
    mt_files_page page;
    mt_error err;

    mt_account_owner(call->account, owner);
    if (!read_query(body, anthropic, &query, why))
        return false;
    if (!mt_files_list(call->server->files, owner, &query, &page, &err)) {
        mt_free(page.at);
        return mt_failure_from(why, &err, query.before ? "before_id" : anthropic ? "after_id" : "after");
    }
    mt_json_write(out, anthropic ? "{'data':[" : "{'object':'list','data':[");
    for (size_t i = 0; i < page.count; i++)
        tell_file(out, &page.at[i], call->dialect);
    mt_json_write(out, "],'first_id':%s,'last_id':%s,'has_more':%hhd", page.count ? page.at[0].id : NULL,
                  page.count ? page.at[page.count - 1].id : NULL, page.more);
    if (anthropic)
        mt_json_write(out, "'next_page':%s", page.more && !query.before ? page.at[page.count - 1].id : NULL);
    mt_json_write(out, "}");
    mt_free(page.at);
    return true;
}

void mt_files_start_task(mt_server *server, mt_http_request *request, const mt_dialect *dialect, const mt_task *task)
{
    static const char *const keys[] = {"after", "after_id", "before_id", "limit", "order", "page", "purpose"};
    mt_buf body = {.limit = 1u << 20};
    mt_failure why;

    if (!are_kept(server, &why)) {
        mt_server_fail(server, request->handle, dialect, &why);
        mt_http_request_free(request);
        return;
    }
    mt_json_write(&body, "{");
    for (size_t i = 0; i < MT_COUNT(keys); i++) {
        char *value = mt_http_request_query(request, keys[i]);

        if (value)
            mt_json_write(&body, "%s:%s", keys[i], value);
        mt_free(value);
    }
    mt_json_write(&body, "}");
    mt_http_request_set_body(request, &body, &server->room, request->charged);
    request->coding = MT_HTTP_PLAIN;
    mt_call_start(server, request, dialect, task);
}

static const mt_task list_task = {.run = list_files, .no_model = true}, get_task = {.run = get_file, .no_model = true},
                     delete_task = {.run = delete_file, .no_model = true};

/* mt_files_start_task in the dialect that the request speaks. */
static void start_task(mt_server *server, mt_http_request *request, const mt_task *task)
{
    mt_files_start_task(server, request, mt_server_dialect_spoken(request), task);
}

void mt_files_list_get(void *user, mt_http_server *http, mt_http_request *request)
{
    (void)http;
    start_task(user, request, &list_task);
}

void mt_files_get(void *user, mt_http_server *http, mt_http_request *request)
{
    (void)http;
    start_task(user, request, &get_task);
}

void mt_files_delete(void *user, mt_http_server *http, mt_http_request *request)
{
    (void)http;
    start_task(user, request, &delete_task);
}
