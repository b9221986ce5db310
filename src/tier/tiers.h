/* All tiers of an engine as one, the nearest first: the host store in the host's memory, the disk, the remote store on
   the network. */
#ifndef MT_TIER_TIERS_H
#define MT_TIER_TIERS_H

#include "tier/disk.h"
#include "tier/host_store.h"
#include "tier/remote.h"

typedef enum mt_tier { MT_TIER_HOST, MT_TIER_DISK, MT_TIER_REMOTE, MT_TIER_COUNT } mt_tier;

/* The tiers that exist, NULL for others; all are borrowed. */
typedef struct mt_tiers {
    mt_host_store *host_store;
    mt_disk *disk;
    mt_remote_store *remote;
} mt_tiers;

/* The nearest tier that has a record with that key; MT_TIER_COUNT: none has. */
mt_tier mt_tiers_find(const mt_tiers *tiers, const uint8_t key[MT_TIER_KEY]);

/* Whether some tier lacks a record with that key and would store it. */
bool mt_tiers_lack(const mt_tiers *tiers, const uint8_t key[MT_TIER_KEY]);

/* Reads a record from tier *from or, where that no longer has it, from a farther one; *from says which it was. Never
   reads from the remote store: several records are read from there at once (mt_remote_store_read). */
bool mt_tiers_read(const mt_tiers *tiers, mt_tier *from, const uint8_t key[MT_TIER_KEY], uint32_t kind,
                   const mt_tier_part part[], size_t parts) MT_NODISCARD;

/* Stores the record in each tier that does not have it. */
void mt_tiers_write(const mt_tiers *tiers, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                    size_t parts);

#endif
