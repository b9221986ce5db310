/* Log-probabilities (logprobs.h). */
#include "sample/logprobs.h"

#include <stdbool.h>

enum { CHUNK = 64 };

float mt_logprobs_sum(const mt_kernels *k, const float *logits, size_t n, float highest)
{
    float sum = 0.0f, log_sum;
    for (size_t i = 0; i < n; i += MT_LSE_BLOCK)
        sum += k->sum_exp(logits + i, highest, n - i < MT_LSE_BLOCK ? n - i : MT_LSE_BLOCK);
    k->log(&log_sum, &sum, 1);
    return highest + log_sum;
}

/* A constant number of logits and no branch: compilers vectorise it. */
static bool any_above(const float *x, float least)
{
    int above = 0;
    for (int i = 0; i < CHUNK; i++)
        above += x[i] > least;
    return above > 0;
}

static size_t insert(mt_logprob *out, size_t count, size_t k, float logit, size_t id)
{
    if (count == k && !(logit > out[k - 1].logprob))
        return count;
    size_t at = count < k ? count++ : k - 1;
    for (; at > 0 && logit > out[at - 1].logprob; at--)
        out[at] = out[at - 1];
    out[at] = (mt_logprob){.id = (uint32_t)id, .logprob = logit};
    return count;
}

/* One pass with an ordered list: k is small, and after the first few hundred logits insertions are rare. */
size_t mt_logprobs_top(const float *logits, size_t n, float log_sum_exp, size_t k, mt_logprob *out)
{
    size_t count = 0, i = 0;
    while (i < n) {
        size_t end = n - i < CHUNK ? n : i + CHUNK;
        if (end - i == CHUNK && count == k && !any_above(logits + i, out[k - 1].logprob)) {
            i = end;
            continue;
        }
        for (; i < end; i++)
            count = insert(out, count, k, logits[i], i);
    }
    for (i = 0; i < count; i++)
        out[i].logprob -= log_sum_exp;
    return count;
}

size_t mt_logprobs_rank(const float *logits, size_t n, uint32_t id)
{
    const float own = logits[id];
    size_t above = 0;
    for (size_t i = 0; i < n; i++)
        above += logits[i] > own;
    for (size_t i = 0; i < id; i++)
        above += logits[i] == own;
    return above + 1;
}
