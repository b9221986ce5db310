/* Candidates for drawing and their weights (candidates.h). */
#include "sample/candidates.h"

#include <math.h>

enum { BLOCK = MT_RANKING_BLOCK, HALF_BITS = 20 };

#define WEIGHTLESS (-28.0f) /* exp of it is below 2^-40 */

void mt_candidates_start(mt_candidates *c, const mt_kernels *k, mt_ranking *ranking, float *weights, float temperature,
                         float min_p, size_t wanted)
{
    *c = (mt_candidates){.k = k,
                         .ranking = ranking,
                         .inverse = 1.0f / temperature,
                         .least = -INFINITY,
                         .wanted = wanted,
                         .weights = weights};
    if (min_p > 0.0f)
        k->log(&c->least, &min_p, 1);
}

static float scaled(const mt_candidates *c, float logit)
{
    return (logit - c->ranking->highest) * c->inverse;
}

float mt_candidates_scaled(const mt_candidates *c, size_t position)
{
    return scaled(c, mt_ranking_logit(c->ranking, position));
}

/* Computes the weights of all that is sorted: the exponential is fastest on many at once. */
static void weigh(mt_candidates *c)
{
    size_t begin = c->weighed, end = c->ranking->sorted;
    for (size_t i = begin; i < end; i++)
        c->weights[i] = mt_candidates_scaled(c, i);
    while (c->ready < end && c->weights[c->ready] >= c->least)
        c->ready++;
    c->k->exp(c->weights + begin, c->weights + begin, end - begin);
    c->weighed = end;
}

bool mt_candidates_has(mt_candidates *c, size_t position)
{
    while (position >= c->ready && c->ready == c->weighed && mt_ranking_has(c->ranking, c->weighed, c->wanted))
        weigh(c);
    return position < c->ready;
}

uint32_t mt_candidates_id(const mt_candidates *c, size_t position)
{
    return mt_ranking_id(c->ranking, position);
}

/* The scaled logits of a block; -inf for tokens that are no candidates. Two loops, as compilers vectorise the first. */
static void scale_block(const mt_candidates *c, float y[BLOCK], const float x[BLOCK])
{
    float highest = c->ranking->highest, inverse = c->inverse, least = c->least;
    for (int i = 0; i < BLOCK; i++)
        y[i] = (x[i] - highest) * inverse;
    for (int i = 0; least > -INFINITY && i < BLOCK; i++)
        y[i] = y[i] >= least ? y[i] : -INFINITY;
}

/* Adds the masses of a block. Each is split into two halves that fit 32 bits, as do the sums of BLOCK halves, since
   vectors of 32 bits can be converted and added on every processor. All steps are exact. */
static uint64_t add_block(const float w[BLOCK])
{
    const float half = (float)(1 << HALF_BITS);
    int32_t high = 0, low = 0;
    for (int i = 0; i < BLOCK; i++) {
        float upper = w[i] * half;
        int32_t whole = (int32_t)upper;
        high += whole;
        low += (int32_t)((upper - (float)whole) * half);
    }
    return ((uint64_t)high << HALF_BITS) + (uint64_t)low;
}

static uint64_t total_of_block(const mt_candidates *c, size_t begin)
{
    const float *x = c->ranking->x + begin;
    size_t left = c->ranking->n - begin;
    float y[BLOCK], padded[BLOCK];
    if (left < BLOCK) {
        for (size_t i = 0; i < BLOCK; i++)
            padded[i] = i < left ? x[i] : -INFINITY;
        x = padded;
    }
    scale_block(c, y, x);
    c->k->exp(y, y, BLOCK);
    return add_block(y);
}

uint64_t mt_candidates_total(const mt_candidates *c)
{
    const mt_ranking *r = c->ranking;
    float least = c->least > WEIGHTLESS ? c->least : WEIGHTLESS;
    uint64_t total = 0;
    for (size_t b = 0; b < r->blocks; b++)
        if (scaled(c, r->peaks[b]) >= least)
            total += total_of_block(c, b * BLOCK);
    return total;
}
