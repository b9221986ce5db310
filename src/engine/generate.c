/* Owns one model on one device and the pages of its sequences; driven by the device's thread.

   Every step takes up to `chunk` prompt tokens, or one generated token, of each live sequence. The batch's arrays are
   sized once, so a step allocates nothing. */
#include "engine/generate.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "cache/pages.h"

typedef struct sequence {
    const mt_generation *request;
    mt_seq seq;
    size_t done; /* positions whose keys are in the cache */
    size_t generated;
    uint32_t last; /* the token to feed next, once the prompt is done */
} sequence;

struct mt_generator {
    mt_device *dev;
    const mt_model_spec *spec;
    mt_generator_params params;
    mt_model *model;
    mt_pages pages;
    sequence *sequences;
    /* the step's batch */
    uint32_t *tokens, *positions, *wanted;
    mt_span *spans;
    sequence **owners; /* of wanted rows */
};

static size_t pages_of(const mt_generator_params *p)
{
    return p->sequences * ((p->positions + MT_PAGE_TOKENS - 1) / MT_PAGE_TOKENS);
}

mt_generator *mt_generator_new(mt_device *dev, const mt_model_spec *spec, const mt_model_weights *weights,
                               const mt_generator_params *params, mt_error *err)
{
    const size_t rows = params->sequences * params->chunk;
    const mt_model_params model_params = {.rows = rows, .logits = params->sequences, .pages = pages_of(params)};
    mt_generator *g = mt_alloc(sizeof *g);
    g->dev = dev;
    g->spec = spec;
    g->params = *params;
    g->model = mt_model_new(dev, spec, weights, &model_params, err);
    if (!g->model) {
        mt_generator_free(g);
        return NULL;
    }
    mt_pages_init(&g->pages, model_params.pages);
    g->sequences = mt_alloc(params->sequences * sizeof *g->sequences);
    g->tokens = mt_alloc(rows * sizeof *g->tokens);
    g->positions = mt_alloc(rows * sizeof *g->positions);
    g->wanted = mt_alloc(params->sequences * sizeof *g->wanted);
    g->spans = mt_alloc(params->sequences * sizeof *g->spans);
    g->owners = mt_alloc(params->sequences * sizeof(sequence *));
    return g;
}

void mt_generator_free(mt_generator *g)
{
    if (!g)
        return;
    mt_model_free(g->model);
    mt_pages_free(&g->pages);
    mt_free(g->sequences);
    mt_free(g->tokens);
    mt_free(g->positions);
    mt_free(g->wanted);
    mt_free(g->spans);
    mt_free(g->owners);
    mt_free(g);
}

static bool check(const mt_generator *g, const mt_generation *r, mt_error *err)
{
    if (r->prompt_len == 0)
        return mt_fail(err, MT_E_INVALID, "the prompt is empty; give at least one token");
    if (r->max_tokens > g->params.positions || r->prompt_len > g->params.positions - r->max_tokens)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "%zu prompt tokens and %zu to generate exceed the context of %zu; shorten one of them",
                       r->prompt_len, r->max_tokens, g->params.positions);
    for (size_t i = 0; i < r->prompt_len; i++)
        if (r->prompt[i] >= g->spec->vocab)
            return mt_fail(err, MT_E_INVALID, "token %u is outside the vocabulary of %u", r->prompt[i], g->spec->vocab);
    return true;
}

static bool finished(const sequence *s)
{
    return s->generated >= s->request->max_tokens;
}

/* Adds a sequence's next rows to the batch; its last row is wanted once the prompt is complete. */
static void add_span(mt_generator *g, sequence *s, mt_batch *batch, size_t *wanted)
{
    const mt_generation *r = s->request;
    const bool prefill = s->done < r->prompt_len;
    size_t rows = prefill ? r->prompt_len - s->done : 1;
    if (rows > g->params.chunk)
        rows = g->params.chunk;
    g->spans[batch->spans++] = (mt_span){
        .row = (uint32_t)batch->rows, .rows = (uint32_t)rows, .position = (uint32_t)s->done, .pages = s->seq.page};
    for (size_t i = 0; i < rows; i++) {
        g->tokens[batch->rows + i] = prefill ? r->prompt[s->done + i] : s->last;
        g->positions[batch->rows + i] = (uint32_t)(s->done + i);
    }
    batch->rows += rows;
    s->done += rows;
    if (s->done >= r->prompt_len) {
        g->owners[*wanted] = s;
        g->wanted[(*wanted)++] = (uint32_t)(batch->rows - 1);
    }
}

static bool emit(mt_generator *g, sequence *s, const mt_tensor *logits, size_t row, mt_error *err)
{
    const mt_generation *r = s->request;
    mt_logprob tops[MT_LIMIT_TOP_LOGPROBS];
    const float lse = mt_op_log_sum_exp(g->dev, logits, row);
    if (!isfinite(lse))
        return mt_fail(err, MT_E_INTERNAL,
                       "the model's answer is not finite after %zu tokens; the checkpoint may be damaged", s->done);
    const size_t count =
        mt_logprobs_top(mt_tensor_read(g->dev, logits, row), g->spec->vocab, lse, r->top ? r->top : 1, tops);
    s->last = tops[0].id;
    s->generated++;
    r->token(r->ctx, &tops[0], tops, r->top ? count : 0);
    return true;
}

/* True while something is left to do. */
static bool step(mt_generator *g, size_t count, bool *ok, mt_error *err)
{
    mt_batch batch = {.tokens = g->tokens, .positions = g->positions, .span = g->spans};
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++) {
        sequence *s = &g->sequences[i];
        if (!finished(s))
            add_span(g, s, &batch, &wanted);
    }
    if (!batch.rows)
        return false;
    const mt_tensor *logits = mt_model_step(g->model, &batch, g->wanted, wanted);
    for (size_t i = 0; *ok && i < wanted; i++)
        *ok = emit(g, g->owners[i], logits, i, err);
    return *ok;
}

/* The pool holds `sequences` times `positions`, so a request that passed the check has its pages. */
static void admit(mt_generator *g, sequence *s, const mt_generation *r)
{
    *s = (sequence){.request = r};
    mt_seq_init(&s->seq, g->params.positions, MT_PAGE_TOKENS);
    const bool grown = mt_seq_grow(&s->seq, &g->pages, r->prompt_len + r->max_tokens);
    assert(grown);
    (void)grown;
}

bool mt_generator_run(mt_generator *g, const mt_generation *requests, size_t count, mt_error *err)
{
    if (count > g->params.sequences)
        return mt_fail(err, MT_E_TOO_LARGE, "%zu sequences side by side; at most %zu fit", count, g->params.sequences);
    for (size_t i = 0; i < count; i++)
        if (!check(g, &requests[i], err))
            return false;
    for (size_t i = 0; i < count; i++)
        admit(g, &g->sequences[i], &requests[i]);
    bool ok = true;
    while (ok && step(g, count, &ok, err))
        continue;
    for (size_t i = 0; i < count; i++)
        mt_seq_free(&g->sequences[i].seq, &g->pages);
    return ok;
}
