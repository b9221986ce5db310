/* Chooses tokens, as src/sample defines it. The GPU finds the candidates: where the best logit of a row decides (greedy
   choices), only this is read, and the next step can begin with it before the host knows it. Where the best
   MT_CUDA_SHORT logits decide (top_k), only these are read, and put into a row that is -inf elsewhere. Other rows, and
   those with too many equal logits, are read completely.

   Two choices may be under way: that of the step that runs, and that of the step that is enqueued behind it. On the GPU
   they share one buffer, since everything that reads the first choice is enqueued before the second is found. The host
   has a buffer for each. */
#include <assert.h>
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
    c->best = mt_cuda_memory(set, c->rows * sizeof(mt_best));
    for (size_t i = 0; i < MT_COUNT(c->read); i++) {
        c->read[i].lists = mt_cuda_pinned(set, c->rows * MT_CUDA_SHORT_WORDS * sizeof(uint32_t));
        c->read[i].best = mt_cuda_pinned(set, c->rows * sizeof(mt_best));
        c->read[i].come = mt_cuda_event(set);
    }
    for (size_t i = 0; i < threads * vocab; i++)
        c->sparse[i] = -INFINITY;
    return c;
}

/* ---- what is found on the GPU ---- */

typedef enum kind { BEST, LIST, WHOLE } kind;

/* What decides. */
static kind kind_of(const mt_chain *chain)
{
    const mt_sample_settings *s = chain->settings;
    const mt_sample_row row = {.settings = s, .counts = chain->counts, .index = chain->index};
    if (chain->first + chain->guessed >= CHOOSE_ROWS)
        return WHOLE;
    if (mt_chain_greedy(chain))
        return BEST;
    const bool plain = !chain->constrained && s->logprobs < 0 && !mt_steer_needed(&row);
    return plain && s->top_k > 0 && s->top_k <= MT_CUDA_SHORT ? LIST : WHOLE;
}

bool mt_cuda_chooses(const mt_device *dev, const mt_chain *chain)
{
    (void)dev;
    return kind_of(chain) == BEST;
}

/* Rows up to the last that a choice of this kind needs. */
static size_t rows_for(kind k, mt_chain *const *chains, size_t count)
{
    size_t rows = 0;
    for (size_t i = 0; i < count; i++)
        if (kind_of(chains[i]) == k && chains[i]->first + chains[i]->guessed >= rows)
            rows = chains[i]->first + chains[i]->guessed + 1;
    return rows;
}

void mt_cuda_step_choose(mt_device *dev, mt_chooser *c, const mt_tensor *logits, mt_chain *const *chains, size_t count)
{
    const size_t turn = c->begun++ % MT_COUNT(c->read), best = rows_for(BEST, chains, count),
                 lists = rows_for(LIST, chains, count);
    const mt_cuda_choice choice = {.x = logits->m, .out = c->best, .vocab = (uint32_t)c->vocab};
    const mt_cuda_short shortest = {.x = logits->m, .out = c->lists, .vocab = (uint32_t)c->vocab};
    const size_t blocks = mt_cuda_up((c->vocab + 255) / 256, 4) + 4; /* some are read beyond the last */
    assert(c->begun - c->ended <= MT_COUNT(c->read));
    mt_cuda_launch(dev, MT_K_best, best, 1, 1, 1024, 0, &choice);
    mt_cuda_launch(dev, MT_K_shortlist, lists, 1, 1, 1024, blocks * sizeof(float), &shortest);
    if (best)
        mt_cuda_do(dev, "hand over tokens", to_host, c->read[turn].best, c->best, best * sizeof(mt_best),
                   mt_cuda_stream(dev));
    if (lists)
        mt_cuda_do(dev, "hand over candidates", to_host, c->read[turn].lists, c->lists,
                   lists * MT_CUDA_SHORT_WORDS * sizeof(uint32_t), mt_cuda_stream(dev));
    mt_cuda_do(dev, "hand over tokens", event_record, c->read[turn].come, mt_cuda_stream(dev));
}

/* ---- what the host makes of it ---- */

typedef struct choosing {
    const mt_chooser *c;
    const mt_kernels *k;
    mt_chain *const *chains;
    const uint32_t *lists;
    const size_t *first; /* first row of each chain in c->logits */
} choosing;

/* A chain whose rows were read as lists of their best logits. */
typedef struct listed {
    const uint32_t *list, *filled; /* the list of its first row; the list whose logits are in `row` now */
    float *row;
} listed;

static void empty(const listed *l)
{
    for (uint32_t i = 0; l->filled && i < l->filled[0]; i++)
        l->row[l->filled[2 + 2 * i]] = -INFINITY;
}

static const float *fill(void *ctx, size_t ahead)
{
    listed *l = ctx;
    const uint32_t *list = l->list + ahead * MT_CUDA_SHORT_WORDS;
    empty(l);
    for (uint32_t i = 0; i < list[0]; i++)
        l->row[list[2 + 2 * i]] = mt_f32_from_bits(list[3 + 2 * i]);
    l->filled = list;
    return l->row;
}

/* Whether all of its rows have lists that can be trusted. */
static bool is_listed(const uint32_t *lists, const mt_chain *chain)
{
    if (kind_of(chain) != LIST)
        return false;
    for (size_t i = 0; i <= chain->guessed; i++)
        if (lists[(chain->first + i) * MT_CUDA_SHORT_WORDS] > MT_CUDA_SHORT_MOST)
            return false;
    return true;
}

static void choose_listed(void *ctx, size_t item, size_t worker)
{
    const choosing *op = ctx;
    const mt_chooser *c = op->c;
    mt_chain *chain = op->chains[item];
    if (!is_listed(op->lists, chain))
        return;
    listed l = {.list = op->lists + chain->first * MT_CUDA_SHORT_WORDS, .row = c->sparse + worker * c->vocab};
    mt_chain_choose_from(chain, op->k, fill, &l, c->vocab, c->scratch + worker * c->scratch_bytes);
    empty(&l);
}

static void choose_whole(void *ctx, size_t item, size_t worker)
{
    const choosing *op = ctx;
    mt_chain_choose(op->chains[item], op->k, op->c->logits + op->first[item] * op->c->vocab, op->c->vocab, op->c->vocab,
                    op->c->scratch + worker * op->c->scratch_bytes);
}

/* Chooses for the chains whose rows have to be read completely, some rows at a time. */
static void choose_rest(mt_device *dev, choosing op, const mt_tensor *logits, size_t count)
{
    const mt_chooser *c = op.c;
    mt_chain *const *chains = op.chains;
    mt_chain *whole[CHOOSE_ROWS];
    size_t first[CHOOSE_ROWS];
    op.chains = whole;
    op.first = first;
    for (size_t done = 0; done < count;) {
        size_t some = 0, rows = 0;
        for (; done < count && rows + 1 + chains[done]->guessed <= c->rows; done++) {
            const mt_chain *chain = chains[done];
            if (kind_of(chain) == BEST || is_listed(op.lists, chain))
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

void mt_cuda_step_chosen(mt_device *dev, mt_chooser *c, const mt_tensor *logits, mt_chain *const *chains, size_t count)
{
    const size_t turn = c->ended++ % MT_COUNT(c->read);
    const choosing op = {.c = c, .k = mt_host_kernels(dev->head.host), .chains = chains, .lists = c->read[turn].lists};
    bool any = false;
    mt_cuda_do(dev, "compute", event_wait, c->read[turn].come);
    if (dev->failed)
        return;
    if (c->begun == c->ended) /* no step was begun ahead */
        mt_cuda_idle(dev);
    for (size_t i = 0; i < count; i++) {
        const kind k = kind_of(chains[i]);
        any = any || k == LIST;
        if (k == BEST)
            mt_chain_choose_best(chains[i], c->read[turn].best + chains[i]->first);
    }
    if (any)
        mt_host_run(dev->head.host, choose_listed, (void *)(uintptr_t)&op, count);
    choose_rest(dev, op, logits, count);
}
