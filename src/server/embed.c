#include "server/embed.h"

#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "server/client.h"
#include "server/inside.h"

static const char *field_of(const mt_ask *ask)
{
    return ask->query.data ? "documents" : "input";
}

/* Who names no model gets the first that can do it. */
static const mt_target *pick(const mt_served *served, const char *model, bool scores)
{
    const mt_target *encoder = model ? mt_served_encoder(served, model) : NULL;

    for (size_t i = 0; (!model || strcmp(model, "default") == 0) && i < served->target_count; i++)
        if ((served->targets[i].pool == MT_POOL_SCORE) == scores)
            return &served->targets[i];
    return encoder || !mt_served_answers(served, model) ? encoder : &served->targets[served->target_count - 1];
}

static const mt_target *find_target(const mt_served *served, const mt_ask *ask, mt_failure *why)
{
    const bool scores = ask->query.data != NULL;
    const mt_target *t = pick(served, ask->model, scores);

    if (!t)
        mt_failure_set(why, 404, "model_not_found", "model", "the model \"%.100s\" does not exist here: see /v1/models",
                       ask->model);
    else if (scores && t->pool != MT_POOL_SCORE)
        mt_failure_set(why, 400, "unsupported_value", "model",
                       "the model \"%s\" does not score documents: ask for a cross-encoder, which the server is given "
                       "as --embedding-model",
                       t->name);
    else if (!scores && t->pool == MT_POOL_SCORE)
        mt_failure_set(why, 400, "unsupported_value", "model",
                       "the model \"%s\" scores documents and makes no embeddings: use /v1/rerank", t->name);
    else if (t->unfit.code != MT_OK)
        mt_failure_from(why, &t->unfit, "model");
    else
        return t;
    return NULL;
}

static bool encode(const mt_call *call, const mt_target *t, const mt_ask *ask, mt_chat_text text, bool special,
                   mt_ids *ids, mt_failure *why)
{
    const mt_encode_options options = {
        .add_special = special, .stop = &call->stop, .most = MT_LIMIT_COUNTED * t->context};
    mt_error err;

    if (!t->tokenizer)
        return mt_failure_set(why, 400, "no_tokenizer", "input", "the model \"%s\" has no tokenizer: send token ids",
                              t->name);
    if (mt_tokenizer_encode(t->tokenizer, text.data, text.len, &options, ids, &err))
        return true;
    if (err.code == MT_E_TOO_LONG)
        return mt_failure_set(why, 400, "context_length_exceeded", field_of(ask),
                              "this model's maximum context length is %zu tokens, and a text of \"%s\" has more "
                              "than %zu: shorten it",
                              t->context, field_of(ask), options.most);
    return mt_failure_from(why, &err, NULL);
}

/* The query as it would stand alone, and behind its end the document and another end. */
static bool encode_pair(const mt_call *call, const mt_target *t, const mt_ask *ask, mt_chat_text document, mt_ids *ids,
                        size_t *second, mt_failure *why)
{
    uint32_t end;

    if (!encode(call, t, ask, ask->query, true, ids, why))
        return false;
    if (ids->count == 0)
        return mt_failure_set(why, 400, "invalid_value", "query", "\"query\" has no tokens: send some text");
    end = ids->data[ids->count - 1];
    if (t->twice)
        mt_ids_add(ids, end);
    *second = ids->count;
    if (!encode(call, t, ask, document, false, ids, why))
        return false;
    mt_ids_add(ids, end);
    return true;
}

static bool make_tokens(mt_request *r, const mt_call *call, const mt_target *t, const mt_ask *ask,
                        const mt_ask_prompt *from, mt_failure *why)
{
    mt_ids ids = {0};
    uint32_t *copy;
    bool ok = true;

    if (ask->query.data)
        ok = encode_pair(call, t, ask, from->text, &ids, &r->second, why);
    else if (from->text.data)
        ok = encode(call, t, ask, from->text, ask->add_special_tokens, &ids, why);
    r->prompt_len = from->text.data ? ids.count : from->count;
    copy = mt_arena_alloc(r->arena, (r->prompt_len + 1) * sizeof(*copy));
    if (r->prompt_len && copy)
        memcpy(copy, from->text.data ? ids.data : from->ids, r->prompt_len * sizeof(*copy));
    r->prompt = copy;
    mt_ids_free(&ids);
    return ok && (copy || mt_failure_memory(why, NULL));
}

static bool check_tokens(const mt_request *r, const mt_target *t, const mt_ask *ask, size_t index, mt_failure *why)
{
    if (r->prompt_len == 0)
        return mt_failure_set(why, 400, "invalid_value", field_of(ask), "text %zu of \"%s\" has no tokens: send some",
                              index, field_of(ask));
    if (r->prompt_len > t->context)
        return mt_failure_set(why, 400, "context_length_exceeded", field_of(ask),
                              "this model's maximum context length is %zu tokens, and text %zu of \"%s\" has %zu: "
                              "shorten it",
                              t->context, index, field_of(ask), r->prompt_len);
    for (size_t i = 0; i < r->prompt_len; i++)
        if (r->prompt[i] >= t->vocab)
            return mt_failure_set(why, 400, "invalid_value", field_of(ask),
                                  "\"%s\" has token %u, and the model's last is %zu: send ids of this model",
                                  field_of(ask), r->prompt[i], t->vocab - 1);
    return true;
}

static bool fill(mt_request *r, const mt_call *call, const mt_target *t, const mt_ask *ask, size_t index,
                 mt_failure *why)
{
    r->name = mt_arena_strdup(r->arena, call->id);
    r->pool = t->pool;
    mt_client_mark(call, ask, r);
    return make_tokens(r, call, t, ask, &ask->prompts[index], why) && check_tokens(r, t, ask, index, why);
}

static bool make_answer(mt_call *call, const mt_target *t, const mt_ask *ask, mt_request *const *requests,
                        mt_failure *why)
{
    mt_answer *a = mt_answer_new(call->dialect, ask->arena, ask, ask->prompt_count);

    if (!a)
        return mt_failure_memory(why, NULL);
    memcpy(a->id, call->id, sizeof(a->id));
    a->model = t->name;
    a->normalise = t->normalise;
    for (size_t i = 0; i < ask->prompt_count; i++)
        a->prompts[i].count = requests[i]->prompt_len;
    call->answer = a;
    return true;
}

static bool check_dimensions(const mt_target *t, const mt_ask *ask, mt_failure *why)
{
    return (size_t)ask->dimensions <= t->width ||
           mt_failure_set(why, 400, "invalid_value", "dimensions",
                          "\"dimensions\" is %lld, and this model's embeddings have %zu: send at most so many",
                          (long long)ask->dimensions, t->width);
}

bool mt_embed_prepare(mt_call *call, const mt_ask *ask, mt_failure *why)
{
    const mt_target *t = find_target(&call->server->served, ask, why);
    const size_t count = ask->prompt_count;
    mt_request **requests;
    mt_error err;
    size_t made = 0;
    bool ok = true;

    if (!t || !check_dimensions(t, ask, why))
        return false;
    requests = mt_alloc_array(count, sizeof(*requests));
    for (; ok && made < count; made++) {
        requests[made] = mt_request_new();
        ok = fill(requests[made], call, t, ask, made, why);
    }
    ok = ok && make_answer(call, t, ask, requests, why);
    call->pooler = t->pooler;
    if (ok)
        ok = mt_call_submit(call, requests, count, &err) || mt_failure_from(why, &err, NULL);
    else
        for (size_t i = 0; i < made; i++)
            mt_request_free(requests[i]);
    mt_free(requests);
    return ok;
}
