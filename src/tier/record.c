/* The layout of a record's header (record.h): 128 bytes, all numbers little-endian. "MTRC", version, kind, number of
   parts, CRC32C of the parts, nonce of the file, lengths of the parts, key, CRC32C of all of this. */
#include "tier/record.h"

#include <assert.h>
#include <string.h>

#include "base/crc32c.h"
#include "tier/bytes.h"

enum { VERSION = 1 };

static const char magic[4] = {'M', 'T', 'R', 'C'};

/* byte offsets in the header */
enum {
    AT_VERSION = 4,
    AT_KIND = 8,
    AT_PARTS = 12,
    AT_SUM = 16,
    AT_NONCE = 24,
    AT_SIZES = 32,
    AT_KEY = 80,
    AT_OWN = 124
};
static_assert(AT_SIZES + 8 * MT_TIER_PARTS == AT_KEY && AT_KEY + MT_TIER_KEY <= AT_OWN, "it fits");
static_assert(AT_OWN + 4 == MT_RECORD_HEADER, "it fits");

static uint32_t sum_of(const mt_tier_part part[], size_t parts)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < parts; i++)
        sum = mt_crc32c(sum, part[i].data, part[i].size);
    return sum;
}

void mt_record_write(uint8_t header[MT_RECORD_HEADER], const uint8_t key[MT_TIER_KEY], uint32_t kind,
                     const mt_tier_part part[], size_t parts, uint64_t nonce)
{
    assert(parts > 0 && parts <= MT_TIER_PARTS);
    memset(header, 0, MT_RECORD_HEADER);
    memcpy(header, magic, sizeof(magic));
    mt_put32(header + AT_VERSION, VERSION);
    mt_put32(header + AT_KIND, kind);
    mt_put32(header + AT_PARTS, (uint32_t)parts);
    mt_put32(header + AT_SUM, sum_of(part, parts));
    mt_put64(header + AT_NONCE, nonce);
    for (size_t i = 0; i < parts; i++)
        mt_put64(header + AT_SIZES + 8 * i, part[i].size);
    memcpy(header + AT_KEY, key, MT_TIER_KEY);
    mt_put32(header + AT_OWN, mt_crc32c(0, header, AT_OWN));
}

bool mt_record_read(mt_record *r, const uint8_t header[MT_RECORD_HEADER], uint64_t nonce, uint64_t most)
{
    uint64_t size = 0;
    if (memcmp(header, magic, sizeof(magic)) != 0 || mt_get32(header + AT_VERSION) != VERSION ||
        mt_get64(header + AT_NONCE) != nonce || mt_get32(header + AT_OWN) != mt_crc32c(0, header, AT_OWN))
        return false;
    *r = (mt_record){
        .parts = mt_get32(header + AT_PARTS), .kind = mt_get32(header + AT_KIND), .sum = mt_get32(header + AT_SUM)};
    if (r->parts == 0 || r->parts > MT_TIER_PARTS)
        return false;
    memcpy(r->key, header + AT_KEY, MT_TIER_KEY);
    for (uint32_t i = 0; i < r->parts; i++) {
        r->size[i] = mt_get64(header + AT_SIZES + 8 * (size_t)i);
        if (r->size[i] > most - size) /* so that the sum cannot overflow */
            return false;
        size += r->size[i];
    }
    r->bytes = size;
    return true;
}

bool mt_record_matches(const mt_record *r, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                       size_t parts)
{
    bool same = memcmp(r->key, key, MT_TIER_KEY) == 0 && r->kind == kind && r->parts == parts;
    for (size_t i = 0; same && i < parts; i++)
        same = r->size[i] == part[i].size;
    return same;
}

bool mt_record_is_whole(const mt_record *r, const mt_tier_part part[], size_t parts)
{
    return sum_of(part, parts) == r->sum;
}
