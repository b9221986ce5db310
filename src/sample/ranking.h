/* Logits in order, highest first, lower id first among equals; sorted only as far as callers look. */
#ifndef MT_SAMPLE_RANKING_H
#define MT_SAMPLE_RANKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

#define MT_RANKING_BLOCK 256 /* logits of a block, whose maximum is kept */

/* Borrows x and room until the next mt_ranking_start. Positions [0, sorted) of keys are final. */
typedef struct mt_ranking {
    const float *x;
    size_t n;
    float highest;
    size_t blocks;
    float *peaks;     /* [blocks]: maximum of each block */
    uint64_t *keys;   /* [n + 1]: order of the logit in the high half, id in the low half; smaller is better */
    uint64_t *spare;  /* [n + 1]: used for sorting; others may use it when no further position is looked at */
    uint64_t *sample; /* sorted keys of evenly spaced logits; set from the second band on */
    size_t sorted;
    float floor; /* all logits from this value up are sorted */
    int bands;   /* how often the floor was lowered */
} mt_ranking;

size_t mt_ranking_room_bytes(size_t n);

/* Starts a ranking of n logits, n > 0, by one pass over them. room: mt_ranking_room_bytes(n), 64-byte aligned. Returns
   the highest logit; NaN when any logit is NaN. */
float mt_ranking_start(mt_ranking *r, const mt_kernels *k, const float *x, size_t n, void *room);

/* The id of the highest logit, which must be above -inf. */
uint32_t mt_ranking_best(const mt_ranking *r);

/* Whether there is a logit above -inf at this position. Sorts down to it where needed; wanted: how many positions will
   be looked at, as far as known. */
bool mt_ranking_has(mt_ranking *r, size_t position, size_t wanted);

uint32_t mt_ranking_id(const mt_ranking *r, size_t position);
float mt_ranking_logit(const mt_ranking *r, size_t position);

#endif
