/* Masks that were computed, within a fixed number of bytes: those not used for longest make room. The engine's. */
#ifndef MT_SAMPLE_CONSTRAINT_MASKS_H
#define MT_SAMPLE_CONSTRAINT_MASKS_H

#include "sample/constraint/constraint.h"

typedef struct mt_masks mt_masks;

typedef struct mt_masks_stats {
    uint64_t asked, computed;
    uint64_t computing_ns;
} mt_masks_stats;

/* words: of a mask. Room for at least `least` of them. Free with mt_masks_free. */
mt_masks *mt_masks_new(size_t words, size_t least, size_t bytes);
void mt_masks_free(mt_masks *m); /* NULL is fine */

/* The tokens that may follow; NULL when the run has failed. Of those asked for since the last mt_masks_round at least
   `least` stay as they are. */
const uint32_t *mt_masks_get(mt_masks *m, mt_run *run);
void mt_masks_round(mt_masks *m);
bool mt_masks_room(const mt_masks *m); /* whether one more may be asked for in this round */

const mt_masks_stats *mt_masks_stats_of(const mt_masks *m);

#endif
