/* A step: what was planned, the batch that it becomes, and what was chosen. It is planned, run and settled, in this
   order, and holds all that lives no longer than that; what outlives it stands in sequences and in mt_past. Arrays have
   room for the most a step may be. */
#ifndef MT_ENGINE_STEP_H
#define MT_ENGINE_STEP_H

#include "engine/cost.h"
#include "engine/sequence.h"

/* A sequence's part of the step. */
typedef struct mt_part {
    mt_sequence *s;                /* NULL once it has ended */
    size_t rows;                   /* of the batch */
    uint32_t row;                  /* the first of them */
    uint32_t wanted, wanted_count; /* which rows of the logits */
    bool samples;                  /* the last of them gives a token, and those of right guesses before it */
    mt_chain chain;                /* these tokens */
} mt_part;

typedef struct mt_step {
    /* the plan: who could do something, in which order they are served, who takes part */
    mt_candidate **candidates, **order;
    mt_part *part;
    size_t parts;
    mt_sequence *viewer; /* the first of those that wait for the job's pictures, or for a job */

    /* the batch */
    mt_batch batch;
    uint32_t *tokens;
    mt_position *positions;
    mt_span *spans;
    uint32_t *feature_of; /* [rows]: a row of features */
    uint32_t *seen;
    uint32_t *pooled; /* places that rows are added to */
    uint32_t *wanted; /* rows whose logits are */
    size_t wanted_count, max_wanted;
    double positions_before; /* of all rows, together */

    /* what comes out */
    uint64_t began, ended; /* mt_clock_ns */
    const mt_tensor *logits;
    mt_reading *logits_reading;
    mt_chooser *chooser;
    mt_chain **chains;
    mt_sequence **guessers; /* that the model's head guesses for */
    uint32_t *guessed;
} mt_step;

/* What a plan needs of the steps before. */
typedef struct mt_past {
    mt_cost cost;
    double guess_seconds; /* of the drafting head, for one guess */
    uint64_t company;     /* mt_clock_ns when requests last met */
} mt_past;

/* Rows of a step whose logits may be wanted. */
static inline size_t mt_step_most_wanted(size_t sequences)
{
    return sequences + 32;
}

/* sequences: that may run; listed: that may wait and run, and jobs. Its objects go into the set; vocab 0: there
   is no model, which needs none. Free with mt_step_free. */
void mt_step_init(mt_step *step, mt_set *set, size_t rows, size_t sequences, size_t listed, size_t vocab);
void mt_step_free(mt_step *step);

#endif
