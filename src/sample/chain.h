/* Tokens of one sequence that are chosen one after the other: the first, and those behind guesses that turned out
   right. */
#ifndef MT_SAMPLE_CHAIN_H
#define MT_SAMPLE_CHAIN_H

#include "sample/sampler.h"

typedef struct mt_chain {
    /* what is to be chosen */
    size_t first;                       /* row of the logits that the first token is chosen from; the others follow */
    const mt_sample_settings *settings; /* checked by mt_sample_settings_check */
    mt_counts *counts;                  /* NULL unless mt_sample_settings_penalise; left as it was */
    uint32_t choice, index;             /* as a mt_sample_row has them: which answer, how many tokens before */
    uint32_t tail[MT_LIMIT_BAD_TOKENS]; /* the last of these, where the settings have bad words */
    size_t tail_count;
    bool constrained;
    size_t guessed;                              /* rows behind the first */
    const uint32_t *guess;                       /* [guessed]: what each of them takes for chosen before it */
    const uint32_t *allowed[1 + MT_LIMIT_DRAFT]; /* of a constrained one: masks of the first rows; the rest */
    size_t allowed_count;                        /* are not chosen for */

    /* what was */
    mt_sample_status status; /* of the first */
    mt_sampled sampled[1 + MT_LIMIT_DRAFT];
    size_t sampled_count;
} mt_chain;

/* Chooses as many tokens as the guesses allow. A row after a guess that cannot be sampled is left out, and all behind
   it. logits: of the first row, the next `stride` floats further. Allocates nothing; chains may be chosen on different
   threads at once. scratch: see mt_sample. */
void mt_chain_choose(mt_chain *chain, const mt_kernels *k, const float *logits, size_t stride, size_t vocab,
                     void *scratch);

#endif
