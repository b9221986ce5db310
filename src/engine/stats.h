/* What the engine counts. Written by its thread, read as a copy. */
#ifndef MT_ENGINE_STATS_H
#define MT_ENGINE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/tree.h"
#include "engine/keep.h"
#include "sample/constraint/masks.h"

#define MT_HISTOGRAM_BUCKETS 24

/* Bucket i counts values up to mt_histogram_bound(i) units; what is larger is in count only. */
typedef struct mt_histogram {
    uint64_t bucket[MT_HISTOGRAM_BUCKETS]; /* not cumulative */
    uint64_t count;
    double sum;
} mt_histogram;

#define MT_HISTOGRAM_SECONDS 1e-4 /* the unit of times; that of counts is 1 */

double mt_histogram_bound(size_t bucket); /* 1, 2, 5, 10, 20, 50 ... units */
void mt_histogram_add(mt_histogram *h, double seconds);
void mt_histogram_count(mt_histogram *h, uint64_t count); /* for histograms of counts */

/* Adds what another has counted. */
void mt_histogram_join(mt_histogram *h, const mt_histogram *other);

typedef struct mt_stats {
    /* now */
    size_t running, waiting;
    size_t pages_total[MT_KV_GROUPS], pages_held[MT_KV_GROUPS]; /* held by sequences */
    size_t pages_known;                                         /* nodes of the prefix tree */
    size_t media_known, media_bytes, media_total; /* pictures with a number; bytes of features, and what they may be */
    size_t states_total, states_held, states_known; /* held by sequences; anchors of the tree */
    uint64_t repeated;                              /* answers that went in circles */
    uint64_t bytes_memory;                          /* that there may be in all */
    uint64_t device_bytes, device_memory;           /* of a device that has its own: taken, and what there was */
    bool device_lost;                               /* it has failed and could not be opened anew */
    uint64_t bytes_weights, bytes_cache, bytes_working, bytes_constraints, bytes_pictures, bytes_requests;

    /* so far */
    uint64_t steps, step_rows;
    uint64_t slow_steps; /* that took longer than they may, and are named in the log */
    double step_seconds;
    uint64_t prompt_tokens, cached_tokens, generated_tokens;
    uint64_t lookups, misses[MT_MISS_COUNT]; /* by reason; those of MT_MISS_NONE found all they could */
    uint64_t media_hits, media_misses;       /* parts of pictures whose features were there, or were encoded */
    uint64_t media_evictions;
    double encode_seconds, encode_work; /* of the encoder, in seconds and in products */
    uint64_t evictions, state_evictions, preemptions;
    uint64_t yields;                               /* of the preemptions, those for another client's sake */
    uint64_t drafts, draft_tokens, draft_accepted; /* steps of an answer with guesses; guesses; right ones */
    uint64_t answer_steps;                         /* of all answers: each gave one token, or several */
    uint64_t canary_faults;                        /* pages and states that were written while they were free */
    mt_masks_stats masks;                          /* of constraints */
    uint64_t finished[4];                          /* by mt_finish */
    uint64_t device_faults;                        /* how often the device failed and was opened anew */
    mt_histogram queue, prefill, first_token, inter_token, end_to_end, step, encode;
    mt_histogram inference, decode; /* of an answer: from its place to its end, from its first token to its last */
    mt_histogram token_pace;        /* of an answer: decode over its tokens but the first */
    mt_histogram step_tokens;       /* counts, and so are all below */
    mt_histogram answer_prompt, answer_computed, answer_tokens; /* tokens of an answer: prompt, not cached, generated */
    mt_histogram wanted_choices, wanted_tokens;                 /* that requests asked for */
    mt_keep_stats keep;                                         /* what went to a tier and came back */
    mt_shelf_stats shelf;                                       /* in the host's memory */
} mt_stats;

/* Adds what another has counted so far; what is now stays. */
void mt_stats_join(mt_stats *s, const mt_stats *other);

#endif
