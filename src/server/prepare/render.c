/* Tells routers the tokens of a request, in the shape of vLLM's: /v1/chat/completions/render and
   /v1/completions/render. Digests of pictures are the same as in KV events (events/kv_events.c). */
#include "api/chat_body.h"
#include "api/openai_prompt.h"
#include "api/write.h"
#include "base/hex.h"
#include "base/json_write.h"
#include "server/inside.h"
#include "server/prepare/tokens.h"

static void add_salt(mt_buf *out, const json_t *salt)
{
    if (json_is_string(salt))
        mt_json_text(out, "cache_salt", json_string_value(salt), json_string_length(salt));
    else
        mt_json_write(out, "'cache_salt':%-s", json_is_true(salt) ? "true" : json_is_false(salt) ? "false" : NULL);
}

/* Writes for each run of positions of pictures, or of videos, either its digest (hashes) or its place in the prompt. */
static void add_spans(mt_buf *out, const mt_pictures *p, bool video, bool hashes)
{
    char hex[2 * MT_DIGEST_BYTES + 1];

    for (size_t i = 0; i < p->prompt.span_count; i++) {
        const mt_media_span *span = &p->prompt.spans[i];

        if (p->at[span->picture].video != video)
            continue;
        mt_hex_text(p->at[span->picture].digest, MT_DIGEST_BYTES, hex);
        if (hashes)
            mt_json_write(out, "%s", hex);
        else
            mt_json_write(out, "{'offset':%u,'length':%u}", span->first, span->count);
    }
}

static void add_features(mt_buf *out, const mt_pictures *p)
{
    static const char *const names[] = {"mm_hashes", "mm_placeholders"};

    if (p->count == 0) {
        mt_json_write(out, "'features':null");
        return;
    }
    mt_json_write(out, "'features':{");
    for (size_t i = 0; i < MT_COUNT(names); i++) {
        mt_json_write(out, "%s:{'image':[", names[i]);
        add_spans(out, p, false, i == 0);
        mt_json_write(out, "],'video':[");
        add_spans(out, p, true, i == 0);
        mt_json_write(out, "]}");
    }
    mt_json_write(out, "}");
}

static void add_prompt(mt_call *call, const json_t *body, const mt_token_prompt *p, mt_buf *out)
{
    mt_json_write(out, "{'request_id':%s", call->id);
    mt_write_ids(out, "token_ids", p->ids, p->count);
    add_features(out, &p->pictures);
    mt_json_write(out, "'model':%s", call->served->name);
    add_salt(out, json_object_get(body, "cache_salt"));
    mt_json_write(out, "'stream':%hhd,'priority':0,'kv_transfer_params':null}",
                  (bool)json_is_true(json_object_get(body, "stream")));
}

static bool answer_render_chat(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    mt_token_prompt tokens = {.count = 0};
    const bool ok = mt_tokens_request(call->served, call->arena, body, &call->prep, &tokens, NULL, why);

    if (ok)
        add_prompt(call, body, &tokens, out);
    mt_pictures_free(&tokens.pictures);
    return ok;
}

const mt_task mt_task_render_chat = {.run = answer_render_chat};

/* Writes a list, since the request may have several prompts. */
static bool render_all(mt_call *call, mt_ask *ask, const json_t *body, mt_buf *out, mt_failure *why)
{
    mt_token_prompt *prompts;
    size_t count;

    if (!mt_openai_prompts_read(ask, "prompt", json_object_get(body, "prompt"), why) ||
        !mt_openai_suffix_read(ask, mt_body_get(body, "suffix"), why) ||
        !mt_tokens_make(call->served, ask, &call->prep, mt_tokens_most(call->served), &prompts, &count, why))
        return false;
    mt_json_write(out, "[");
    for (size_t i = 0; i < count; i++)
        add_prompt(call, body, &prompts[i], out);
    mt_json_write(out, "]");
    return true;
}

static bool answer_render(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    mt_ask *ask = mt_arena_alloc(call->arena, sizeof(*ask));
    bool ok;

    if (!ask)
        return mt_failure_memory(why, NULL);
    mt_ask_init(ask, call->arena, body, &call->served->generation.defaults);
    ok = render_all(call, ask, body, out, why);
    mt_ask_free(ask);
    return ok;
}

const mt_task mt_task_render = {.run = answer_render};
