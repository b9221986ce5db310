/* The io thread's part of a line: starts a call without a connection (calls/call.h), and makes a line of results of its
   answer. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_write.h"
#include "server/batches/batches.h"
#include "server/inside.h"

void mt_bulk_job_free(mt_bulk_job *job)
{
    mt_free(job->custom);
    mt_free(job->body);
    mt_buf_free(&job->text);
    mt_free(job);
}

/* The account of a batch; NULL: the batch has none, or (*lost) the account is gone from the keys. */
static mt_account *account_of(const mt_server *server, const mt_bulk *batch, bool *lost)
{
    char owner[MT_ACCOUNT_OWNER];

    *lost = *batch->owner != '\0';
    for (size_t i = 0; *lost && i < server->keys.account_count; i++) {
        mt_account_owner(server->keys.accounts[i], owner);
        if (strcmp(owner, batch->owner) == 0) {
            *lost = false;
            return server->keys.accounts[i];
        }
    }
    return NULL;
}

/* Whether a failure passes: the server was busy, or it ends. */
static bool may_again(const mt_failure *why)
{
    return why->status == 429 || why->status == 503;
}

/* The end of a line's call: makes its result and hands it to the batches' thread. */
static void over(mt_call *call)
{
    mt_bulk_job *job = call->job;
    const mt_failure *why = &call->failure;
    const bool open = !call->answer || call->answer->open > 0;
    mt_buf body = {.limit = 8 * (size_t)MT_LIMIT_ERROR_TEXT};
    mt_failure cut;

    if (call->server->closing) {
        mt_bulk_job_free(job);
        return;
    }
    if (!why->status && open) {
        mt_failure_set(&cut, 409, "cancelled", NULL, "the request was cancelled");
        why = &cut;
    }
    job->result = !why->status ? MT_BULK_ANSWERED : may_again(why) ? MT_BULK_AGAIN : MT_BULK_ERRED;
    if (why->status)
        call->dialect->error(&body, why);
    else
        while (call->out.len > 0 && call->out.data[call->out.len - 1] == '\n')
            call->out.data[--call->out.len] = '\0';
    if (job->result != MT_BULK_AGAIN)
        mt_bulk_tell_response(&job->text, job->batch, job->custom, call->id, why->status ? why->status : 200,
                              why->status     ? body.data
                              : call->out.len ? call->out.data
                                              : "{}");
    if (job->text.full)
        job->result = MT_BULK_AGAIN; /* no memory: its limit leaves room for every response */
    mt_buf_free(&body);
    mt_batches_give(call->server->batches, job);
}

/* Gives a line an error as its result, without a call. */
static void refuse(mt_bulk_job *job, const mt_failure *why)
{
    mt_buf body = {.limit = 8 * (size_t)MT_LIMIT_ERROR_TEXT};

    job->batch->dialect->error(&body, why);
    job->result = MT_BULK_ERRED;
    mt_bulk_tell_response(&job->text, job->batch, job->custom, "", why->status, body.data);
    mt_buf_free(&body);
    mt_batches_give(job->server->batches, job);
}

void mt_bulk_job_open(mt_message *message)
{
    mt_bulk_job *job = (mt_bulk_job *)message; /* message is the first member */
    mt_server *server = job->server;
    mt_account *account;
    mt_call_own own = {.dialect = job->batch->dialect, .body_len = job->body_len, .over = over, .job = job};
    mt_failure why;
    bool lost;

    if (server->closing) {
        mt_room_give(&server->room, job->charged);
        mt_bulk_job_free(job);
        return;
    }
    account = account_of(server, job->batch, &lost);
    if (server->signals || lost) {
        mt_room_give(&server->room, job->charged);
        job->result = MT_BULK_AGAIN;
        mt_batches_give(server->batches, job);
        return;
    }
    if (!job->body) {
        mt_room_give(&server->room, job->charged);
        mt_failure_set(&why, 400, "unsupported_value", "stream",
                       "lines of a batch are answered whole: leave \"stream\" and \"background\" out");
        refuse(job, &why);
        return;
    }
    own.account = account;
    own.body = job->body;
    own.charged = job->charged;
    job->body = NULL;
    mt_call_start_own(server, &own);
}
