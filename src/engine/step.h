/* A step: one pass of the model over rows of many sequences. mt_step holds what lives only from its planning (plan.c)
   through its run to its settling (step.c); what a later step needs stands in the sequences and in mt_past. The arrays
   are allocated once, for the largest step. */
#ifndef MT_ENGINE_STEP_H
#define MT_ENGINE_STEP_H

#include "device/device.h"
#include "engine/cost.h"
#include "engine/sequence.h"

/* The rows of one sequence in the step. */
typedef struct mt_part {
    mt_sequence *s;                /* NULL once the sequence has ended */
    size_t rows;                   /* how many rows of the batch are its */
    uint32_t row;                  /* the number of the first of its rows */
    uint32_t wanted, wanted_count; /* the first and the number of its rows among step->wanted */
    bool samples;   /* its last row gives a token, and so do the rows before it whose guesses prove right */
    mt_chain chain; /* how these tokens are chosen, and which were */
} mt_part;

typedef struct mt_step {
    /* the plan: all that could do something; the same in the order in which they are served; the sequences that take
       part */
    mt_candidate **candidates, **order;
    mt_part *part;
    size_t parts;            /* how many take part */
    mt_sequence *encode_for; /* the first sequence that waits for the tower's job, or for one to begin; NULL: none */

    /* the batch: arrays of one element a row, which batch points to */
    mt_batch batch;
    uint32_t *tokens;
    mt_position *positions;
    mt_span *spans;
    uint32_t *feature_of; /* [rows]: the row of features that replaces the token's embedding */
    uint32_t *seen;       /* [rows]: how many positions the row sees */
    uint32_t *chosen;     /* [rows]: where `ahead`, the row of the logits before whose token is the row's */
    uint32_t *pooled;     /* where the request pools: which running sequence's vector the row is added to */
    uint32_t *wanted;     /* rows whose logits are computed */
    size_t wanted_count, max_wanted;
    double positions_before; /* the sum over all rows of the positions before each, for the cost model */
    bool ahead;              /* it was begun before its first tokens were known (ahead.c) */

    /* what comes out */
    uint64_t began, ended;      /* mt_clock_ns */
    const mt_tensor *logits;    /* [wanted_count]; belongs to the model */
    mt_reading *logits_reading; /* copies logits to the host, where a request needs them there */
    mt_chooser *chooser;        /* chooses tokens on the device */
    mt_chain **chains;          /* the chains that it chooses for */
    mt_sequence **guessers;     /* sequences for which the drafting head guesses */
    uint32_t *guessed;          /* the tokens that the head guessed for them */
} mt_step;

/* Facts about earlier steps that planning needs. */
typedef struct mt_past {
    mt_cost cost;         /* predicts a step's duration */
    double guess_seconds; /* what one round of guesses of the drafting head takes */
    uint64_t concurrent;  /* mt_clock_ns when two or more requests were last present together */
} mt_past;

/* Most rows of a step whose logits may be wanted: one for each sequence that runs, and some for guesses and prompt
   logprobs. */
static inline size_t mt_step_most_wanted(size_t sequences)
{
    return sequences + 32;
}

/* rows: most rows of a step. sequences: most that run. listed: most candidates (sequences that run or wait, and jobs).
   Device objects are made in `set`; vocab 0: there is no model, and none are made. Free with mt_step_free. */
void mt_step_init(mt_step *step, mt_set *set, size_t rows, size_t sequences, size_t listed, size_t vocab);
void mt_step_free(mt_step *step);

/* The same for the one behind it, which shares its objects. */
void mt_step_init_next(mt_step *next, const mt_step *step, size_t rows, size_t sequences, size_t listed);

#endif
