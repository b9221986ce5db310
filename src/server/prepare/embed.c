/* Prepares calls for vectors: embeddings and scores of documents. Called by prepare.c on preparation threads. */
#include <string.h>

#include "base/alloc.h"
#include "server/calls/client.h"
#include "server/inside.h"
#include "server/prepare/embed_tokens.h"

/* Whether it can do what is asked, apart from comparing embeddings. */
static bool can(const mt_target *t, const mt_ask *ask)
{
    const bool classes = t->pool == MT_POOL_CLASSES;

    if (ask->scores)
        return classes && t->width == 1;
    return ask->vectors == MT_ASK_ANY || classes == (ask->vectors == MT_ASK_CLASSES);
}

/* The encoder or model to use. Where the call names none, the first that can do what is asked; where none scores, one
   that makes embeddings, which are compared then. */
static const mt_target *pick(const mt_served *served, const mt_ask *ask)
{
    const char *model = ask->model;
    const bool any = !model || strcmp(model, "default") == 0;

    for (size_t i = 0; any && i < served->target_count; i++)
        if (can(&served->targets[i], ask))
            return &served->targets[i];
    for (size_t i = 0; any && ask->scores && i < served->target_count; i++)
        if (served->targets[i].embeds)
            return &served->targets[i];
    for (size_t i = 0; model && i < served->target_count; i++)
        if (mt_served_called(model, served->targets[i].name))
            return &served->targets[i];
    return &served->targets[served->target_count - 1]; /* the model itself */
}

/* Says why a model with a classifier cannot do what is asked. */
static void refuse_classifier(const mt_target *t, const mt_ask *ask, mt_failure *why)
{
    if (ask->scores)
        mt_failure_set(why, 400, "unsupported_value", "model",
                       "the model \"%s\" knows %zu labels and gives no scores: use /classify", t->name, t->width);
    else
        mt_failure_set(why, 400, "unsupported_value", "model",
                       t->width == 1 ? "the model \"%s\" scores documents and makes no embeddings: use /v1/rerank"
                                     : "the model \"%s\" classifies texts and makes no embeddings: use /classify",
                       t->name);
}

/* As pick; NULL with *why where it cannot do what is asked. */
static const mt_target *find_target(const mt_served *served, const mt_ask *ask, mt_failure *why)
{
    const mt_target *t = pick(served, ask);

    if (t->pool == MT_POOL_CLASSES && !can(t, ask))
        refuse_classifier(t, ask, why);
    else if (ask->vectors == MT_ASK_CLASSES && t->pool != MT_POOL_CLASSES)
        mt_failure_set(why, 400, "unsupported_value", "model",
                       "the model \"%s\" has no classifier: ask for an encoder that has one, which the server is given "
                       "as --embedding-model",
                       t->name);
    else if (ask->scores && t->pool != MT_POOL_CLASSES && !t->embeds)
        mt_failure_set(why, 400, "unsupported_value", "model",
                       "the model \"%s\" does not score documents: ask for a cross-encoder, which the server is given "
                       "as --embedding-model",
                       t->name);
    else if (t->unfit.code != MT_OK)
        mt_failure_from_files(why, &t->unfit, "model", NULL);
    else
        return t;
    return NULL;
}

/* Encodes a text, or a query and a text, as the request's prompt. */
static bool make_tokens(mt_request *r, const mt_embed_text *text, mt_failure *why)
{
    mt_ids ids = {0};
    const bool ok =
        text->prompt->query.data ? mt_embed_pair(text, &ids, &r->second, why) : mt_embed_tokens(text, &ids, why);

    r->prompt_len = ids.count;
    r->prompt = mt_arena_copy(r->arena, ids.data, ids.count * sizeof(*ids.data));
    mt_ids_free(&ids);
    return ok && (r->prompt || mt_failure_memory(why, NULL));
}

static bool check_tokens(const mt_request *r, const mt_target *t, const mt_ask *ask, size_t index, mt_failure *why)
{
    const size_t context = mt_embed_context(ask, t);

    if (r->prompt_len == 0)
        return mt_failure_set(why, 400, "invalid_value", ask->text_field, "text %zu of \"%s\" has no tokens: send some",
                              index, ask->text_field);
    if (r->prompt_len > context)
        return mt_failure_set(why, 400, "context_length_exceeded", ask->text_field,
                              "this model's maximum context length is %zu tokens, and text %zu of \"%s\" has %zu: "
                              "shorten it",
                              context, index, ask->text_field, r->prompt_len);
    for (size_t i = 0; i < r->prompt_len; i++)
        if (r->prompt[i] >= t->vocab)
            return mt_failure_value(why, ask->text_field,
                                    "has token %u, which is out of vocabulary: the model's last is %zu", r->prompt[i],
                                    t->vocab - 1);
    return true;
}

/* Fills the request for the text number `index`. */
static bool fill(mt_request *r, const mt_call *call, const mt_target *t, const mt_ask *ask, size_t index,
                 mt_failure *why)
{
    const bool query = ask->scores && t->pool != MT_POOL_CLASSES && index < ask->query_count;
    const mt_embed_text text = {.target = t,
                                .ask = ask,
                                .prompt = &ask->prompts[index],
                                .most = (size_t)(query ? ask->max_query : ask->max_document),
                                .stop = &call->stop};

    r->name = mt_arena_strdup(r->arena, call->id);
    r->pool = ask->vectors == MT_ASK_EACH ? MT_POOL_EACH : t->pool;
    r->encoder = t->number;
    mt_client_mark(call, ask, r);
    return make_tokens(r, &text, why) && check_tokens(r, t, ask, index, why);
}

/* How many numbers the vector of a token has; dense layers are for those of whole texts. */
static size_t width_of_each(const mt_target *t)
{
    return t->number ? mt_bert_width(&t->encoder.spec) : t->width;
}

/* Makes call->answer. */
static bool make_answer(mt_call *call, const mt_target *t, const mt_ask *ask, mt_request *const *requests,
                        mt_failure *why)
{
    mt_answer *a = mt_call_answer(call, ask, ask->prompt_count, t->name, why);

    if (!a)
        return false;
    a->normalise = ask->form.scaling == MT_SCALING_DEFAULT ? t->normalise : ask->form.scaling == MT_SCALING_ON;
    a->queries = ask->scores && t->pool != MT_POOL_CLASSES ? ask->query_count : 0;
    a->width = ask->vectors == MT_ASK_EACH ? width_of_each(t) : 0;
    a->labels = t->labels;
    a->apart = t->apart;
    for (size_t i = 0; i < ask->prompt_count; i++)
        a->prompts[i].count = requests[i]->prompt_len;
    return true;
}

/* Refuses calls that want vectors of more tokens than an answer may have. */
static bool check_states(const mt_target *t, const mt_ask *ask, mt_request *const *requests, mt_failure *why)
{
    size_t tokens = 0;

    for (size_t i = 0; i < ask->prompt_count; i++)
        tokens += requests[i]->prompt_len;
    return ask->vectors != MT_ASK_EACH || tokens <= MT_LIMIT_STATES / width_of_each(t) ||
           mt_failure_value(why, ask->text_field,
                            "has %zu tokens, and vectors of %zu may be asked for at once: send it in several requests",
                            tokens, MT_LIMIT_STATES / width_of_each(t));
}

static bool check_dimensions(const mt_target *t, const mt_ask *ask, mt_failure *why)
{
    if (t->pool == MT_POOL_CLASSES && ask->dimensions > 0)
        return mt_failure_unsupported(why, "dimensions", "is for vectors, and this model has labels: leave it out");
    return (size_t)ask->dimensions <= t->width ||
           mt_failure_value(why, "dimensions", "is %lld, and this model's embeddings have %zu: send at most so many",
                            (long long)ask->dimensions, t->width);
}

/* For pairs of query and text that are compared by embeddings: replaces the prompts by the queries, then the texts. */
static bool separate_pairs(mt_ask *ask, mt_failure *why)
{
    const size_t queries = ask->query_count, count = ask->prompt_count;
    mt_ask_prompt *apart = mt_arena_alloc(ask->arena, (queries + count) * sizeof(*apart));

    if (!apart)
        return mt_failure_memory(why, ask->text_field);
    for (size_t i = 0; i < queries; i++)
        apart[i] = (mt_ask_prompt){.text = ask->prompts[i].query};
    for (size_t i = 0; i < count; i++)
        apart[queries + i] = (mt_ask_prompt){.text = ask->prompts[i].text};
    ask->prompts = apart;
    ask->prompt_count = queries + count;
    return true;
}

/* Puts the model's usual prompt in front of each text. Token ids are sent as they are. */
static bool add_prompts(const mt_target *t, mt_ask *ask, mt_failure *why)
{
    const size_t len = t->prompt ? strlen(t->prompt) : 0;

    for (size_t i = 0; len && i < ask->prompt_count; i++) {
        mt_chat_text *text = &ask->prompts[i].text;
        char *whole = text->data ? mt_arena_alloc(ask->arena, len + text->len + 1) : NULL;

        if (!text->data)
            continue;
        if (!whole)
            return mt_failure_memory(why, ask->text_field);
        memcpy(whole, t->prompt, len);
        memcpy(whole + len, text->data, text->len);
        whole[len + text->len] = 0;
        *text = (mt_chat_text){.data = whole, .len = len + text->len};
    }
    return true;
}

bool mt_embed_prepare(mt_call *call, mt_ask *ask, mt_failure *why)
{
    const mt_target *t = find_target(call->served, ask, why);
    size_t count;
    mt_request **requests;
    mt_error err;
    size_t made = 0;
    bool ok = true;

    if (!t || !check_dimensions(t, ask, why) ||
        (ask->scores && t->pool != MT_POOL_CLASSES && !separate_pairs(ask, why)) ||
        (!ask->scores && !add_prompts(t, ask, why)))
        return false;
    count = ask->prompt_count;
    requests = mt_alloc_array(count, sizeof(*requests));
    for (; ok && made < count; made++) {
        requests[made] = mt_request_new();
        ok = fill(requests[made], call, t, ask, made, why);
    }
    ok = ok && check_states(t, ask, requests, why) && make_answer(call, t, ask, requests, why);
    call->encoder = t->number;
    if (ok)
        ok = mt_call_submit(call, requests, count, &err) || mt_failure_from(why, &err, NULL);
    else
        for (size_t i = 0; i < made; i++)
            mt_request_free(requests[i]);
    mt_free(requests);
    return ok;
}
