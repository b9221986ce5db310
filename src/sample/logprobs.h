/* Logprobs from raw logits, before anything steers them (R9). */
#ifndef MT_SAMPLE_LOGPROBS_H
#define MT_SAMPLE_LOGPROBS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

typedef struct mt_logprob {
    uint32_t id;
    float logprob;
} mt_logprob;

/* The logarithm of the sum of exp(logits), over blocks of MT_LSE_BLOCK; highest is the row's maximum. */
float mt_logprobs_sum(const mt_kernels *k, const float *logits, size_t n, float highest);

/* The k likeliest of n, highest first, lower id first among equals; out[0] is the greedy choice. Returns how many
   there are (n may be smaller than k). log_sum_exp is the row's. k is at least 1. */
size_t mt_logprobs_top(const float *logits, size_t n, float log_sum_exp, size_t k, mt_logprob *out);

#endif
