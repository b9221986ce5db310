/* Where records are kept, the nearest first: in the host's memory where the device has its own, on a disk,
   in a store that others share. */
#ifndef MT_TIER_TIERS_H
#define MT_TIER_TIERS_H

#include "tier/depot.h"
#include "tier/disk.h"
#include "tier/shelf.h"

typedef enum mt_tier { MT_TIER_HOST, MT_TIER_DISK, MT_TIER_REMOTE, MT_TIER_COUNT } mt_tier;

/* Those that there are; all are borrowed. */
typedef struct mt_tiers {
    mt_shelf *shelf;
    mt_disk *disk;
    mt_depot *remote;
} mt_tiers;

/* The nearest one that has a record of that key; MT_TIER_COUNT: none. */
mt_tier mt_tiers_find(const mt_tiers *tiers, const uint8_t key[MT_TIER_KEY]);

/* Whether one that could keep it has it not. */
bool mt_tiers_lack(const mt_tiers *tiers, const uint8_t key[MT_TIER_KEY]);

/* Reads it from a tier, or where that has it not any more from one below, but nothing from afar: those are read
   together (mt_depot_read). *from says which it was. */
bool mt_tiers_read(const mt_tiers *tiers, mt_tier *from, const uint8_t key[MT_TIER_KEY], uint32_t kind,
                   const mt_tier_part part[], size_t parts) MT_NODISCARD;

/* Each that has it not keeps it. */
void mt_tiers_write(const mt_tiers *tiers, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                    size_t parts);

#endif
