/* The description of a batch in the shape of OpenAI's or Anthropic's API. */
#include <inttypes.h>

#include "base/clock.h"
#include "base/json_write.h"
#include "server/batches/batches.h"

const char *mt_bulk_state_name(mt_bulk_state state)
{
    static const char *const names[] = {"validating", "failed",  "in_progress", "finalizing",
                                        "completed",  "expired", "cancelling",  "cancelled"};

    return names[state];
}

/* A member that is a time, or null. */
static void tell_time(mt_buf *out, const char *key, int64_t at)
{
    if (at)
        mt_json_write(out, "%s:%" PRId64, key, at);
    else
        mt_json_write(out, "%s:null", key);
}

static void tell_openai(mt_buf *out, const mt_bulk *b)
{
    static const struct {
        const char *key;
        mt_bulk_state state;
    } times[] = {{"in_progress_at", MT_BULK_RUNNING}, {"finalizing_at", MT_BULK_FINALIZING},
                 {"completed_at", MT_BULK_COMPLETED}, {"failed_at", MT_BULK_FAILED},
                 {"expired_at", MT_BULK_EXPIRED},     {"cancelled_at", MT_BULK_CANCELLED}};
    const bool over = mt_bulk_is_over(b->state);

    mt_json_write(out, "{'id':%s,'object':'batch','endpoint':%s", b->id, b->endpoint);
    if (b->errors)
        mt_json_write(out, "'errors':{'object':'list','data':%-s}", b->errors);
    else
        mt_json_write(out, "'errors':null");
    mt_json_write(out, "'input_file_id':%s,'completion_window':%s,'status':%s", b->input, b->window,
                  mt_bulk_state_name(b->cancel && b->state == MT_BULK_RUNNING ? MT_BULK_CANCELLING : b->state));
    mt_json_write(out, "'output_file_id':%s,'error_file_id':%s,'created_at':%" PRId64 ",'expires_at':%" PRId64,
                  over && *b->output ? b->output : NULL, over && *b->errors_file ? b->errors_file : NULL,
                  b->at[MT_BULK_VALIDATING], b->expires);
    for (size_t i = 0; i < MT_COUNT(times); i++)
        tell_time(out, times[i].key, b->at[times[i].state]);
    tell_time(out, "cancelling_at", b->cancel);
    mt_json_write(out, "'request_counts':{'total':%zu,'completed':%zu,'failed':%zu},'metadata':%-s}", b->total,
                  b->counts[MT_BULK_ANSWERED], b->counts[MT_BULK_ERRED], b->metadata ? b->metadata : "null");
}

static void tell_date(mt_buf *out, const char *key, int64_t at)
{
    char when[MT_CLOCK_TEXT];

    if (at)
        mt_json_write(out, "%s:%s", key, mt_clock_text((struct timespec){.tv_sec = (time_t)at}, 0, when));
    else
        mt_json_write(out, "%s:null", key);
}

static void tell_anthropic(mt_buf *out, const mt_bulk *b)
{
    const bool over = mt_bulk_is_over(b->state);
    const size_t answered = b->counts[MT_BULK_ANSWERED], erred = b->counts[MT_BULK_ERRED],
                 lapsed = b->counts[MT_BULK_LAPSED], dropped = b->counts[MT_BULK_DROPPED];
    /* Anthropic's own service counts results only when all lines are done; here they are counted as they arrive */
    mt_json_write(out, "{'id':%s,'type':'message_batch','processing_status':%s", b->id,
                  over        ? "ended"
                  : b->cancel ? "canceling"
                              : "in_progress");
    mt_json_write(out, "'request_counts':{'processing':%zu,'succeeded':%zu,'errored':%zu,'canceled':%zu,'expired':%zu}",
                  b->total - answered - erred - lapsed - dropped, answered, erred, dropped, lapsed);
    tell_date(out, "ended_at", over ? b->at[b->state] : 0);
    tell_date(out, "created_at", b->at[MT_BULK_VALIDATING]);
    tell_date(out, "expires_at", b->expires);
    tell_date(out, "archived_at", 0);
    tell_date(out, "cancel_initiated_at", b->cancel);
    if (over)
        mt_buf_printf(out, ",\"results_url\":\"/v1/messages/batches/%s/results\"}", b->id);
    else
        mt_json_write(out, "'results_url':null}");
}

void mt_bulk_tell(mt_buf *out, const mt_bulk *b)
{
    (b->anthropic ? tell_anthropic : tell_openai)(out, b);
}
