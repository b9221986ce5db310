/* Who gets how much of the next step. A pure function: no clock, no allocation, no state. */
#ifndef MT_ENGINE_SCHEDULE_H
#define MT_ENGINE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/cost.h"

/* A sequence that could have rows in the next step, or a job that could have a slice (job.c). */
typedef struct mt_candidate {
    size_t left;             /* positions that can be computed now, at least 1 but where there is work */
    size_t depth;            /* positions before them */
    size_t most;             /* of them that may be computed in one step */
    size_t solid, solid_end; /* of them, [solid, solid_end) are computed in one step or not at all; equal: none are */
    double work;             /* seconds that a job takes before anything else can be done; 0: none */
    bool answering;          /* its next row gives a generated token, not the first */
    bool running;            /* it has its place already */
    size_t *places;          /* that its client may still take, which is counted down; NULL: as many as there are */
    int32_t priority;        /* lower comes first */
    size_t drafts;           /* guesses that could go with the row of an answer */
    double chance;           /* that one is right */
    double debt;             /* seconds of the machine that its client has had lately */
    uint64_t order;          /* of arrival */
    size_t rows;             /* result */
    double worked;           /* result: the part of work */
    double owed;             /* seconds of its share that it has not had; kept from step to step */
    double score;            /* private */
} mt_candidate;

/* What a step takes while somebody is answering, as long as there is a prompt that wants what answers leave of it. */
#define MT_STEP_SECONDS 0.05 /* at least, to the nearest block of rows (cost.h): nobody reads more than 20 tokens/s */
#define MT_STEP_TIMES 3      /* what the answers need alone, where that is more, but then */
#define MT_STEP_SMOOTH 0.1   /* no more than so many seconds, for who waits longer sees it, */
#define MT_STEP_HALF 2       /* unless half of the step would not be the prompts' */

typedef struct mt_budget {
    size_t rows;    /* most rows of the step */
    size_t places;  /* candidates that may begin to run */
    double seconds; /* what the step may take when somebody is answering; 0: see above */
    double alone; /* seconds the step may take when nobody is answering, or twice as many where a prompt is done then */
    size_t slice; /* rows of prompts that a step has at least, where there are any, whatever they take: on a device
                       where fewer take hardly less, steps would become ever shorter. 0: as many as the time allows */
    size_t others;  /* engines that have a step before this one has its next, each as long a one */
    bool draft_all; /* every guess gets its row, for tests */
} mt_budget;

/* Sets rows of every candidate and puts them into the order in which they were considered. Returns the step's predicted
   seconds. Every answer gets its row, and rows for its guesses where they are expected to save more time than they
   take; prompts get what is left, by priority and then by how soon they will be done. A quarter of it belongs to the
   oldest of the highest priority, which saves it up until it pays for a row, so that nobody waits for ever. Somebody's
   prompt gets a row, or a job some work, in any case. */
double mt_schedule(mt_candidate *const *candidates, size_t count, const mt_cost *cost, const mt_budget *budget,
                   mt_candidate **order);

#endif
