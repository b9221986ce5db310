/* Layer groups: layers whose keys and values are kept alike share pages. A family declares them (models/spec.h). */
#ifndef MT_CACHE_GROUP_H
#define MT_CACHE_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

/* Group 0 keeps every position. The others keep a window's worth, where UINT32_MAX is all; 0 is not allowed. */
typedef struct mt_cache_groups {
    size_t count;                  /* 1 to MT_KV_GROUPS */
    uint32_t window[MT_KV_GROUPS]; /* keys a query sees, itself included; of group 0 not used */
    size_t states;                 /* slots for recurrent states; 0: the model has none */
} mt_cache_groups;

/* The first position whose keys must lie in pages for a query at `position` of a layer with this window. Attention
   takes keys in whole segments, so what is kept begins at a segment. */
static inline size_t mt_window_begin(size_t position, uint32_t window)
{
    return position + 1 <= window ? 0 : (position + 1 - window) / MT_KV_SEGMENT * MT_KV_SEGMENT;
}

#endif
