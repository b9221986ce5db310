/* All tiers of an engine as one (tiers.h). */
#include "tier/tiers.h"

static bool has(const mt_tiers *t, mt_tier tier, const uint8_t key[MT_TIER_KEY])
{
    switch (tier) {
    case MT_TIER_HOST: return t->host_store && mt_host_store_has(t->host_store, key);
    case MT_TIER_DISK: return t->disk && mt_disk_has(t->disk, key);
    case MT_TIER_REMOTE: return t->remote && mt_remote_store_has(t->remote, key);
    case MT_TIER_COUNT: break;
    }
    return false;
}

mt_tier mt_tiers_find(const mt_tiers *t, const uint8_t key[MT_TIER_KEY])
{
    mt_tier tier = MT_TIER_HOST;
    while (tier < MT_TIER_COUNT && !has(t, tier, key))
        tier++;
    return tier;
}

bool mt_tiers_lack(const mt_tiers *t, const uint8_t key[MT_TIER_KEY])
{
    return (t->host_store && !mt_host_store_has(t->host_store, key)) || (t->disk && !mt_disk_has(t->disk, key)) ||
           (t->remote && mt_remote_store_lacks(t->remote, key));
}

static bool read_from(const mt_tiers *t, mt_tier tier, const uint8_t key[MT_TIER_KEY], uint32_t kind,
                      const mt_tier_part part[], size_t parts)
{
    switch (tier) {
    case MT_TIER_HOST: return t->host_store && mt_host_store_read(t->host_store, key, kind, part, parts);
    case MT_TIER_DISK: return t->disk && mt_disk_read(t->disk, key, kind, part, parts);
    case MT_TIER_REMOTE:
    case MT_TIER_COUNT: break;
    }
    return false;
}

bool mt_tiers_read(const mt_tiers *t, mt_tier *from, const uint8_t key[MT_TIER_KEY], uint32_t kind,
                   const mt_tier_part part[], size_t parts)
{
    for (; *from < MT_TIER_REMOTE; (*from)++)
        if (read_from(t, *from, key, kind, part, parts))
            return true;
    return false;
}

void mt_tiers_write(const mt_tiers *t, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                    size_t parts)
{
    if (t->host_store)
        mt_host_store_write(t->host_store, key, kind, part, parts);
    if (t->disk)
        mt_disk_write(t->disk, key, kind, part, parts);
    if (t->remote)
        mt_remote_store_write(t->remote, key, kind, part, parts);
}
