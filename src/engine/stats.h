/* The engine's counters, for metrics and the dashboard. Written by the engine's thread; others get copies. */
#ifndef MT_ENGINE_STATS_H
#define MT_ENGINE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/tree.h"
#include "constraint/masks.h"
#include "engine/keep.h"

#define MT_HISTOGRAM_BUCKETS 24

/* Bucket i counts values in units up to mt_histogram_bound(i) and above the bucket before; values above the last bound
   are only in `count`. */
typedef struct mt_histogram {
    uint64_t bucket[MT_HISTOGRAM_BUCKETS]; /* not cumulative */
    uint64_t count;
    double sum;
} mt_histogram;

#define MT_HISTOGRAM_SECONDS 1e-4 /* one unit, where values are seconds; where values are counts, a unit is 1 */

double mt_histogram_bound(size_t bucket); /* 1, 2, 5, 10, 20, 50 ... units */

/* Adds a value: in seconds, or to a histogram of counts. */
void mt_histogram_add(mt_histogram *h, double seconds);
void mt_histogram_count(mt_histogram *h, uint64_t count);

/* Adds the counts of another histogram. */
void mt_histogram_join(mt_histogram *h, const mt_histogram *other);

typedef struct mt_stats {
    /* the present state */
    size_t running, waiting;
    /* of each group: all pages, and those that sequences hold */
    size_t pages_total[MT_KV_GROUPS], pages_held[MT_KV_GROUPS];
    size_t pages_known; /* nodes of the prefix tree */
    /* pictures in the feature cache; bytes of features, and the most they may be */
    size_t media_known, media_bytes, media_total;
    /* slots of recurrent states: all, held by sequences, held as anchors of the prefix tree */
    size_t states_total, states_held, states_known;
    uint64_t bytes_memory;                /* the limit on all memory */
    uint64_t device_bytes, device_memory; /* where the device has memory of its own: bytes in use, and in all */
    bool device_lost;                     /* the device failed and could not be reopened */
    uint64_t bytes_weights, bytes_cache, bytes_working, bytes_constraints, bytes_pictures, bytes_requests;
    uint64_t bytes_filled; /* of bytes_cache: pages and states that hold something */

    /* sums since the engine started */
    uint64_t steps, step_rows;
    uint64_t ahead_steps; /* steps that were begun while the step before ran (ahead.c) */
    uint64_t slow_steps;  /* steps that took longer than slow_seconds */
    double step_seconds;
    uint64_t prompt_tokens, cached_tokens, generated_tokens;
    /* lookups in the prefix tree, by the reason why they found less than all; MT_MISS_NONE: found all */
    uint64_t lookups, misses[MT_MISS_COUNT];
    uint64_t media_hits,
        media_misses; /* parts of pictures whose features were in the feature cache, or had to be encoded */
    uint64_t media_evictions;
    double encode_seconds, encode_work; /* of the vision tower: seconds, and multiplications */
    uint64_t evictions, state_evictions, preemptions;
    uint64_t yields;                               /* of the preemptions, those that gave a seat to another client */
    uint64_t drafts, draft_tokens, draft_accepted; /* steps of an answer that had guesses; guesses; right guesses */
    uint64_t model_draft_tokens, model_draft_accepted; /* of these guesses, those of a head or a drafter */
    uint64_t answer_steps;                             /* over all answers: steps that gave one or more tokens */
    uint64_t canary_faults;                            /* pages and states that were written while free (canary.c) */
    mt_masks_stats masks;                              /* token masks of constraints */
    uint64_t finished[4];                              /* answers by their mt_finish */
    uint64_t repeated;                                 /* answers that repeat_limit ended */
    uint64_t thinking_cut;                             /* answers whose thinking was ended since its budget was spent */
    uint64_t device_faults;                            /* how often the device failed and was reopened */
    /* of an answer, in seconds: from receipt until it left the queue; from there to its first token; from receipt to
       its first token; between two of its tokens; from receipt to its end */
    mt_histogram queue, prefill, first_token, inter_token, end_to_end;
    mt_histogram step, encode;      /* seconds of a step; of a job of the vision tower, from its begin to its end */
    mt_histogram inference, decode; /* of an answer: from its seat to its end; from its first token to its last */
    mt_histogram token_pace;        /* of an answer: `decode` divided by the tokens after the first */
    mt_histogram step_tokens;       /* this and the following are histograms of counts */
    /* tokens of an answer: its prompt; of this not cached; generated */
    mt_histogram answer_prompt, answer_computed, answer_tokens;
    mt_histogram wanted_choices, wanted_tokens; /* choices and max_tokens that requests asked for */
    mt_keep_stats keep;                         /* records to and from cache tiers */
    mt_host_store_stats host_store;             /* of the tier in the host's memory */
} mt_stats;

/* Adds the sums of another engine; the present state stays as it is. */
void mt_stats_join(mt_stats *s, const mt_stats *other);

#endif
