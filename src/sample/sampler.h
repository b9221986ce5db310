/* Chooses the next token of a sequence from one row of logits. A pure function: the same row, settings, counts, choice
   and index give the same token and logprobs, to the last bit, on every thread and instruction-set level. */
#ifndef MT_SAMPLE_SAMPLER_H
#define MT_SAMPLE_SAMPLER_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "kernels/kernels.h"
#include "sample/counts.h"
#include "sample/limits.h"
#include "sample/logprobs.h"
#include "sample/settings.h"

typedef enum mt_sample_status {
    MT_SAMPLE_OK = 0,
    MT_SAMPLE_NOT_FINITE, /* a logit is NaN or +inf, which is the model's fault; -inf is allowed */
    MT_SAMPLE_NOTHING     /* every token is masked or -inf */
} mt_sample_status;

#define MT_SAMPLE_ANY UINT32_MAX /* in place of a token: any may be chosen */

typedef struct mt_sample_row {
    const float *logits; /* [vocab], raw; not changed, so that several choices may share a row */
    size_t vocab;
    const mt_sample_settings *settings; /* checked by mt_sample_settings_check */
    const mt_counts *counts;            /* NULL unless mt_sample_settings_penalise */
    /* token mask: bit id % 32 of word id / 32 is set for allowed tokens; NULL: all are allowed */
    const uint32_t *allowed;
    const uint32_t *forced; /* the only token that may be chosen, whatever else is said; NULL: any */
    const uint32_t *tail;   /* the last generated tokens, as many as bad words look at */
    size_t tail_count;
    uint32_t choice; /* which answer of the request */
    uint32_t index;  /* how many tokens the answer has */
} mt_sample_row;

typedef struct mt_sampled {
    mt_logprob chosen; /* its logprob is 0 where none are asked for */
    size_t top_count;
    mt_logprob top[MT_LIMIT_TOP_LOGPROBS]; /* highest first, or of settings->logprob_ids; of the raw logits */
} mt_sampled;

/* What the highest of all logits says of them. NaN and +inf are not finite. */
static inline mt_sample_status mt_sample_status_of(float highest)
{
    if (!(highest < INFINITY))
        return MT_SAMPLE_NOT_FINITE;
    return highest > -INFINITY ? MT_SAMPLE_OK : MT_SAMPLE_NOTHING;
}

/* Bytes of scratch memory that mt_sample needs, one for each thread, 64-byte aligned. */
size_t mt_sample_scratch_bytes(size_t vocab);

/* *out is set only with MT_SAMPLE_OK. Rows may be sampled on different threads at once. Allocates nothing. */
MT_NODISCARD mt_sample_status mt_sample(const mt_kernels *k, const mt_sample_row *row, void *scratch, mt_sampled *out);

#endif
