/* What routers ask for the tokens of a request, as vLLM answers it: /v1/chat/completions/render and
   /v1/completions/render. The pictures' digests are those that KV events have (events/kv_events.c). */
#include <string.h>

#include "api/openai_prompt.h"
#include "api/write.h"
#include "base/hex.h"
#include "base/limits.h"
#include "server/inside.h"
#include "server/tokens.h"

static void add_value(mt_buf *out, const char *key, const json_t *value)
{
    mt_buf_printf(out, ",\"%s\":", key);
    if (json_is_string(value))
        mt_buf_json_string(out, json_string_value(value), json_string_length(value));
    else
        mt_buf_puts(out, json_is_true(value) ? "true" : json_is_false(value) ? "false" : "null");
}

/* Where pictures of a kind stand, each run of positions by itself, or which they are. */
static void add_spans(mt_buf *out, const mt_pictures *p, bool video, bool hashes)
{
    char hex[2 * MT_DIGEST_BYTES + 1];
    bool first = true;

    for (size_t i = 0; i < p->prompt.span_count; i++) {
        const mt_media_span *span = &p->prompt.spans[i];

        if (p->at[span->picture].video != video)
            continue;
        mt_buf_puts(out, first ? "" : ",");
        first = false;
        mt_hex_text(p->at[span->picture].digest, MT_DIGEST_BYTES, hex);
        if (hashes)
            mt_buf_printf(out, "\"%s\"", hex);
        else
            mt_buf_printf(out, "{\"offset\":%u,\"length\":%u}", span->first, span->count);
    }
}

static void add_features(mt_buf *out, const mt_pictures *p)
{
    static const char *const names[] = {"mm_hashes", "mm_placeholders"};

    if (p->count == 0) {
        mt_buf_puts(out, "null");
        return;
    }
    for (size_t i = 0; i < MT_COUNT(names); i++) {
        mt_buf_printf(out, "%s\"%s\":{\"image\":[", i ? "," : "{", names[i]);
        add_spans(out, p, false, i == 0);
        mt_buf_puts(out, "],\"video\":[");
        add_spans(out, p, true, i == 0);
        mt_buf_puts(out, "]}");
    }
    mt_buf_puts(out, "}");
}

static void add_prompt(mt_call *call, const json_t *body, const mt_token_prompt *p, mt_buf *out)
{
    mt_buf_printf(out, "{\"request_id\":\"%s\",\"token_ids\":", call->id);
    mt_write_ids(out, p->ids, p->count);
    mt_buf_puts(out, ",\"features\":");
    add_features(out, &p->pictures);
    mt_buf_puts(out, ",\"model\":");
    mt_buf_json_string(out, call->served->name, strlen(call->served->name));
    add_value(out, "cache_salt", json_object_get(body, "cache_salt"));
    add_value(out, "stream", json_is_true(json_object_get(body, "stream")) ? json_true() : json_false());
    mt_buf_puts(out, ",\"priority\":0,\"kv_transfer_params\":null}");
}

bool mt_task_render_chat(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    mt_served *served = call->served;
    mt_arena *arena = mt_arena_new(MT_LIMIT_REQUEST_MEMORY);
    mt_token_prompt tokens = {.count = 0};
    const bool ok = mt_tokens_chat(served, arena, body, &call->stop, mt_tokens_most(served), &tokens, NULL, why);

    if (ok)
        add_prompt(call, body, &tokens, out);
    mt_pictures_free(&tokens.pictures);
    mt_arena_free(arena);
    return ok;
}

/* A list, since the prompt may be one. */
static bool render_all(mt_call *call, mt_ask *ask, const json_t *body, mt_buf *out, mt_failure *why)
{
    mt_token_prompt *prompts;
    size_t count;

    if (!mt_openai_prompts_read(ask, "prompt", json_object_get(body, "prompt"), why) ||
        !mt_tokens_make(call->served, ask, &call->stop, mt_tokens_most(call->served), &prompts, &count, why))
        return false;
    for (size_t i = 0; i < count; i++) {
        mt_buf_puts(out, i ? "," : "[");
        add_prompt(call, body, &prompts[i], out);
    }
    mt_buf_puts(out, "]");
    return true;
}

bool mt_task_render(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    mt_arena *arena = mt_arena_new(MT_LIMIT_REQUEST_MEMORY);
    mt_ask *ask = mt_arena_alloc(arena, sizeof(*ask));
    bool ok = ask || mt_failure_memory(why, NULL);

    if (ok) {
        mt_ask_init(ask, arena, body, &call->served->generation.defaults);
        ok = render_all(call, ask, body, out, why);
        mt_ask_free(ask);
    }
    mt_arena_free(arena);
    return ok;
}
