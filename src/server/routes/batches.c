/* /v1/batches of OpenAI's API and /v1/messages/batches of Anthropic's. All is asked on preparation threads, since it
   waits for the disk; results go out as files do (calls/transfer.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/chat_body.h"
#include "base/alloc.h"
#include "base/duration.h"
#include "base/json_tree.h"
#include "server/inside.h"
#include "server/limits.h"

/* PAGE: batches of a list by default; OPENAI_PAGE: most of OpenAI's; DAY: seconds */
enum { PAGE = 20, OPENAI_PAGE = 100, DAY = 86400 };

static bool is_anthropic(const mt_dialect *dialect)
{
    return dialect == &mt_anthropic_messages;
}

static bool are_kept(const mt_server *server, mt_failure *why)
{
    return server->batches || mt_failure_set(why, 400, "unsupported", NULL,
                                             "batches are kept with files: start the server with --files-dir FOLDER");
}

/* ---- OpenAI's ---- */

static bool read_endpoint(mt_bulk *b, const json_t *body, mt_failure *why)
{
    const char *path = mt_json_word(json_object_get(body, "endpoint"));

    b->endpoint = mt_bulk_endpoint(path, &b->dialect);
    return (b->endpoint && b->dialect != &mt_anthropic_messages) ||
           mt_failure_value(why, "endpoint",
                            "is not one of \"/v1/chat/completions\", \"/v1/completions\", \"/v1/responses\" and "
                            "\"/v1/embeddings\"");
}

static bool read_window(mt_bulk *b, const json_t *body, mt_failure *why)
{
    const json_t *window = json_object_get(body, "completion_window");
    const char *text = mt_json_word(window);
    double seconds;

    if (window && (!text || strlen(text) >= sizeof(b->window) || !mt_duration_parse(text, &seconds) || seconds < 1 ||
                   seconds > MT_LIMIT_BATCH_SECONDS))
        return mt_failure_value(why, "completion_window", "is no time of 1 s to 7 d: send \"24h\"");
    snprintf(b->window, sizeof(b->window), "%s", window ? text : "24h");
    b->expires = b->at[MT_BULK_VALIDATING] + (window ? (int64_t)seconds : DAY);
    return true;
}

static bool read_metadata(mt_bulk *b, const json_t *body, mt_failure *why)
{
    const json_t *metadata = mt_body_get(body, "metadata");
    mt_buf text = {.limit = MT_LIMIT_BATCH_METADATA};

    if (!metadata)
        return true;
    if (!json_is_object(metadata))
        return mt_failure_type(why, "metadata", metadata, "an object");
    if (!mt_json_tree_write(&text, metadata)) {
        mt_buf_free(&text);
        return mt_failure_value(why, "metadata", "has more than %d bytes: shorten it", MT_LIMIT_BATCH_METADATA);
    }
    b->metadata = text.data;
    return true;
}

static bool read_output(mt_bulk *b, const json_t *body, mt_failure *why)
{
    const json_t *output = mt_body_get(body, "output_expires_after");
    const json_t *seconds = json_object_get(output, "seconds");

    if (!output)
        return true;
    if (!json_is_object(output))
        return mt_failure_type(why, "output_expires_after", output, "an object");
    b->output_seconds = json_integer_value(seconds);
    return (json_is_integer(seconds) && b->output_seconds >= 3600 && b->output_seconds <= MT_LIMIT_FILE_SECONDS) ||
           mt_failure_value(why, "output_expires_after.seconds", "is no number of seconds from 3600 to %d",
                            MT_LIMIT_FILE_SECONDS);
}

static bool read_input(mt_call *call, mt_bulk *b, const json_t *body, mt_failure *why)
{
    const json_t *input = json_object_get(body, "input_file_id");
    const char *id = mt_json_word(input);
    mt_files_about about;

    if (!id)
        return mt_failure_type(why, "input_file_id", input, "the id of a file");
    if (!mt_files_find(call->server->files, b->owner, id, &about))
        return mt_failure_set(why, 404, "file_not_found", "input_file_id",
                              "there is no file \"%.60s\" here: upload it, with the purpose \"batch\"", id);
    snprintf(b->input, sizeof(b->input), "%s", id);
    return strcmp(about.purpose, "batch") == 0 ||
           mt_failure_value(why, "input_file_id", "is a file of the purpose \"%s\": upload it with \"batch\"",
                            about.purpose);
}

static mt_bulk *new_batch(const mt_call *call, bool anthropic)
{
    mt_bulk *b = mt_alloc(sizeof(*b));

    *b = (mt_bulk){.lines_fd = -1, .anthropic = anthropic};
    mt_random_id(b->id, anthropic ? "msgbatch_" : "batch_");
    mt_account_owner(call->account, b->owner);
    b->at[MT_BULK_VALIDATING] = (int64_t)time(NULL);
    return b;
}

static bool answer_batch_create(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    mt_bulk *b;

    if (!are_kept(call->server, why))
        return false;
    b = new_batch(call, false);
    if (read_endpoint(b, body, why) && read_window(b, body, why) && read_metadata(b, body, why) &&
        read_output(b, body, why) && read_input(call, b, body, why))
        return mt_batches_add(call->server->batches, b, out, why);
    mt_bulk_free(b);
    return false;
}

const mt_task mt_task_batch_create = {.run = answer_batch_create, .no_model = true};

/* ---- Anthropic's ---- */

static bool answer_batch_create_list(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    mt_batches *all = call->server->batches;
    mt_bulk *b;

    if (!are_kept(call->server, why))
        return false;
    b = new_batch(call, true);
    b->endpoint = mt_bulk_endpoint("/v1/messages", &b->dialect);
    b->state = MT_BULK_RUNNING;
    b->at[MT_BULK_RUNNING] = b->at[MT_BULK_VALIDATING];
    b->expires = b->at[MT_BULK_VALIDATING] + DAY;
    if (mt_bulk_spell(b, mt_batches_folder(all), mt_batches_files(all), json_object_get(body, "requests"), why))
        return mt_batches_add(all, b, out, why);
    mt_bulk_free(b);
    return false;
}

const mt_task mt_task_batch_create_list = {.run = answer_batch_create_list, .no_model = true};

/* ---- both ---- */

static bool answer_batch_get(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    char owner[MT_ACCOUNT_OWNER];

    (void)body;
    mt_account_owner(call->account, owner);
    return mt_batches_tell(call->server->batches, owner, is_anthropic(call->dialect), call->param, out, why);
}

static const mt_task get_task = {.run = answer_batch_get, .no_model = true};

static bool answer_batch_cancel(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    char owner[MT_ACCOUNT_OWNER];

    (void)body;
    mt_account_owner(call->account, owner);
    return mt_batches_cancel(call->server->batches, owner, is_anthropic(call->dialect), call->param, out, why);
}

static const mt_task cancel_task = {.run = answer_batch_cancel, .no_model = true};

static bool answer_batch_delete(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    char owner[MT_ACCOUNT_OWNER];

    (void)body;
    mt_account_owner(call->account, owner);
    return mt_batches_remove(call->server->batches, owner, true, call->param, out, why);
}

static const mt_task delete_task = {.run = answer_batch_delete, .no_model = true};

static bool answer_batch_list(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const bool anthropic = is_anthropic(call->dialect);
    const char *limit = mt_json_word(json_object_get(body, "limit"));
    const size_t most = anthropic ? MT_LIMIT_FILES_PAGE : OPENAI_PAGE;
    mt_batches_query q = {.limit = PAGE};
    char owner[MT_ACCOUNT_OWNER], *end;

    if (limit) {
        const long value = strtol(limit, &end, 10);

        if (!*limit || *end || value < 1 || (size_t)value > most)
            return mt_failure_value(why, "limit", "is no number of batches: send an integer from 1 to %zu", most);
        q.limit = (size_t)value;
    }
    q.after = mt_json_word(json_object_get(body, anthropic ? "after_id" : "after"));
    q.before = anthropic ? mt_json_word(json_object_get(body, "before_id")) : NULL;
    mt_account_owner(call->account, owner);
    return mt_batches_list(call->server->batches, owner, anthropic, &q, out, why);
}

static const mt_task list_task = {.run = answer_batch_list, .no_model = true};

/* Starts a task of a request without a body. */
static void start(mt_server *server, mt_http_request *request, const mt_task *task)
{
    const mt_dialect *dialect = mt_server_dialect_of(request->route);
    mt_failure why;

    if (!dialect)
        dialect = &mt_openai_chat;
    if (are_kept(server, &why))
        mt_files_start_task(server, request, dialect, task);
    else {
        mt_server_fail(server, request->handle, dialect, &why);
        mt_http_request_free(request);
    }
}

void mt_batches_get(void *user, mt_http_server *http, mt_http_request *request)
{
    (void)http;
    start(user, request, &get_task);
}

void mt_batches_listed(void *user, mt_http_server *http, mt_http_request *request)
{
    (void)http;
    start(user, request, &list_task);
}

void mt_batches_cancelled(void *user, mt_http_server *http, mt_http_request *request)
{
    (void)http;
    start(user, request, &cancel_task);
}

void mt_batches_deleted(void *user, mt_http_server *http, mt_http_request *request)
{
    (void)http;
    start(user, request, &delete_task);
}

/* ---- results of Anthropic's ---- */

typedef struct results {
    mt_batches *all;
    char owner[MT_ACCOUNT_OWNER];
    char *id;
    mt_transfer *transfer;
    bool failed; /* for want of the client */
} results;

static bool send_record(void *ctx, const mt_journal_record *r)
{
    results *each = ctx;

    each->failed = !mt_transfer_give(each->transfer, r->text, r->len) || !mt_transfer_give(each->transfer, "\n", 1);
    return !each->failed;
}

/* The transfer's thread. */
static bool send_results(mt_transfer *t, void *job, mt_error *err)
{
    results *r = job;

    r->transfer = t;
    return mt_batches_results(r->all, r->owner, r->id, send_record, r, err) ||
           (r->failed && mt_fail(err, MT_E_AWAY, "the client has left"));
}

static const mt_http_header apart[] = {{"x-content-type-options", "nosniff"}};
static const mt_http_response content = {
    .status = 200, .type = "application/x-jsonl", .headers = apart, .header_count = MT_COUNT(apart)};

static bool begin_results(mt_server *server, mt_http_handle handle, void *job)
{
    (void)job;
    return mt_http_begin(server->http, handle, &content);
}

static bool tell_none(mt_server *server, mt_http_handle handle, void *job)
{
    (void)job;
    return mt_http_answer(server->http, handle, &content, "", 0);
}

static void free_results(void *job)
{
    results *r = job;

    mt_free(r->id);
    mt_free(r);
}

static const mt_transfer_kind fetching = {.run = send_results,
                                          .tell = tell_none,
                                          .begin = begin_results,
                                          .free = free_results,
                                          .done = "fetched",
                                          .field = "id",
                                          .most = MT_LIMIT_FILES_MOVING,
                                          .own = MT_LIMIT_FILES_OWN};

void mt_batches_content(void *user, mt_http_server *http, mt_http_request *request)
{
    mt_server *server = user;
    mt_failure why;
    results *r;
    bool ok = are_kept(server, &why);

    (void)http;
    if (ok) {
        r = mt_alloc(sizeof(*r));
        r->all = server->batches;
        r->id = mt_strdup(request->params[0]);
        mt_account_owner(request->who, r->owner);
        ok = mt_transfer_start(server, request, &fetching, r, &mt_anthropic_messages, &why);
    }
    if (!ok)
        mt_server_fail(server, request->handle, &mt_anthropic_messages, &why);
    mt_http_request_free(request);
}
