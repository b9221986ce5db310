/* Logits in order, highest first and the lower id first among equals, sorted only as far as somebody looks. */
#ifndef MT_SAMPLE_RANKING_H
#define MT_SAMPLE_RANKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

#define MT_RANKING_BLOCK 256 /* logits whose maximum is kept */

/* Borrows x and its room until it is started again. Positions [0, sorted) of keys are final. */
typedef struct mt_ranking {
    const float *x;
    size_t n;
    float highest;
    size_t blocks;
    float *peaks;     /* [blocks]: the highest of each MT_RANKING_BLOCK */
    uint64_t *keys;   /* [n + 1]: order of the logit, then id; smaller is better */
    uint64_t *spare;  /* [n + 1]: the sort's; free for others once nothing more is looked at */
    uint64_t *sample; /* keys of evenly spread logits, sorted; from the second band on */
    size_t sorted;
    float floor; /* everything from here up is sorted */
    int bands;   /* how often the floor was lowered */
} mt_ranking;

size_t mt_ranking_room_bytes(size_t n);

/* Looks at n logits, n > 0, once. room is mt_ranking_room_bytes(n), 64-byte aligned. Returns the highest logit; NaN
   when there is one. */
float mt_ranking_start(mt_ranking *r, const mt_kernels *k, const float *x, size_t n, void *room);

/* The best id. There is one: highest is above -inf. */
uint32_t mt_ranking_best(const mt_ranking *r);

/* Whether there is a logit at this position; -inf has none. Sorts down to it when nobody has looked so far yet;
   `wanted` is how many positions will be looked at, as far as known. */
bool mt_ranking_has(mt_ranking *r, size_t position, size_t wanted);

uint32_t mt_ranking_id(const mt_ranking *r, size_t position);
float mt_ranking_logit(const mt_ranking *r, size_t position);

#endif
