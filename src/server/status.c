/* What waits and runs, as JSON. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "server/inside.h"

enum { ROWS = MT_LIMIT_SEQUENCES }; /* that are listed at most; all are counted */

static void add_row(mt_buf *out, const mt_engine_row *row, bool first)
{
    static const char *const phases[] = {[MT_PHASE_WAITING] = "waiting",
                                         [MT_PHASE_ENCODE] = "encode",
                                         [MT_PHASE_PREFILL] = "prefill",
                                         [MT_PHASE_DECODE] = "decode"};

    mt_buf_printf(out,
                  "%s{\"id\":\"%s\",\"choice\":%u,\"phase\":\"%s\",\"prompt_tokens\":%zu,\"cached_tokens\":%zu,"
                  "\"computed_tokens\":%zu,\"completion_tokens\":%zu,\"seconds\":%.3f}",
                  first ? "" : ",", row->name, row->choice, phases[row->phase], row->prompt_tokens, row->cached,
                  row->computed, row->tokens, row->seconds);
}

/* Calls the engine has not heard of. */
static size_t add_preparing(mt_server *server, const mt_account *account, mt_buf *out, bool first)
{
    size_t count = 0;

    for (const mt_call *call = server->calls; call; call = call->next) {
        if (call->prepared || call->over || (account && call->account != account))
            continue;
        if (++count <= ROWS) {
            mt_buf_printf(out, "%s{\"id\":\"%s\",\"choice\":0,\"phase\":\"preparing\",\"seconds\":%.3f}",
                          first ? "" : ",", call->id, (double)(mt_clock_ns() - call->received) / 1e9);
            first = false;
        }
    }
    return count;
}

void mt_status_write(mt_server *server, const mt_account *account, mt_buf *out)
{
    const mt_account *only = mt_account_scope(account);
    mt_engine_row *rows = mt_alloc_array(ROWS, sizeof(*rows));
    size_t count = server->ready && server->served.engine
                       ? mt_engine_list(server->served.engine, only ? &only->client : NULL, rows, ROWS)
                       : 0;
    size_t waiting = count > ROWS ? count - ROWS : 0, preparing; /* those that run come first */

    mt_buf_puts(out, "{\"object\":\"status\",\"model\":");
    mt_buf_json_string(out, server->served.name, strlen(server->served.name));
    mt_buf_printf(out, ",\"ready\":%s,\"requests\":[", server->ready ? "true" : "false");
    for (size_t i = 0; i < count && i < ROWS; i++) {
        add_row(out, &rows[i], i == 0);
        waiting += rows[i].phase == MT_PHASE_WAITING;
    }
    preparing = add_preparing(server, only, out, count == 0);
    mt_buf_printf(out, "],\"running\":%zu,\"waiting\":%zu,\"preparing\":%zu}", count - waiting, waiting, preparing);
    mt_free(rows);
}
