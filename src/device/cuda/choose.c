/* Chooses tokens: the host does, as src/sample is the only definition. The GPU finds the candidates: where the best
   MT_CUDA_SHORT logits decide (greedy choices, top_k), only these are read, and put into a row that is -inf elsewhere.
   Other rows, and those with too many equal logits, are read completely. */
#include <math.h>

#include "device/cuda/cuda.h"
#include "kernels/convert.h"
#include "sample/steer.h"

#define CHOOSE_ROWS 256 /* most rows whose logits are on the host at a time */

mt_chooser *mt_cuda_chooser_new(mt_set *set, size_t vocab)
{
    mt_chooser *c = mt_cuda_host(set, sizeof(*c));
    const size_t threads = mt_host_threads(set->head.dev->head.host);
    c->vocab = vocab;
    c->rows = CHOOSE_ROWS;
    c->scratch_bytes = mt_cuda_up(mt_sample_scratch_bytes(vocab), 64);
    c->scratch = mt_cuda_host(set, c->scratch_bytes * threads);
    c->sparse = mt_cuda_host(set, threads * vocab * sizeof(*c->sparse));
    c->logits = mt_cuda_pinned(set, c->rows * vocab * sizeof(*c->logits));
    c->lists = mt_cuda_memory(set, c->rows * MT_CUDA_SHORT_WORDS * sizeof(uint32_t));
    c->read = mt_cuda_pinned(set, c->rows * MT_CUDA_SHORT_WORDS * sizeof(uint32_t));
    for (size_t i = 0; i < threads * vocab; i++)
        c->sparse[i] = -INFINITY;
    return c;
}

/* Whether the best logits alone decide. */
static bool is_short(const mt_chooser *c, const mt_chain *chain)
{
    const mt_sample_settings *s = chain->settings;
    const mt_sample_row row = {.settings = s, .counts = chain->counts, .index = chain->index};
    return chain->first < c->rows && chain->guessed == 0 && !chain->constrained && s->logprobs < 0 &&
           !mt_steer_needed(&row) && (mt_sample_settings_greedy(s) || (s->top_k > 0 && s->top_k <= MT_CUDA_SHORT));
}

static const uint32_t *list_of(const mt_chooser *c, const mt_chain *chain)
{
    return c->read + chain->first * MT_CUDA_SHORT_WORDS;
}

typedef struct choosing {
    const mt_chooser *c;
    const mt_kernels *k;
    mt_chain *const *chains;
    const size_t *first; /* first row of each chain in c->logits */
} choosing;

/* Chooses the best of a list, the first of equals: the same as from a row that has only these. */
static void choose_best(mt_chain *chain, const mt_kernels *k, const uint32_t *list, size_t count, void *scratch)
{
    uint32_t token = list[0];
    float best = mt_f32_from_bits(list[1]);
    for (size_t i = 1; i < count; i++) {
        const float logit = mt_f32_from_bits(list[2 * i + 1]);
        if (logit > best || isnan(logit) || (logit == best && list[2 * i] < token)) {
            token = list[2 * i];
            best = logit;
        }
    }
    mt_chain_choose(chain, k, &best, 1, 1, scratch);
    chain->sampled[0].chosen.id = token;
}

static void choose_short(void *ctx, size_t item, size_t worker)
{
    const choosing *op = ctx;
    const mt_chooser *c = op->c;
    mt_chain *chain = op->chains[item];
    if (!is_short(c, chain) || list_of(c, chain)[0] > MT_CUDA_SHORT_MOST)
        return;
    const uint32_t *list = list_of(c, chain);
    if (mt_sample_settings_greedy(chain->settings) && list[0] > 0) {
        choose_best(chain, op->k, list + 2, list[0], c->scratch + worker * c->scratch_bytes);
        return;
    }
    float *row = c->sparse + worker * c->vocab;
    for (uint32_t i = 0; i < list[0]; i++)
        row[list[2 + 2 * i]] = mt_f32_from_bits(list[3 + 2 * i]);
    mt_chain_choose(chain, op->k, row, c->vocab, c->vocab, c->scratch + worker * c->scratch_bytes);
    for (uint32_t i = 0; i < list[0]; i++)
        row[list[2 + 2 * i]] = -INFINITY;
}

static void choose_whole(void *ctx, size_t item, size_t worker)
{
    const choosing *op = ctx;
    mt_chain_choose(op->chains[item], op->k, op->c->logits + op->first[item] * op->c->vocab, op->c->vocab, op->c->vocab,
                    op->c->scratch + worker * op->c->scratch_bytes);
}

/* Finds the best logits of all rows up to the last that needs only these; returns the number of rows. */
static size_t find_best(mt_device *dev, mt_chooser *c, const mt_tensor *logits, mt_chain *const *chains, size_t count)
{
    size_t rows = 0;
    for (size_t i = 0; i < count; i++)
        if (is_short(c, chains[i]) && chains[i]->first >= rows)
            rows = chains[i]->first + 1;
    mt_cuda_short p = {.x = logits->m, .out = c->lists, .vocab = (uint32_t)c->vocab};
    if (rows) {
        const size_t blocks = mt_cuda_up((c->vocab + 255) / 256, 4) + 4; /* some are read beyond the last */
        mt_cuda_launch(dev, MT_K_shortlist, rows, 1, 1, 1024, blocks * sizeof(float), &p);
        mt_cuda_do(dev, "hand over candidates", to_host, c->read, c->lists,
                   rows * MT_CUDA_SHORT_WORDS * sizeof(uint32_t), mt_cuda_stream(dev));
        mt_cuda_device_wait(dev);
    }
    return rows;
}

/* Greedy choices are too fast to wake other threads for. */
static void choose_all_short(mt_device *dev, choosing *op, size_t count)
{
    bool greedy = true;
    for (size_t i = 0; i < count; i++)
        greedy = greedy && (!is_short(op->c, op->chains[i]) || mt_sample_settings_greedy(op->chains[i]->settings));
    for (size_t i = 0; greedy && i < count; i++)
        choose_short(op, i, 0);
    if (!greedy)
        mt_host_run(dev->head.host, choose_short, op, count);
}

void mt_cuda_step_choose(mt_device *dev, mt_chooser *c, const mt_tensor *logits, mt_chain *const *chains, size_t count)
{
    mt_chain *whole[CHOOSE_ROWS];
    size_t first[CHOOSE_ROWS];
    choosing op = {.c = c, .k = mt_host_kernels(dev->head.host), .chains = chains};
    const bool some_short = find_best(dev, c, logits, chains, count) > 0;
    if (some_short && !dev->failed)
        choose_all_short(dev, &op, count);
    op.chains = whole;
    op.first = first;
    for (size_t done = 0; done < count;) {
        size_t some = 0, rows = 0;
        for (; done < count && rows + 1 + chains[done]->guessed <= c->rows; done++) {
            const mt_chain *chain = chains[done];
            if (is_short(c, chain) && list_of(c, chain)[0] <= MT_CUDA_SHORT_MOST)
                continue;
            whole[some] = chains[done];
            first[some++] = rows;
            for (size_t r = 0; r <= chain->guessed; r++, rows++)
                mt_cuda_do(dev, "hand over logits", to_host, c->logits + rows * c->vocab,
                           logits->m.data + (chain->first + r) * logits->m.stride * sizeof(float),
                           c->vocab * sizeof(float), mt_cuda_stream(dev));
        }
        if (some == 0)
            continue;
        mt_cuda_device_wait(dev);
        mt_host_run(dev->head.host, choose_whole, &op, some);
    }
}
