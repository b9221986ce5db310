/* Groups: layers whose pages have the same shape and keep equally many positions share their pages. A model's family
   says which (models/spec.h). */
#ifndef MT_CACHE_GROUP_H
#define MT_CACHE_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "device/batch.h"

/* Group 0 keeps every position. Each other group keeps those that its window needs; UINT32_MAX: every position. */
typedef struct mt_cache_groups {
    size_t count;                  /* 1 to MT_KV_GROUPS */
    uint32_t window[MT_KV_GROUPS]; /* how many keys a query sees, its own included; not 0; not used for group 0 */
    size_t states;                 /* slots for recurrent states; 0: the model has none */
    size_t spare;                  /* more of them, for steps that are begun ahead (mt_seq_follow) */
} mt_cache_groups;

/* The first position whose keys must be in pages for a query at `position` in a layer with this window. Attention reads
   keys in segments of MT_KV_SEGMENT, so the result is the start of a segment. */
static inline size_t mt_window_begin(size_t position, uint32_t window)
{
    return position + 1 <= window ? 0 : (position + 1 - window) / MT_KV_SEGMENT * MT_KV_SEGMENT;
}

#endif
