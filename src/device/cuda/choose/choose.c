/* Chooses tokens, as src/sample defines it. Where every row of a step is greedy, the GPU finds the best logits. Else it
   chooses by orders (mt_cuda_order), one for each row, which the host writes to memory of its own that the GPU reads;
   guesses are taken to be right, so that no row waits for another. Either way the next step can begin with the tokens
   before the host knows them, unless what it is chosen by depends on them. What the GPU does not know (biases,
   typical_p, more than there is room for) is chosen on the host, from logits that are read completely.

   Two choices may be under way: that of the step that runs, and that of the step that is enqueued behind it. On the GPU
   they share one buffer, since everything that reads the first choice is enqueued before the second is found. The host
   has a buffer for each. */
#include <assert.h>

#include "device/cuda/cuda.h"
#include "sample/chain.h"
#include "sample/limits.h"
#include "sample/philox.h"
#include "sample/steer.h"

#define CHOOSE_ROWS 256 /* most rows that are chosen from on the GPU */
#define WHOLE_ROWS 64   /* most rows whose logits are on the host at a time */
#define SEEN (1u << 18) /* most penalised tokens of all rows */

_Static_assert(WHOLE_ROWS > MT_LIMIT_DRAFT, "a chain's rows are chosen from together");

_Static_assert(sizeof(mt_tops) == MT_CUDA_TOP_WORDS * sizeof(uint32_t), "as kernels write it");

static size_t mask_words(const mt_chooser *c)
{
    return (c->vocab + 31) / 32;
}

mt_chooser *mt_cuda_chooser_new(mt_set *set, size_t vocab)
{
    mt_chooser *c = mt_cuda_host(set, sizeof(*c));
    const size_t threads = mt_host_threads(set->head.dev->head.host);
    c->vocab = vocab;
    set->head.dev->vocab = MT_MAX(set->head.dev->vocab, vocab);
    c->scratch_bytes = mt_cuda_up(mt_sample_scratch_bytes(vocab), 64);
    c->scratch = mt_cuda_host(set, c->scratch_bytes * threads);
    c->logits = mt_cuda_pinned(set, WHOLE_ROWS * vocab * sizeof(*c->logits));
    c->best = mt_cuda_memory(set, CHOOSE_ROWS * sizeof(mt_best));
    c->tops = mt_cuda_memory(set, CHOOSE_ROWS * sizeof(mt_tops));
    c->penalised = mt_cuda_memory(set, SEEN * sizeof(float));
    for (size_t i = 0; i < MT_COUNT(c->turn); i++) {
        c->turn[i].orders = mt_cuda_pinned(set, CHOOSE_ROWS * sizeof(mt_cuda_order));
        c->turn[i].masks = mt_cuda_pinned(set, CHOOSE_ROWS * mask_words(c) * sizeof(uint32_t));
        c->turn[i].seen = mt_cuda_pinned(set, SEEN * sizeof(mt_cuda_seen));
        c->turn[i].best = mt_cuda_pinned(set, CHOOSE_ROWS * sizeof(mt_best));
        c->turn[i].tops = mt_cuda_pinned(set, CHOOSE_ROWS * sizeof(mt_tops));
        c->turn[i].come = mt_cuda_event(set);
    }
    return c;
}

/* ---- orders ---- */

/* Whether the GPU knows all that a chain is chosen by. */
static bool known(const mt_device *dev, const mt_chain *chain)
{
    const mt_sample_settings *s = chain->settings;
    if (chain->first + chain->guessed >= CHOOSE_ROWS)
        return false;
    return mt_chain_greedy(chain) || (dev->vocab <= MT_CUDA_CHOOSE_VOCAB && s->bias_count == 0 &&
                                      s->logprob_count == 0 && (s->typical_p >= 1 || mt_sample_settings_greedy(s)));
}

bool mt_cuda_chooses(const mt_device *dev, const mt_chain *chain)
{
    return known(dev, chain) && !chain->constrained && !chain->counts && chain->settings->bad_count == 0;
}

/* Orders of a step, as they are written. */
typedef struct writing {
    mt_chooser *c;
    const mt_kernels *k;
    size_t turn, rows, masks, seen; /* rows: up to the last that has one; masks and seen: how many are used */
    bool tops;
} writing;

static bool write_seen(writing *w, const mt_counts *counts, mt_cuda_order *order)
{
    size_t n;
    const mt_count *seen = mt_counts_seen(counts, &n);
    order->seen_first = (uint32_t)w->seen;
    for (size_t i = 0; i < n; i++) {
        if (seen[i].places == 0)
            continue;
        if (w->seen == SEEN)
            return false;
        w->c->turn[w->turn].seen[w->seen++] = (mt_cuda_seen){.id = seen[i].id, .count = seen[i].count};
    }
    order->seen_count = (uint32_t)(w->seen - order->seen_first);
    return true;
}

/* The order of row `ahead` of a chain. False where there is no room for all of it. */
static bool write_order(writing *w, const mt_chain *chain, size_t ahead)
{
    const mt_sample_settings *s = chain->settings;
    const bool greedy = mt_sample_settings_greedy(s);
    uint32_t tail[MT_LIMIT_BAD_TOKENS];
    mt_sample_row row = mt_chain_row(chain, ahead, tail);
    mt_cuda_order order = {.random = mt_philox_draw(s->seed, row.choice, row.index, MT_PURPOSE_TOKEN),
                           .inverse = greedy ? 0 : 1.0f / s->temperature,
                           .least = -INFINITY,
                           .top_p = s->top_p,
                           .top_k = s->top_k > 0 ? (uint32_t)s->top_k : 0,
                           .repetition = s->repetition_penalty,
                           .frequency = s->frequency_penalty,
                           .presence = s->presence_penalty,
                           .logprobs = s->logprobs,
                           .wanted = 1};
    row.vocab = w->c->vocab;
    if (s->min_p > 0)
        w->k->log(&order.least, &s->min_p, 1);
    if (mt_steer_mask(w->c->turn[w->turn].masks + w->masks * mask_words(w->c), &row))
        order.mask = (uint32_t)++w->masks;
    if (chain->counts && !write_seen(w, chain->counts, &order))
        return false;
    w->c->turn[w->turn].orders[chain->first + ahead] = order;
    return true;
}

/* Orders of all rows of a chain; none where there is no room. */
static void write_orders(writing *w, const mt_chain *chain)
{
    const size_t rows =
        chain->constrained && chain->allowed_count <= chain->guessed ? chain->allowed_count : chain->guessed + 1;
    const writing before = *w;
    bool fit = true;
    size_t pushed = 0;
    for (size_t i = 0; fit && i < rows; i++) {
        if (i > 0 && chain->counts) {
            mt_counts_push(chain->counts, chain->guess[i - 1]);
            pushed++;
        }
        fit = write_order(w, chain, i);
    }
    if (pushed)
        mt_counts_roll_back(chain->counts, pushed);
    if (!fit) {
        *w = before;
        w->c->turn[w->turn].orders[chain->first].wanted = 0;
        return;
    }
    w->tops = w->tops || chain->settings->logprobs >= 0;
}

/* Rows up to the last of these chains that the GPU chooses for. */
static size_t rows_of(const mt_device *dev, mt_chain *const *chains, size_t count)
{
    size_t rows = 0;
    for (size_t i = 0; i < count; i++)
        if (known(dev, chains[i]) && chains[i]->first + chains[i]->guessed >= rows)
            rows = chains[i]->first + chains[i]->guessed + 1;
    return rows;
}

static void choose_by_orders(mt_device *dev, writing *w, const mt_tensor *logits, mt_chain *const *chains, size_t count)
{
    mt_chooser *c = w->c;
    for (size_t i = 0; i < w->rows; i++)
        c->turn[w->turn].orders[i].wanted = 0;
    for (size_t i = 0; i < count; i++)
        if (known(dev, chains[i]))
            write_orders(w, chains[i]);
    const mt_cuda_choose choose = {.x = logits->m,
                                   .out = c->best,
                                   .tops = c->tops,
                                   .orders = (uintptr_t)c->turn[w->turn].orders,
                                   .masks = (uintptr_t)c->turn[w->turn].masks,
                                   .seen = (uintptr_t)c->turn[w->turn].seen,
                                   .penalised = c->penalised,
                                   .vocab = (uint32_t)c->vocab};
    mt_cuda_launch(dev, MT_K_choose, w->rows, 1, 1, 1024, mask_words(c) * sizeof(uint32_t), &choose);
}

static bool all_greedy(const mt_device *dev, mt_chain *const *chains, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (known(dev, chains[i]) && !mt_chain_greedy(chains[i]))
            return false;
    return true;
}

void mt_cuda_step_choose(mt_device *dev, mt_chooser *c, const mt_tensor *logits, mt_chain *const *chains, size_t count)
{
    const size_t turn = c->begun++ % MT_COUNT(c->turn);
    writing w = {
        .c = c, .k = mt_host_kernels(dev->head.host), .turn = turn, .rows = rows_of(dev, chains, count), .masks = 0};
    assert(c->begun - c->ended <= MT_COUNT(c->turn));
    c->turn[turn].plain = all_greedy(dev, chains, count);
    if (c->turn[turn].plain) {
        const mt_cuda_choice choice = {.x = logits->m, .out = c->best, .vocab = (uint32_t)c->vocab};
        mt_cuda_launch(dev, MT_K_best, w.rows, 1, 1, 1024, 0, &choice);
    } else {
        choose_by_orders(dev, &w, logits, chains, count);
    }
    if (w.rows)
        mt_cuda_do(dev, "hand over tokens", to_host, c->turn[turn].best, c->best, w.rows * sizeof(mt_best),
                   mt_cuda_stream(dev));
    if (w.tops)
        mt_cuda_do(dev, "hand over logprobs", to_host, c->turn[turn].tops, c->tops, w.rows * sizeof(mt_tops),
                   mt_cuda_stream(dev));
    mt_cuda_do(dev, "hand over tokens", event_record, c->turn[turn].come, mt_cuda_stream(dev));
}

/* ---- what the host makes of it ---- */

typedef struct choosing {
    const mt_chooser *c;
    const mt_kernels *k;
    mt_chain *const *chains;
    const size_t *first; /* first row of each chain in c->logits */
} choosing;

static void choose_whole(void *ctx, size_t item, size_t worker)
{
    const choosing *op = ctx;
    mt_chain_choose(op->chains[item], op->k, op->c->logits + op->first[item] * op->c->vocab, op->c->vocab, op->c->vocab,
                    op->c->scratch + worker * op->c->scratch_bytes);
}

/* Whether the GPU has chosen for a chain. */
static bool is_chosen(const mt_device *dev, const mt_chooser *c, size_t turn, const mt_chain *chain)
{
    return known(dev, chain) && (c->turn[turn].plain || c->turn[turn].orders[chain->first].wanted);
}

/* Chooses for the chains whose rows have to be read completely, some rows at a time. */
static void choose_rest(mt_device *dev, const mt_chooser *c, size_t turn, const mt_tensor *logits,
                        mt_chain *const *chains, size_t count)
{
    mt_chain *whole[WHOLE_ROWS];
    size_t first[WHOLE_ROWS];
    choosing op = {.c = c, .k = mt_host_kernels(dev->head.host), .chains = whole, .first = first};
    for (size_t done = 0; done < count;) {
        size_t some = 0, rows = 0;
        for (; done < count && rows + 1 + chains[done]->guessed <= WHOLE_ROWS; done++) {
            const mt_chain *chain = chains[done];
            if (is_chosen(dev, c, turn, chain))
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
    const size_t turn = c->ended++ % MT_COUNT(c->turn);
    mt_cuda_do(dev, "compute", event_wait, c->turn[turn].come);
    if (dev->failed)
        return;
    if (c->begun == c->ended) /* no step was begun ahead */
        mt_cuda_idle(dev);
    for (size_t i = 0; i < count; i++)
        if (is_chosen(dev, c, turn, chains[i]))
            mt_chain_take(chains[i], c->turn[turn].best + chains[i]->first,
                          chains[i]->settings->logprobs >= 0 ? c->turn[turn].tops + chains[i]->first : NULL);
    choose_rest(dev, c, turn, logits, chains, count);
}
