/* Cache tiers: whole pages, recurrent states and features of pictures are stored outside the device's memory (host
   store, disk, remote store) and read back later, also by other processes. The engine's thread calls these functions.
   See keep.c. */
#ifndef MT_ENGINE_KEEP_H
#define MT_ENGINE_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "tier/tiers.h"

struct mt_engine;
struct mt_request;
struct mt_sequence;
struct mt_media_part;

/* The engine's connection to its tiers. */
typedef struct mt_keep mt_keep;

/* The pages and states of one sequence that tiers have. A page is counted from the start of the sequence, in units of
   MT_PAGE_TOKENS. */
typedef struct mt_kept {
    uint8_t (*digest)[MT_TIER_KEY]; /* keys of its first `digests` whole pages; each digest covers all text before it */
    size_t digests, digest_cap;
    size_t stored;       /* pages from the first on that were stored or found stored */
    size_t next;         /* next page to ask the tiers for; pages [come, next) are being read */
    size_t come;         /* pages before this one have been read */
    size_t end;          /* the page behind the last that is to be read; 0: it waits for no pages */
    size_t state;        /* the position whose recurrent state is to be read; 0: none */
    bool asked, brought; /* whether that state was asked for, and has been read */
    unsigned losses;     /* how often a record that a tier was said to have did not come */
    size_t sought;       /* parts of pictures before this one are not asked for any more */
    bool asking, heard;  /* the remote store is being asked, or was asked, which pages and states it has */
    bool asking_features, asked_features; /* the remote store is being asked, or was asked, which features it has */
} mt_kept;

/* Whether the sequence waits for a tier: then it has no rows in a step. */
static inline bool mt_kept_waits(const mt_kept *kept)
{
    return kept->end > 0 || kept->asking;
}

typedef struct mt_keep_stats {
    /* handed to the tiers; of features: pieces of MT_KEEP_ROWS rows */
    uint64_t stored_pages, stored_states, stored_features;
    uint64_t skipped;                                            /* not stored, since the backlog was full */
    uint64_t restored_pages, restored_states, restored_features; /* read back; of features: whole parts of pictures */
    uint64_t failed; /* records that a tier was said to have and that did not come */
} mt_keep_stats;

/* identity: digest of the weights. wake: called on another thread when mt_keep_turn has something to do. NULL on
   failure, with a sentence. Free with mt_keep_free, which waits until what is being written is written. */
mt_keep *mt_keep_new(struct mt_engine *e, const mt_tiers *tiers, const uint8_t identity[32],
                     void (*wake)(struct mt_engine *e), mt_error *err) MT_NODISCARD;
void mt_keep_free(mt_keep *keep);

/* The digest that the keys of all pages begin with, before the salt. */
const uint8_t *mt_keep_root(const mt_keep *keep);

/* Bytes of host memory for records on their way to and from the tiers. */
uint64_t mt_keep_bytes(const struct mt_engine *e);

/* ---- on the engine's thread; e->keep may be NULL in all of them ---- */

/* Called when a sequence gets its seat and has what the prefix tree has. True when more is read from a tier: then it
   has no rows until that has come. */
bool mt_keep_begin(struct mt_engine *e, struct mt_sequence *s);

/* Called when a sequence ends or goes back to the queue: stops reading for it, and queues what it computed to be
   stored. */
void mt_keep_leave(struct mt_engine *e, struct mt_sequence *s);

/* Called between steps: puts what was read into sequences, and queues what was computed to be stored. Returns a
   sequence that must go back to the queue because the state it needs did not come; NULL: none. */
struct mt_sequence *mt_keep_turn(struct mt_engine *e);

/* Called when there is nothing to compute: waits until the device has finished a transfer. False when none is under
   way. */
bool mt_keep_rest(struct mt_engine *e);

/* A part of a picture was encoded and its features are finite: queues them to be stored. */
void mt_keep_encoded(struct mt_engine *e, const struct mt_request *r, const struct mt_media_part *part);

/* Asks the remote store, once a sequence, for features that s lacks. Whether s waits for the answer. */
bool mt_keep_ask_features(struct mt_engine *e, struct mt_sequence *s);

/* mt_keep_view begins to read the features of a part from a tier, where a tier has them and reading is expected to be
   quicker than encoding; else false. True also where the feature cache has no room now: then nothing is begun, and it
   may be called again. Call only where mt_keep_views_free is true. */
bool mt_keep_views_free(const struct mt_engine *e);
bool mt_keep_view(struct mt_engine *e, const struct mt_request *r, const struct mt_media_part *part);

/* Called when pages or rows of features are short: drops what is queued to be stored; or else, where `waits`, waits
   until what is being stored is written. False when there was neither. */
bool mt_keep_yield(struct mt_engine *e, bool waits);

void mt_kept_free(mt_kept *kept);

#endif
