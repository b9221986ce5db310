/* A chain: tokens of one sequence that are chosen one after the other in a step: the first, and those behind guesses
   that prove right. */
#ifndef MT_SAMPLE_CHAIN_H
#define MT_SAMPLE_CHAIN_H

#include "sample/sampler.h"

typedef struct mt_chain {
    /* input */
    size_t first;                       /* row of the logits for the first token; the next rows follow */
    const mt_sample_settings *settings; /* checked by mt_sample_settings_check */
    mt_counts *counts;                  /* NULL unless mt_sample_settings_penalise; unchanged afterwards */
    uint32_t choice, index; /* as in mt_sample_row: which answer of the request, and how many tokens it has */
    uint32_t tail[MT_LIMIT_BAD_TOKENS]; /* the last generated tokens, where the settings have bad words */
    size_t tail_count;
    bool constrained;
    size_t guessed;                              /* rows behind the first */
    const uint32_t *guess;                       /* [guessed]: the token that each of these rows was computed behind */
    const uint32_t *allowed[1 + MT_LIMIT_DRAFT]; /* where constrained: token masks of the first allowed_count rows */
    size_t allowed_count;                        /* further rows are not chosen for */

    /* result */
    mt_sample_status status; /* of the first token */
    mt_sampled sampled[1 + MT_LIMIT_DRAFT];
    size_t sampled_count;
} mt_chain;

/* Chooses the first token, and further ones as long as the guesses prove right. Ends at the first row that cannot be
   sampled. logits: of the first row; the next rows are `stride` floats apart. Allocates nothing; chains may be chosen
   on different threads at once. scratch: as for mt_sample. */
void mt_chain_choose(mt_chain *chain, const mt_kernels *k, const float *logits, size_t stride, size_t vocab,
                     void *scratch);

/* The same, of logits that a function has for each row when it is their turn: that of the first for 0. They are used no
   longer than until it is asked for the next. */
void mt_chain_choose_from(mt_chain *chain, const mt_kernels *k, const float *(*row)(void *ctx, size_t ahead), void *ctx,
                          size_t vocab, void *scratch);

/* The best of a row of logits, of equals the first; NaN where one of them is not finite. */
typedef struct mt_best {
    uint32_t id;
    float logit;
} mt_best;

/* Whether the best of each row is all that a choice needs to know, and that choice. */
bool mt_chain_greedy(const mt_chain *chain);
void mt_chain_choose_best(mt_chain *chain, const mt_best *best);

#endif
