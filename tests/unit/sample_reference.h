/* The sampler as docs/sampling.md states it, with nothing clever: everything is weighed and sorted. The fp32 operations
   are those of the rules, one at a time; what must be exact is exact. */
#ifndef MT_TESTS_SAMPLE_REFERENCE_H
#define MT_TESTS_SAMPLE_REFERENCE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "sample/philox.h"
#include "sample/settings.h"

typedef struct ref_input {
    const float *logits;
    size_t vocab;
    const mt_sample_settings *settings;
    const uint32_t *prompt, *output;
    size_t prompt_count, output_count; /* output_count is the index of the token to choose */
    const uint32_t *allowed;
    uint32_t choice;
} ref_input;

typedef struct ref_candidate {
    uint32_t id, rank;
    float logit, scaled, distance;
    uint64_t mass;
} ref_candidate;

static inline const mt_kernels *ref_kernels(void)
{
    static mt_kernels portable;
    if (!portable.exp)
        mt_kernels_init(&portable, 0);
    return &portable;
}

static inline float ref_exp(float x)
{
    ref_kernels()->exp(&x, &x, 1);
    return x;
}

static inline float ref_log(float x)
{
    ref_kernels()->log(&x, &x, 1);
    return x;
}

static inline size_t ref_times(const uint32_t *ids, size_t count, uint32_t id)
{
    size_t times = 0;
    for (size_t i = 0; i < count; i++)
        times += ids[i] == id;
    return times;
}

static inline float ref_steered(const ref_input *in, uint32_t id)
{
    const mt_sample_settings *s = in->settings;
    float x = in->logits[id];
    size_t generated = ref_times(in->output, in->output_count, id);
    if (in->allowed && !(in->allowed[id / 32] >> (id % 32) & 1))
        return -INFINITY;
    if (in->output_count < s->min_tokens &&
        ref_times(s->stop_ids, s->stop_count, id) + ref_times(s->eos_ids, s->eos_count, id) > 0)
        return -INFINITY;
    for (size_t i = 0; i < s->bias_count; i++)
        if (s->bias[i].id == id)
            x += s->bias[i].bias;
    if (generated > 0 || ref_times(in->prompt, in->prompt_count, id) > 0)
        x = x > 0 ? x / s->repetition_penalty : x * s->repetition_penalty;
    if (generated > 0) {
        x -= s->frequency_penalty * (float)generated;
        x -= s->presence_penalty;
    }
    return x;
}

static inline int ref_by_logit(const void *a, const void *b)
{
    const ref_candidate *p = a, *q = b;
    if (p->logit != q->logit)
        return p->logit > q->logit ? -1 : 1;
    return p->id < q->id ? -1 : 1;
}

static inline int ref_by_distance(const void *a, const void *b)
{
    const ref_candidate *p = a, *q = b;
    if (p->distance != q->distance)
        return p->distance < q->distance ? -1 : 1;
    return p->rank < q->rank ? -1 : 1;
}

static inline int ref_by_rank(const void *a, const void *b)
{
    const ref_candidate *p = a, *q = b;
    return p->rank < q->rank ? -1 : 1;
}

static inline uint64_t ref_total(const ref_candidate *c, size_t n)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += c[i].mass;
    return total;
}

/* How many from the front hold a share of the mass; at least one that weighs something. */
static inline size_t ref_front(const ref_candidate *c, size_t n, float share)
{
    uint64_t need = (uint64_t)((double)share * (double)ref_total(c, n)), sum = 0;
    size_t count = 0;
    need = need > 0 ? need : 1;
    while (count < n && sum < need)
        sum += c[count++].mass;
    return count;
}

static inline size_t ref_typical(ref_candidate *c, size_t n, float share)
{
    uint64_t total = ref_total(c, n);
    float log_total = ref_log((float)((double)total * 0x1p-40));
    double entropy = 0;
    for (size_t i = 0; i < n; i++)
        if (c[i].mass > 0)
            entropy += (double)c[i].mass / (double)total * ((double)log_total - (double)c[i].scaled);
    while (n > 0 && c[n - 1].mass == 0) /* what weighs nothing is no candidate */
        n--;
    for (size_t i = 0; i < n; i++)
        c[i].distance = (float)fabs((double)log_total - (double)c[i].scaled - entropy);
    qsort(c, n, sizeof(*c), ref_by_distance);
    n = ref_front(c, n, share);
    qsort(c, n, sizeof(*c), ref_by_rank);
    return n;
}

/* floor(a * b / 2^64), bit by bit. */
static inline uint64_t ref_multiply_high(uint64_t a, uint64_t b)
{
    uint64_t high = 0, low = 0;
    for (int bit = 63; bit >= 0; bit--) {
        high = high << 1 | low >> 63;
        low <<= 1;
        if (a >> bit & 1) {
            low += b;
            high += low < b;
        }
    }
    return high;
}

static inline size_t ref_weigh(const ref_input *in, ref_candidate *c)
{
    const mt_sample_settings *s = in->settings;
    float inverse = s->temperature < MT_SAMPLE_GREEDY_BELOW ? 1.0f : 1.0f / s->temperature;
    size_t n = 0;
    for (uint32_t id = 0; id < in->vocab; id++) {
        float x = ref_steered(in, id);
        if (x > -INFINITY)
            c[n++] = (ref_candidate){.id = id, .logit = x};
    }
    qsort(c, n, sizeof(*c), ref_by_logit);
    for (size_t i = 0; i < n; i++) {
        c[i].rank = (uint32_t)i;
        c[i].scaled = (c[i].logit - c[0].logit) * inverse;
        c[i].mass = (uint64_t)(ref_exp(c[i].scaled) * 0x1p40f);
    }
    return n;
}

/* The candidates that are left, in order, with their masses; one when greedy. c has room for the vocabulary. */
static inline size_t ref_candidates(const ref_input *in, ref_candidate *c)
{
    const mt_sample_settings *s = in->settings;
    size_t n = ref_weigh(in, c);
    if (s->temperature < MT_SAMPLE_GREEDY_BELOW)
        return 1;
    while (s->min_p > 0 && c[n - 1].scaled < ref_log(s->min_p))
        n--;
    if (s->top_k > 0 && (size_t)s->top_k < n)
        n = (size_t)s->top_k;
    if (s->top_p < 1)
        n = ref_front(c, n, s->top_p);
    if (s->typical_p < 1)
        n = ref_typical(c, n, s->typical_p);
    return n;
}

/* The token that the random number of the input's choice and index falls on. */
static inline uint32_t ref_pick(const ref_input *in, const ref_candidate *c, size_t n)
{
    uint64_t random = mt_philox_draw(in->settings->seed, in->choice, (uint32_t)in->output_count, MT_PURPOSE_TOKEN);
    uint64_t target = ref_multiply_high(random, ref_total(c, n)), sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += c[i].mass;
        if (sum > target)
            return c[i].id;
    }
    abort();
}

static inline uint32_t ref_sample(const ref_input *in)
{
    ref_candidate *c = calloc(in->vocab, sizeof(*c));
    uint32_t token = ref_pick(in, c, ref_candidates(in, c));
    free(c);
    return token;
}

#endif
