/* Random numbers without state (R11 of docs/numerics.md): Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel
   random numbers: as easy as 1, 2, 3". A number depends only on its seed and what it is for, not on earlier numbers. */
#ifndef MT_SAMPLE_PHILOX_H
#define MT_SAMPLE_PHILOX_H

#include <stdint.h>

/* The decision that a number is for. It is part of the counter, so that two decisions at the same position have
   different numbers. */
typedef enum mt_purpose { MT_PURPOSE_TOKEN = 0 } mt_purpose;

void mt_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* 64 uniform bits for output token number `index` of choice `choice` of a request. */
uint64_t mt_philox_draw(uint64_t seed, uint32_t choice, uint32_t index, mt_purpose purpose);

#endif
