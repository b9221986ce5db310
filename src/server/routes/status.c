/* GET /v1/status: the requests that wait and run, as JSON. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "engine/limits.h"
#include "server/inside.h"

enum { ROWS = MT_LIMIT_SEQUENCES }; /* most requests that are listed; all are counted */

/* model: NULL where there is one model alone. */
static void add_row(mt_buf *out, const mt_engine_row *row, const char *model)
{
    static const char *const phases[] = {[MT_PHASE_WAITING] = "waiting",
                                         [MT_PHASE_ENCODE] = "encode",
                                         [MT_PHASE_PREFILL] = "prefill",
                                         [MT_PHASE_DECODE] = "decode"};

    mt_json_write(out, "{");
    if (model)
        mt_json_write(out, "'model':%s", model);
    mt_json_write(out,
                  "'id':%s,'choice':%u,'phase':%s,'prompt_tokens':%zu,'cached_tokens':%zu,"
                  "'computed_tokens':%zu,'completion_tokens':%zu,'seconds':%.3f}",
                  row->name, row->choice, phases[row->phase], row->prompt_tokens, row->cached, row->computed,
                  row->tokens, row->seconds);
}

/* Lists calls that no engine has yet, being prepared or waiting for a model. Returns how many. The caller has the
   fleet's lock. */
static size_t add_preparing(mt_server *server, const mt_account *account, mt_buf *out)
{
    size_t count = 0;

    for (const mt_call *call = server->calls; call; call = call->next) {
        if (mt_call_is_prepared(call) || mt_call_is_over(call) || (account && call->account != account))
            continue;
        if (++count <= ROWS)
            mt_json_write(out, "{'id':%s,'choice':0,'phase':%s,'seconds':%.3f}", call->id,
                          call->waiter.waits ? "loading" : "preparing", (double)(mt_clock_ns() - call->received) / 1e9);
    }
    return count;
}

/* Lists requests of all engines, running ones first; beyond ROWS they are only counted. Returns how many; *waiting: how
   many of them wait. The caller has the fleet's lock. */
static size_t add_rows(mt_server *server, const mt_account *only, mt_buf *out, size_t *waiting)
{
    mt_engine_row *rows = mt_alloc_array(ROWS, sizeof(*rows));
    size_t all = 0, written = 0;

    *waiting = 0;
    for (size_t m = 0; m < server->fleet.count; m++) {
        const mt_member *member = server->fleet.members[m];
        const size_t count =
            member->open ? mt_engine_list(member->served.engine, only ? &only->client : NULL, rows, ROWS) : 0;

        all += count;
        *waiting += count > ROWS ? count - ROWS : 0;
        for (size_t i = 0; i < count && i < ROWS; i++) {
            *waiting += rows[i].phase == MT_PHASE_WAITING;
            if (written++ < ROWS)
                add_row(out, &rows[i], server->fleet.alone ? NULL : member->name);
        }
    }
    mt_free(rows);
    return all;
}

void mt_status_write(mt_server *server, const mt_account *account, mt_buf *out)
{
    const mt_account *only = mt_account_scope(account);
    /* A fleet of all models that are found changes, and may be empty: its first is no name for the server */
    const char *name = server->fleet.open ? "" : server->fleet.members[0]->name;
    size_t count, waiting, preparing;

    mt_json_write(out, "{'object':'status','model':%s,'ready':%hhd,'requests':[", name, server->ready);
    pthread_mutex_lock(&server->fleet.lock);
    count = add_rows(server, only, out, &waiting);
    preparing = add_preparing(server, only, out);
    pthread_mutex_unlock(&server->fleet.lock);
    mt_json_write(out, "],'running':%zu,'waiting':%zu,'preparing':%zu}", count - waiting, waiting, preparing);
}
