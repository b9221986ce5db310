/* A cache of token masks with a fixed number of bytes; the least recently used masks are evicted. Used by the engine's
   thread. */
#ifndef MT_CONSTRAINT_MASKS_H
#define MT_CONSTRAINT_MASKS_H

#include "constraint/constraint.h"

typedef struct mt_masks mt_masks;

typedef struct mt_masks_stats {
    uint64_t asked, computed; /* masks asked for, and those that had to be computed */
    uint64_t computing_ns;
} mt_masks_stats;

/* words: of a mask. Has room for at least `least` masks, whatever bytes says. Free with mt_masks_free. */
mt_masks *mt_masks_new(size_t words, size_t least, size_t bytes);
void mt_masks_free(mt_masks *m); /* NULL is fine */

/* The mask of the tokens that may follow; NULL where the run has failed. Masks asked for since the last mt_masks_round
   stay valid, up to `least` of them. */
const uint32_t *mt_masks_get(mt_masks *m, mt_run *run);
void mt_masks_round(mt_masks *m);
bool mt_masks_room(const mt_masks *m); /* whether another mask may be asked for in this round */

const mt_masks_stats *mt_masks_stats_of(const mt_masks *m);

#endif
