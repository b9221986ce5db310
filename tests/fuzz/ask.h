/* What fuzzers of requests' readers share: a body of arbitrary bytes becomes an ask whose values are in range, or a
   sentence that says why not. */
#ifndef MT_FUZZ_ASK_H
#define MT_FUZZ_ASK_H

#include <assert.h>
#include <stdint.h>

#include "api/dialect.h"
#include "api/json_body.h"
#include "base/limits.h"
#include "chat/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_failure(const mt_failure *why)
{
    json_t *json;
    mt_buf out;

    assert(why->status >= 400 && why->status < 500 && why->text[0]);
    mt_buf_init(&out, 8 * (size_t)MT_LIMIT_ERROR_TEXT);
    mt_failure_write(&out, why);
    json = json_loads(out.data, 0, NULL);
    assert(json_is_object(json_object_get(json, "error")));
    json_decref(json);
    mt_buf_free(&out);
}

static void check_ask(const mt_ask *ask)
{
    assert(ask->n >= 1 && ask->n <= MT_LIMIT_CHOICES);
    assert(ask->sampling.temperature >= 0 && ask->sampling.temperature <= 2 && ask->sampling.top_p >= 0 &&
           ask->sampling.top_p <= 1);
    assert(ask->max_tokens >= -1 && ask->sampling.logprobs >= -1 && ask->sampling.logprobs <= MT_LIMIT_TOP_LOGPROBS);
    assert(ask->stop_count <= MT_LIMIT_STOP_STRINGS && ask->sampling.stop_count <= MT_LIMIT_STOP_IDS);
    assert(ask->sampling.bias_count <= MT_LIMIT_LOGIT_BIAS);
    assert(ask->is_chat || ask->nothing ||
           (ask->prompt_count >= 1 &&
            ask->prompt_count * (size_t)ask->n <= (ask->vectors ? MT_LIMIT_EMBEDDINGS : MT_LIMIT_CHOICES)));
    assert(ask->dimensions >= 0 && (!ask->scores || ask->vectors));
    for (size_t i = 0; i < ask->prompt_count; i++)
        assert(ask->prompts[i].text.data || ask->prompts[i].ids);
}

/* A chat that a dialect made is one that the reader of chats can read: made says whether it must be. */
static void check_chat(const mt_ask *ask, bool made)
{
    mt_error err = {0};
    mt_chat chat;

    if (ask->is_chat && !mt_chat_read(&chat, ask->arena, ask->body, &err))
        assert(err.text[0] && (!made || ask->old_calls || err.code == MT_E_TOO_LARGE ||
                               json_array_size(json_object_get(ask->body, "messages")) == 0 ||
                               json_object_get(ask->body, "chat_template_kwargs") ||
                               json_object_get(ask->body, "add_generation_prompt") ||
                               json_object_get(ask->body, "continue_final_message")));
}

static void try_dialect(const mt_dialect *dialect, const json_t *body)
{
    mt_arena *arena = mt_arena_new(1u << 20);
    mt_ask_defaults defaults;
    mt_failure why;
    mt_ask ask;

    mt_ask_defaults_init(&defaults);
    mt_ask_init(&ask, arena, body, &defaults);
    if (dialect->read(&ask, &why)) {
        check_ask(&ask);
        check_chat(&ask, ask.owned != NULL && dialect != &mt_ollama_chat); /* whose messages go on as they are */
    } else
        check_failure(&why);
    mt_ask_free(&ask);
    mt_arena_free(arena);
}

static inline int try_body(const mt_dialect *dialect, const uint8_t *data, size_t size)
{
    mt_failure why;
    json_t *body = mt_json_body_parse((const char *)data, size, NULL, &why);

    if (body)
        try_dialect(dialect, body);
    else
        check_failure(&why);
    mt_json_body_free(body, size);
    return 0;
}

#endif
