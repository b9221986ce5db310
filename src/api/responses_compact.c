/* The dialect of POST /v1/responses/compact: a conversation becomes the messages of its user and an item with a summary
   of the rest, which the model itself writes. The item comes back in the input of a later request, where
   responses_items.c reads it. Its "encrypted_content" is the summary as it is, as with reasoning. */
#include <inttypes.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/dialect.h"
#include "api/limits.h"
#include "api/responses.h"
#include "base/json_tree.h"
#include "base/json_write.h"

static const char request[] =
    "Summarise the conversation above, so that it can be continued by somebody who has only your summary and the "
    "user's messages. Keep facts, names, numbers, decisions, results of tools and what is still to be done; leave out "
    "what does not matter any more. Write the summary and nothing else.";

static bool read(mt_ask *ask, mt_failure *why)
{
    static const char *const others[] = {"stream", "background", "tools"};

    if (!mt_body_get(ask->body, "model"))
        return mt_failure_set(why, 400, "missing_required_parameter", "model",
                              "\"model\" is missing: send the name of a model");
    for (size_t i = 0; i < MT_COUNT(others); i++)
        if (mt_body_get(ask->body, others[i]) && !json_is_false(mt_body_get(ask->body, others[i])))
            return mt_failure_unsupported(why, others[i], "is not supported for a compaction: leave it out");
    return mt_responses_read_with(ask, request, why);
}

static bool is_user(const json_t *item)
{
    const char *type = json_object_get(item, "type") ? mt_body_text(item, "type") : "message";

    return strcmp(type, "message") == 0 && strcmp(mt_body_text(item, "role"), "user") == 0;
}

/* The user's messages of all items, each with an id. */
static void add_messages(mt_buf *out, const mt_answer *a)
{
    const json_t *text = json_object_get(a->extra, "all");
    json_t *items = mt_json_tree_try(json_string_value(text), json_string_length(text));
    json_t *kept = json_pack("{s:{s:s}, s:o?}", "response", "id", a->id, "input", items);
    json_t *made = mt_responses_inputs(kept);

    for (size_t i = 0; i < json_array_size(made); i++)
        if (is_user(json_array_get(made, i)))
            mt_json_tree_write(out, json_array_get(made, i));
    json_decref(made);
    json_decref(kept);
}

static void whole(mt_answer *a, mt_buf *out)
{
    const mt_speech *speech = &a->choices[0].speech;
    mt_buf summary = {.limit = MT_LIMIT_ANSWER_BYTES};

    mt_buf_puts(&summary, MT_RESPONSES_CARRIED);
    for (size_t i = 0; i < speech->count; i++)
        if (speech->at[i].kind == MT_SPEECH_TEXT)
            mt_buf_add(&summary, speech->at[i].text.data, speech->at[i].text.len);
    if (summary.len == strlen(MT_RESPONSES_CARRIED)) {
        a->failed = true;
        mt_failure_set(&a->why, 500, "no_summary", NULL,
                       "the model wrote no summary: try again, or send the conversation as it is");
    } else {
        mt_json_write(out, "{'id':%s,'object':'response.compaction','created_at':%" PRId64 ",'output':[", a->id,
                      a->created);
        add_messages(out, a);
        mt_json_write(out, "{'id':'cmp_%-s','type':'compaction'", strchr(a->id, '_') + 1);
        mt_json_text(out, "encrypted_content", summary.data, summary.len);
        mt_json_write(out, "}]");
        mt_responses_usage(out, a);
        mt_json_write(out, "}");
    }
    mt_buf_free(&summary);
}

const mt_dialect mt_responses_compact = {
    .name = "compact", .prefix = "resp_", .read = read, .whole = whole, .error = mt_failure_write};
