/* A chain: tokens of one sequence that are chosen one after the other in a step: the first, and those behind guesses
   that prove right. */
#ifndef MT_SAMPLE_CHAIN_H
#define MT_SAMPLE_CHAIN_H

#include "sample/limits.h"
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
    bool forces;                                 /* `forced` is set, and has tokens */
    uint32_t forced[1 + MT_LIMIT_DRAFT];         /* the token that has to be chosen of a row; MT_SAMPLE_ANY: any */

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

/* ---- for devices that choose for each row of a chain as if all guesses before it were right ---- */

/* The token chosen from a row, and the best logit after masks and penalties; NaN where a logit is not finite. */
typedef struct mt_best {
    uint32_t id;
    float logit;
} mt_best;

/* Its logprob, and the likeliest. */
typedef struct mt_tops {
    float logprob;
    uint32_t count;
    mt_logprob top[MT_LIMIT_TOP_LOGPROBS];
} mt_tops;

/* Whether the best logit of each row is what is chosen. */
bool mt_chain_greedy(const mt_chain *chain);

/* What row `ahead` of a chain is chosen by, but for its logits. tail has room for the row's. */
mt_sample_row mt_chain_row(const mt_chain *chain, size_t ahead, uint32_t tail[MT_LIMIT_BAD_TOKENS]);

/* Takes the tokens that were chosen, as far as guesses prove right. tops: NULL where no logprobs are asked for. */
void mt_chain_take(mt_chain *chain, const mt_best *best, const mt_tops *tops);

#endif
