/* What fuzzers of requests' readers share: a body of arbitrary bytes becomes an ask whose values are in range, or a
   sentence that says why not. */
#ifndef MT_FUZZ_ASK_H
#define MT_FUZZ_ASK_H

#include <assert.h>
#include <stdint.h>

#include "api/dialect.h"
#include "api/json_body.h"
#include "api/limits.h"
#include "base/error.h"
#include "chat/chat.h"
#include "chat/limits.h"
#include "sample/limits.h"
#include "text/limits.h"

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
    assert(ask->sampling.temperature >= 0 && ask->sampling.temperature <= 100 && ask->sampling.top_p >= 0 &&
           ask->sampling.top_p <= 1);
    assert(ask->max_tokens >= -1 && ask->sampling.logprobs >= -1 && ask->sampling.logprobs <= MT_LIMIT_TOP_LOGPROBS);
    assert(ask->stop_count <= MT_LIMIT_STOP_STRINGS && ask->sampling.stop_count <= MT_LIMIT_STOP_IDS);
    assert(ask->sampling.bias_count <= MT_LIMIT_LOGIT_BIAS);
    assert(ask->is_chat || ask->nothing ||
           (ask->prompt_count >= 1 &&
            ask->prompt_count * (size_t)ask->n <= (ask->form.vectors ? MT_LIMIT_EMBEDDINGS : MT_LIMIT_CHOICES)));
    assert(ask->dimensions >= 0 && (!ask->scores || ask->form.vectors));
    for (size_t i = 0; i < ask->prompt_count; i++) {
        const mt_ask_prompt *p = &ask->prompts[i];

        assert((p->text.data != NULL) + (p->ids != NULL) + (p->pieces != NULL) + (p->infill != NULL) == 1);
        assert(!p->pieces || (p->piece_count > 0 && !ask->form.vectors));
    }
}

/* Whatever dialect filled it, a chat is one that templates can be given. */
static void check_chat(const mt_chat *chat)
{
    assert(chat->count >= 1 && chat->count <= MT_LIMIT_MESSAGES && !chat->starved);
    assert(!chat->tools || json_array_size(chat->tools) > 0);
    assert(!chat->kwargs || json_is_object(chat->kwargs));
    for (size_t i = 0; i < chat->count; i++) {
        const mt_chat_message *m = &chat->messages[i];

        assert(m->part_count <= m->sent && (m->call_count == 0 || m->role == MT_CHAT_ASSISTANT));
        assert(m->list || (m->part_count == 1 && m->parts[0].type == MT_CHAT_TEXT));
        for (size_t k = 0; k < m->part_count; k++) {
            assert(m->parts[k].type == MT_CHAT_TEXT ? m->parts[k].text.data != NULL
                                                    : json_is_object(m->parts[k].source) && *m->parts[k].place);
            assert(m->parts[k].index < m->sent);
        }
        for (size_t k = 0; k < m->call_count; k++)
            assert(m->calls[k].name.data);
    }
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
        if (ask.is_chat)
            check_chat(&ask.chat);
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
