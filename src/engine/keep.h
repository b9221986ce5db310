/* What is computed outlives memory and the process: whole pages, recurrent states and features of pictures go to a
   tier, and come back from there. See keep.c. */
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
struct mt_sight;

typedef struct mt_keep mt_keep;

/* Of a sequence. */
typedef struct mt_kept {
    uint8_t (*digest)[MT_TIER_KEY]; /* of its first `digests` whole pages, each with all before it */
    size_t digests, digest_cap;
    size_t stored; /* pages from the first that have been looked at */
    size_t next;   /* page that is to be asked for; those from `come` on are on their way */
    size_t come;
    size_t end;             /* where the pages end that come back; 0: it waits for none */
    size_t state;           /* the position whose state comes back, before them; 0: none */
    bool asked, brought;    /* the state */
    unsigned losses;        /* how often what was expected has not come */
    size_t sought;          /* parts of pictures before this one are not asked for any more */
    bool asking, heard;     /* a store on the network is, or was, asked what pages and states it has */
    bool glancing, glanced; /* the same for features */
} mt_kept;

/* Whether it waits for something. */
static inline bool mt_kept_waits(const mt_kept *kept)
{
    return kept->end > 0 || kept->asking;
}

typedef struct mt_keep_stats {
    uint64_t stored_pages, stored_states, stored_features; /* handed to the tier; features: pieces of a picture's */
    uint64_t skipped;                                      /* that it had no time for */
    uint64_t restored_pages, restored_states, restored_features; /* features: parts of pictures */
    uint64_t failed;                                             /* that did not come back though the tier had them */
} mt_keep_stats;

/* identity: of the weights. wake is called on another thread when there is something for mt_keep_turn. NULL with a
   sentence. Free with mt_keep_free, which waits for what is being written. */
mt_keep *mt_keep_new(struct mt_engine *e, const mt_tiers *tiers, const uint8_t identity[32],
                     void (*wake)(struct mt_engine *e), mt_error *err) MT_NODISCARD;
void mt_keep_free(mt_keep *keep);

/* What the digests of all pages begin with, before the salt. */
const uint8_t *mt_keep_root(const mt_keep *keep);

/* Bytes that it takes for what is on its way. */
uint64_t mt_keep_bytes(const struct mt_engine *e);

/* ---- on the engine's thread; keep may be NULL in all of them ---- */

/* A sequence has its place, and what the tree had. Whether something more comes back: then it has no rows until that
   is there. */
bool mt_keep_begin(struct mt_engine *e, struct mt_sequence *s);

/* A sequence goes, or goes back to the queue. What it has computed is stored as far as there is time. */
void mt_keep_leave(struct mt_engine *e, struct mt_sequence *s);

/* Between steps: takes what has come back, stores what was computed. Returns a sequence that must go back to the queue,
   since the state it needs has not come; NULL: none. */
struct mt_sequence *mt_keep_turn(struct mt_engine *e);

/* There is nothing else to do: waits for what the device is giving and taking. False when there is nothing. */
bool mt_keep_rest(struct mt_engine *e);

/* A part of a picture was encoded, soundly: its features are stored as far as there is time. */
void mt_keep_encoded(struct mt_engine *e, const struct mt_request *r, const struct mt_sight *sight);

/* Asks a store on the network, once, for features that s lacks; whether s waits for the answer. */
bool mt_keep_ask_features(struct mt_engine *e, struct mt_sequence *s);

/* Has features of a part, which has none, come back where the tier has them and that is quicker than making them; false
   elsewhere. Its medium is being filled then, if there is room for it. There must be a view free. */
bool mt_keep_views_free(const struct mt_engine *e);
bool mt_keep_view(struct mt_engine *e, const struct mt_request *r, const struct mt_sight *sight);

/* Pages are short, or rows of features: lets go of those that wait to be stored; else, if it is worth waiting, of those
   that are being stored. False when there were none. */
bool mt_keep_yield(struct mt_engine *e, bool waits);

void mt_kept_free(mt_kept *kept);

#endif
