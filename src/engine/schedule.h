/* The scheduler: how many rows each sequence, and how much work each job, gets in the next step. A pure function,
   called by plan.c: no clock, no allocation, no state. */
#ifndef MT_ENGINE_SCHEDULE_H
#define MT_ENGINE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/cost.h"

/* A sequence that could have rows in the next step, or a job that could have a slice (job.c). */
typedef struct mt_candidate {
    size_t left;  /* positions that can be computed now: at least 1, or 0 where `work` is above 0 */
    size_t depth; /* positions before the first of them */
    size_t most;  /* most of them that may be computed in one step */
    /* [solid, solid_end) of them must be computed in one step, or not at all; equal: there is no such range */
    size_t solid, solid_end;
    double work;      /* of a job: seconds of work that are left; 0: this is a sequence */
    bool answering;   /* its next row gives a generated token other than the first */
    bool running;     /* it has its seat already */
    bool last;        /* a line of a batch (mt_client.last): it gets no rows in steps with prompts of others */
    size_t *places;   /* seats that its client may still take, counted down as they are given; NULL: no limit */
    int32_t priority; /* lower comes first */
    size_t drafts;    /* guesses that could have a row each behind the row of an answer */
    double chance;    /* how likely a guess is right */
    double debt;      /* seconds of the machine that its client has had lately */
    uint64_t order;   /* number of arrival: a lower one came earlier */
    size_t rows;      /* result: rows it gets */
    double worked;    /* result: seconds of `work` that it gets */
    double owed;      /* seconds of the oldest candidate's share that it has saved up; kept from step to step */
    /* private to mt_schedule */
    double score;
    size_t sure; /* rows that it gets in any case, while guesses beyond the knee are counted */
    bool held;   /* last, and a prompt of others is in the step: valid after mt_schedule, too */
} mt_candidate;

/* How long a step may take while answers run and a prompt waits for the time that the answers leave: MT_STEP_TIMES what
   the answers need alone, at least MT_STEP_SECONDS, and at most MT_STEP_SMOOTH or MT_STEP_HALF times the answers' need,
   whichever is more. */
#define MT_STEP_SECONDS 0.05 /* rounded to the nearest block of rows (cost.h); nobody reads more than 20 tokens/s */
#define MT_STEP_TIMES 3
#define MT_STEP_SMOOTH 0.1 /* seconds: a reader notices longer pauses */
#define MT_STEP_HALF 2     /* so that prompts get half of the step at least */
#define MT_STEP_LAST 2     /* the same of batches, alone in a step: whoever comes during the step waits for its end */

typedef struct mt_budget {
    size_t rows;    /* most rows of the step */
    size_t places;  /* candidates that may take a seat in this step */
    double seconds; /* longest step while answers run; 0: see MT_STEP_SECONDS */
    double alone;   /* longest step of prompts alone, in seconds; twice as long where one prompt is complete then */
    /* least rows of prompts in a step, where there are so many, however long they take: on a device where fewer rows
       are hardly faster, steps would become ever shorter. 0: as many as the time allows */
    size_t slice;
    size_t guesses; /* most rows of guesses; 0: no limit */
    size_t others;  /* other engines on the device, each of which has a step before this one has its next */
    bool draft_all; /* for tests: every guess gets its row */
    bool together;  /* no candidate is held: the prompts of others found no seat */
} mt_budget;

/* Whether a first guess, which is right with this chance, is worth a row behind `depth` positions: it saves one of
   `answers`, which have a row each, its part of a step of `seconds`. One alone is not worth a step beyond the knee. */
bool mt_schedule_worth(const mt_cost *cost, double chance, size_t depth, size_t answers, double seconds);

/* Sets rows and worked of every candidate, and lists the candidates in `order` as they were considered. Returns the
   step's predicted seconds. Every answer gets its row, and rows for its guesses where these are expected to save more
   time than they take; guesses make a step larger than the knee (cost.h) only where they all together pay for it.
   Prompts get the time that is left, by priority and then by how soon they will be complete. A quarter of that time
   belongs to the oldest candidate of the highest priority, which saves it up until it pays for a row: so no prompt
   waits for ever. At least one prompt gets a row, or one job some work, in any case. Candidates that are last, answers
   included, get nothing while another's prompt can go on, and steps of them alone are short. */
double mt_schedule(mt_candidate *const *candidates, size_t count, const mt_cost *cost, const mt_budget *budget,
                   mt_candidate **order);

#endif
