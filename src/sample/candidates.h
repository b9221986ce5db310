/* The tokens that may be drawn, best first, with their weights. Used by sampler.c and typical.c.

   A weight is exp((logit - highest) / temperature) in fp32, truncated to a multiple of 2^-40 and then used as an
   integer (its mass). Sums of integers do not depend on their order: the mass of a row is the same whether it is added
   by blocks or candidate by candidate, and walking along the candidates reaches it exactly. A token 28 nats below the
   best has mass 0 and is never drawn. */
#ifndef MT_SAMPLE_CANDIDATES_H
#define MT_SAMPLE_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "sample/ranking.h"

#define MT_MASS_ONE ((uint64_t)1 << 40) /* mass of the best token */

/* A share of a mass, at least 1: so at least one token is kept. */
static inline uint64_t mt_mass_share(float share, uint64_t total)
{
    uint64_t part = (uint64_t)((double)share * (double)total);
    return part == 0 ? 1 : part < total ? part : total;
}

/* Borrows ranking and weights until the next mt_candidates_start. */
typedef struct mt_candidates {
    const mt_kernels *k;
    mt_ranking *ranking;
    float inverse;  /* 1 / temperature */
    float least;    /* log(min_p): the least scaled logit of a candidate */
    size_t wanted;  /* how many candidates will be looked at; 0: not known */
    float *weights; /* [n]: the first `weighed` are computed */
    size_t weighed;
    size_t ready; /* positions [0, ready) are candidates; fewer than weighed where min_p ends them */
} mt_candidates;

/* ranking must be started; weights has room for a weight of each of its logits. */
void mt_candidates_start(mt_candidates *c, const mt_kernels *k, mt_ranking *ranking, float *weights, float temperature,
                         float min_p, size_t wanted);

/* Whether there is a candidate at this position; position 0 always has one. Call before the three functions below. */
bool mt_candidates_has(mt_candidates *c, size_t position);
uint32_t mt_candidates_id(const mt_candidates *c, size_t position);
float mt_candidates_scaled(const mt_candidates *c, size_t position); /* (logit - highest) / temperature */

static inline uint64_t mt_candidates_mass(const mt_candidates *c, size_t position)
{
    return (uint64_t)(c->weights[position] * (float)MT_MASS_ONE);
}

/* The mass of all candidates, by one pass over the logits. */
uint64_t mt_candidates_total(const mt_candidates *c);

#endif
