#include "sample/logprobs.h"

/* One pass with an ordered list: k is small, and after the first few hundred logits an insertion is rare. */
size_t mt_logprobs_top(const float *logits, size_t n, float log_sum_exp, size_t k, mt_logprob *out)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (count == k && !(logits[i] > out[k - 1].logprob))
            continue;
        size_t at = count < k ? count++ : k - 1;
        for (; at > 0 && logits[i] > out[at - 1].logprob; at--)
            out[at] = out[at - 1];
        out[at] = (mt_logprob){.id = (uint32_t)i, .logprob = logits[i]};
    }
    for (size_t i = 0; i < count; i++)
        out[i].logprob -= log_sum_exp;
    return count;
}
