/* Log-probabilities from raw logits, before masks, biases and penalties (R9 of docs/numerics.md). */
#ifndef MT_SAMPLE_LOGPROBS_H
#define MT_SAMPLE_LOGPROBS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

typedef struct mt_logprob {
    uint32_t id;
    float logprob;
} mt_logprob;

/* log(sum of exp(logits)), summed by blocks of MT_LSE_BLOCK; highest: the row's maximum. */
float mt_logprobs_sum(const mt_kernels *k, const float *logits, size_t n, float highest);

/* The k likeliest of n tokens, highest first, lower id first among equals; out[0] is the greedy choice. Returns their
   number, which is n where that is less than k. log_sum_exp: of the row. k is at least 1. */
size_t mt_logprobs_top(const float *logits, size_t n, float log_sum_exp, size_t k, mt_logprob *out);

/* The place of a token among n by their logits: 1 for out[0] of mt_logprobs_top, 2 for the next. */
size_t mt_logprobs_rank(const float *logits, size_t n, uint32_t id);

#endif
