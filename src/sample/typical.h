/* Locally typical sampling (Meister and others, 2022). Used by sampler.c. */
#ifndef MT_SAMPLE_TYPICAL_H
#define MT_SAMPLE_TYPICAL_H

#include <stddef.h>
#include <stdint.h>

#include "sample/candidates.h"

/* Of the first `count` candidates, with the mass *total, keeps those whose information is nearest to the entropy, until
   they hold typical_p of the mass; at least one. *kept: their positions, ascending; *total becomes their mass. Returns
   how many. *kept lies in c->ranking->spare, which sorting uses too: it is valid until a candidate behind `count` is
   looked at or another ranking starts in the same memory. */
size_t mt_typical(const mt_candidates *c, size_t count, float typical_p, uint64_t *total, const uint32_t **kept);

#endif
