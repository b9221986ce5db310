/* Chooses a token from a row of logits (sampler.h). */
#include "sample/sampler.h"

#include "sample/candidates.h"
#include "sample/philox.h"
#include "sample/ranking.h"
#include "sample/steer.h"
#include "sample/typical.h"

enum { ALIGN = 64 };

static size_t list_bytes(size_t vocab)
{
    return (vocab * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
}

size_t mt_sample_scratch_bytes(size_t vocab)
{
    return 2 * list_bytes(vocab) + mt_ranking_room_bytes(vocab);
}

/* The upper 64 bits of a * b. */
static uint64_t multiply_high(uint64_t a, uint64_t b)
{
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* How many candidates, from the best on, hold `mass` together; *sum: their mass. */
static size_t reach(mt_candidates *c, uint64_t mass, uint64_t *sum)
{
    size_t i = 0;
    for (*sum = 0; *sum < mass && (i < c->ready || mt_candidates_has(c, i)); i++)
        *sum += mt_candidates_mass(c, i);
    return i;
}

static uint64_t mass_of_first(mt_candidates *c, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count && mt_candidates_has(c, i); i++)
        sum += mt_candidates_mass(c, i);
    return sum;
}

static uint32_t draw_typical(mt_candidates *c, float typical_p, uint64_t total, uint64_t random)
{
    const uint32_t *kept;
    uint64_t sum;
    size_t count = mt_typical(c, reach(c, total, &sum), typical_p, &total, &kept), i = 0;
    uint64_t target = multiply_high(random, total);
    for (sum = mt_candidates_mass(c, kept[0]); sum <= target && i + 1 < count;)
        sum += mt_candidates_mass(c, kept[++i]);
    return mt_candidates_id(c, kept[i]);
}

/* Draws a token. Candidates are kept from the best down, so a mass tells which are kept, until typical_p selects among
   them. */
static uint32_t draw(mt_candidates *c, const mt_sample_row *row)
{
    const mt_sample_settings *s = row->settings;
    uint64_t random = mt_philox_draw(s->seed, row->choice, row->index, MT_PURPOSE_TOKEN), sum;
    uint64_t total = c->wanted > 0 ? mass_of_first(c, c->wanted) : mt_candidates_total(c);
    if (s->top_p < 1.0f) {
        reach(c, mt_mass_share(s->top_p, total), &sum);
        total = sum;
    }
    if (s->typical_p < 1.0f)
        return draw_typical(c, s->typical_p, total, random);
    return mt_candidates_id(c, reach(c, multiply_high(random, total) + 1, &sum) - 1);
}

static void report(const mt_kernels *k, const mt_sample_row *row, float highest, uint32_t token, mt_sampled *out)
{
    int32_t asked = row->settings->logprobs;
    out->chosen = (mt_logprob){.id = token};
    out->top_count = 0;
    if (asked < 0)
        return;
    float sum = mt_logprobs_sum(k, row->logits, row->vocab, highest);
    out->chosen.logprob = row->logits[token] - sum;
    for (size_t i = 0; i < row->settings->logprob_count; i++) {
        const uint32_t id = row->settings->logprob_ids[i];

        out->top[out->top_count++] = (mt_logprob){.id = id, .logprob = row->logits[id] - sum};
    }
    if (asked > 0 && row->settings->logprob_count == 0)
        out->top_count = mt_logprobs_top(row->logits, row->vocab, sum, (size_t)asked, out->top);
}

static uint32_t choose(const mt_kernels *k, const mt_sample_row *row, mt_ranking *ranking, float *weights)
{
    const mt_sample_settings *s = row->settings;
    size_t top_k = s->top_k > 0 && (size_t)s->top_k < row->vocab ? (size_t)s->top_k : 0;
    mt_candidates c;
    if (mt_sample_settings_greedy(s))
        return mt_ranking_best(ranking);
    mt_candidates_start(&c, k, ranking, weights, s->temperature, s->min_p, top_k);
    return draw(&c, row);
}

mt_sample_status mt_sample(const mt_kernels *k, const mt_sample_row *row, void *scratch, mt_sampled *out)
{
    float *steered = scratch, *weights = (float *)(void *)((uint8_t *)scratch + list_bytes(row->vocab));
    void *room = (uint8_t *)weights + list_bytes(row->vocab);
    mt_ranking ranking;
    float highest = mt_ranking_start(&ranking, k, row->logits, row->vocab, room);
    mt_sample_status status = mt_sample_status_of(highest);
    if (status == MT_SAMPLE_OK && mt_steer_needed(row)) {
        mt_steer(steered, row);
        status = mt_sample_status_of(mt_ranking_start(&ranking, k, steered, row->vocab, room));
    }
    if (status == MT_SAMPLE_OK)
        report(k, row, highest, choose(k, row, &ranking, weights), out);
    return status;
}
