/* What kernels do here. Nearly all do nothing: what they would write stays as it is. But an answer whose numbers are
   not finite ends at once, so that kernel says that all are; and one without a token that is likelier than others has
   none, so there is one. Logits that were written are chosen from as docs/sampling.md has it. What kernels index by
   must be within bounds, which zeros are. */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/params.h"
#include "fake.h"
#include "sample/candidates.h"
#include "sample/chain.h"

/* y[i] = 1 */
static void all_finite(const mt_cuda_rows *p)
{
    for (uint32_t i = 0; i < p->m; i++) {
        const uint64_t at = p->y.data + i * p->y.stride * sizeof(float);
        if (!fake_memory_has(at, sizeof(float)))
            fake_broken("mtk_finite", "row %u lies outside of its tensor", i);
        fake_memory_written(at);
        *(float *)(uintptr_t)at = 1;
    }
}

/* Whether all that an order names is where the GPU can read it. */
static bool has_all(const mt_cuda_choose *p, const mt_cuda_order *o, uint32_t row)
{
    const size_t words = (p->vocab + 31) / 32, mask = words * sizeof(uint32_t), seen = sizeof(mt_cuda_seen);
    return fake_memory_has((uint64_t)p->out + row * sizeof(mt_best), sizeof(mt_best)) &&
           fake_memory_has((uint64_t)p->tops + row * sizeof(mt_tops), sizeof(mt_tops)) &&
           (!o->mask || fake_pinned_has((const uint8_t *)(uintptr_t)p->masks + (o->mask - 1) * mask, mask)) &&
           (!o->seen_count ||
            (fake_pinned_has((const uint8_t *)(uintptr_t)p->seen + o->seen_first * seen, o->seen_count * seen) &&
             fake_memory_has((uint64_t)p->penalised + o->seen_first * sizeof(float), o->seen_count * sizeof(float))));
}

/* Logits of a row, and what their choice needs. */
typedef struct choosing {
    mt_kernels k;
    size_t vocab;
    const float *logits; /* NULL: nothing wrote them */
    float *steered, *weights;
    void *room;
    mt_ranking ranking;
} choosing;

static choosing begin(size_t vocab)
{
    choosing c = {.vocab = vocab, .steered = calloc(vocab, sizeof(float)), .weights = calloc(vocab, sizeof(float))};
    c.room = aligned_alloc(64, (mt_ranking_room_bytes(vocab) + 63) / 64 * 64);
    mt_kernels_init(&c.k, 0);
    return c;
}

static void end(choosing *c)
{
    free(c->steered);
    free(c->weights);
    free(c->room);
}

static void look_at(choosing *c, const mt_cuda_mat *x, uint32_t row)
{
    const uint64_t at = (uint64_t)x->data + row * x->stride * sizeof(float);
    if (!fake_memory_has(at, c->vocab * sizeof(float)))
        fake_broken("mtk_choose", "row %u lies outside of the logits", row);
    c->logits = fake_memory_is_zero(at, c->vocab * sizeof(float)) ? NULL : (const float *)(uintptr_t)at;
}

/* Masks and penalties. */
static void steer(choosing *c, const mt_cuda_choose *p, const mt_cuda_order *o)
{
    memcpy(c->steered, c->logits, c->vocab * sizeof(float));
    for (size_t i = 0; o->mask && i < c->vocab; i++) {
        const uint32_t *mask = (const uint32_t *)(uintptr_t)p->masks + (o->mask - 1) * ((c->vocab + 31) / 32);
        c->steered[i] = mask[i / 32] >> i % 32 & 1 ? c->steered[i] : -INFINITY;
    }
    for (uint32_t i = 0; i < o->seen_count; i++) {
        const mt_cuda_seen *seen = (const mt_cuda_seen *)(uintptr_t)p->seen + o->seen_first + i;
        float *x = &c->steered[seen->id];
        *x = (*x > 0 ? *x / o->repetition : *x * o->repetition) - o->frequency * (float)seen->count;
        *x -= seen->count > 0 ? o->presence : 0;
    }
}

/* How many candidates, from the best on, hold `mass` together; *sum: their mass. */
static size_t reach(mt_candidates *from, size_t most, uint64_t mass, uint64_t *sum)
{
    size_t n = 0;
    for (*sum = 0; *sum < mass && n < most && mt_candidates_has(from, n); n++)
        *sum += mt_candidates_mass(from, n);
    return n;
}

/* The upper 64 bits of a * b, for b below 2^63. */
static uint64_t multiply_high(uint64_t a, uint64_t b)
{
    uint64_t high = 0;
    for (int i = 0; i < 64; i++)
        high = (high + (a >> i & 1 ? b : 0)) >> 1;
    return high;
}

/* Of a ranking that has begun. */
static uint32_t draw(choosing *c, const mt_cuda_order *o)
{
    mt_candidates from;
    uint64_t total;
    if (o->inverse == 0)
        return mt_ranking_best(&c->ranking);
    mt_candidates_start(&from, &c->k, &c->ranking, c->weights, 1, 0, o->top_k);
    from.inverse = o->inverse;
    from.least = o->least;
    reach(&from, o->top_k ? o->top_k : c->vocab, UINT64_MAX, &total);
    if (o->top_p < 1)
        reach(&from, c->vocab, mt_mass_share(o->top_p, total), &total);
    return mt_candidates_id(&from, reach(&from, c->vocab, multiply_high(o->random, total) + 1, &total) - 1);
}

static mt_best choose(choosing *c, const mt_cuda_choose *p, const mt_cuda_order *o, mt_tops *tops)
{
    const float highest = mt_ranking_start(&c->ranking, &c->k, c->logits, c->vocab, c->room);
    mt_best best = {.logit = highest < INFINITY ? highest : NAN};
    if (mt_sample_status_of(best.logit) != MT_SAMPLE_OK)
        return best;
    steer(c, p, o);
    best.logit = mt_ranking_start(&c->ranking, &c->k, c->steered, c->vocab, c->room);
    if (mt_sample_status_of(best.logit) != MT_SAMPLE_OK)
        return best;
    best.id = draw(c, o);
    if (o->logprobs < 0)
        return best;
    const float sum = mt_logprobs_sum(&c->k, c->logits, c->vocab, highest);
    *tops = (mt_tops){.logprob = c->logits[best.id] - sum};
    if (o->logprobs > 0)
        tops->count = (uint32_t)mt_logprobs_top(c->logits, c->vocab, sum, (size_t)o->logprobs, tops->top);
    return best;
}

/* Where nothing wrote the logits, a token that depends on what is drawn by, so that who reads another order gets
   another one. */
static void chosen_tokens(const mt_cuda_choose *p, uint32_t rows)
{
    choosing c = begin(p->vocab);
    const mt_cuda_order *order = (const mt_cuda_order *)(uintptr_t)p->orders;
    if (!fake_pinned_has(order, rows * sizeof(*order)))
        fake_broken("mtk_choose", "there are no orders for %u rows", rows);
    for (uint32_t i = 0; i < rows; i++) {
        const mt_cuda_order *o = &order[i];
        if (!o->wanted)
            continue;
        if (!has_all(p, o, i))
            fake_broken("mtk_choose", "the order of row %u has what the GPU does not", i);
        const uint64_t best = (uint64_t)p->out + i * sizeof(mt_best), tops = (uint64_t)p->tops + i * sizeof(mt_tops);
        fake_memory_written(best);
        fake_memory_written(tops);
        *(mt_best *)(uintptr_t)best =
            (mt_best){.id = 40 + (o->inverse > 0 ? (uint32_t)(o->random % 8) : i % 8), .logit = 1};
        *(mt_tops *)(uintptr_t)tops = (mt_tops){.logprob = -1, .count = o->logprobs > 0 ? (uint32_t)o->logprobs : 0};
        look_at(&c, &p->x, i);
        if (c.logits)
            *(mt_best *)(uintptr_t)best = choose(&c, p, o, (mt_tops *)(uintptr_t)tops);
    }
    end(&c);
}

/* The best of each row; one token where nothing wrote the logits. */
static void best_token(const mt_cuda_choice *p, uint32_t rows)
{
    choosing c = begin(p->vocab);
    for (uint32_t i = 0; i < rows; i++) {
        const uint64_t at = (uint64_t)p->out + (uint64_t)i * sizeof(mt_best);
        if (!fake_memory_has(at, sizeof(mt_best)))
            fake_broken("mtk_best", "row %u lies outside of what is chosen", i);
        fake_memory_written(at);
        *(mt_best *)(uintptr_t)at = (mt_best){.id = 40 + i % 8, .logit = 1};
        look_at(&c, &p->x, i);
        if (c.logits)
            *(mt_best *)(uintptr_t)at = choose(&c, NULL, &(mt_cuda_order){.logprobs = -1}, NULL);
    }
    end(&c);
}

/* Tokens that the host does not know. */
static void follow(const mt_cuda_follow *p)
{
    const uint64_t tokens = (uint64_t)p->tokens, chosen = (uint64_t)p->chosen, from = (uint64_t)p->from;
    if (!fake_memory_has(tokens, p->m * sizeof(uint32_t)) || !fake_memory_has(from, p->m * sizeof(uint32_t)))
        fake_broken("mtk_follow", "the step has no room for %u tokens", p->m);
    for (uint32_t i = 0; i < p->m; i++) {
        const uint32_t row = ((const uint32_t *)(uintptr_t)from)[i];
        if (row == UINT32_MAX)
            continue;
        const uint64_t at = chosen + row * sizeof(mt_best);
        if (!fake_memory_has(at, sizeof(mt_best)))
            fake_broken("mtk_follow", "row %u follows what was not chosen", i);
        ((uint32_t *)(uintptr_t)tokens)[i] = ((const mt_best *)(uintptr_t)at)->id;
    }
    fake_memory_written(tokens);
}

void fake_effect(const fake_launch *launch)
{
    if (strcmp(launch->kernel, "mtk_best") == 0 && launch->size == sizeof(mt_cuda_choice)) {
        mt_cuda_choice p;
        memcpy(&p, launch->parameter, sizeof(p));
        best_token(&p, launch->grid[0]);
    }
    if (strcmp(launch->kernel, "mtk_follow") == 0 && launch->size == sizeof(mt_cuda_follow)) {
        mt_cuda_follow p;
        memcpy(&p, launch->parameter, sizeof(p));
        follow(&p);
    }
    if (strcmp(launch->kernel, "mtk_choose") == 0 && launch->size == sizeof(mt_cuda_choose)) {
        mt_cuda_choose p;
        memcpy(&p, launch->parameter, sizeof(p));
        chosen_tokens(&p, launch->grid[0]);
    }
    if (strcmp(launch->kernel, "mtk_finite") == 0 && launch->size == sizeof(mt_cuda_rows)) {
        mt_cuda_rows p;
        memcpy(&p, launch->parameter, sizeof(p));
        all_finite(&p);
    }
}
