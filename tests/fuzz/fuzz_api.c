/* A request's body of arbitrary bytes: each dialect makes an ask of it whose values are in range, or says in a sentence
   why not. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "api/dialect.h"
#include "api/json_body.h"
#include "base/limits.h"

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
    assert(ask->temperature >= 0 && ask->temperature <= 2 && ask->top_p >= 0 && ask->top_p <= 1);
    assert(ask->max_tokens >= -1 && ask->logprobs >= -1 && ask->logprobs <= MT_LIMIT_TOP_LOGPROBS);
    assert(ask->stop_count <= MT_LIMIT_STOP_STRINGS && ask->stop_id_count <= MT_LIMIT_STOP_IDS);
    assert(ask->bias_count <= MT_LIMIT_LOGIT_BIAS);
    assert(ask->is_chat || (ask->prompt_count >= 1 && ask->prompt_count * (size_t)ask->n <= MT_LIMIT_CHOICES));
    for (size_t i = 0; i < ask->prompt_count; i++)
        assert(ask->prompts[i].text.data || ask->prompts[i].ids);
}

static void try_dialect(const mt_dialect *dialect, const json_t *body)
{
    mt_arena *arena = mt_arena_new(1u << 20);
    mt_ask_defaults defaults;
    mt_failure why;
    mt_ask ask;

    mt_ask_defaults_init(&defaults);
    mt_ask_init(&ask, arena, body, &defaults);
    if (dialect->read(&ask, &why))
        check_ask(&ask);
    else
        check_failure(&why);
    mt_ask_free(&ask);
    mt_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mt_failure why;
    json_t *body = mt_json_body_parse((const char *)data, size, &why);

    if (body) {
        try_dialect(&mt_openai_chat, body);
        try_dialect(&mt_openai_completions, body);
    } else
        check_failure(&why);
    mt_json_body_free(body, size);
    return 0;
}
