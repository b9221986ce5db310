/* The header of a record, the same in a file and in the remote store: key, kind, lengths of the parts, checksums. */
#ifndef MT_TIER_RECORD_H
#define MT_TIER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_TIER_KEY 32       /* bytes of a key: a SHA-256 digest */
#define MT_TIER_PARTS 6      /* most parts of a record */
#define MT_RECORD_HEADER 128 /* bytes */

/* A piece of a record's content. A record has its parts one after the other, and each is read back with its length. */
typedef struct mt_tier_part {
    void *data;
    size_t size;
} mt_tier_part;

/* A record as its header describes it. */
typedef struct mt_record {
    uint8_t key[MT_TIER_KEY];
    uint64_t at;    /* where the header begins in its file */
    uint64_t bytes; /* in the file: header, parts and padding */
    uint64_t size[MT_TIER_PARTS];
    uint32_t parts;
    uint32_t kind; /* what it holds: a page, a state, features (engine/keep_inside.h) */
    uint32_t sum;  /* CRC32C of its parts */
} mt_record;

/* Fills the header. nonce: that of the file the record is in (segment.h); 0 elsewhere. */
void mt_record_write(uint8_t header[MT_RECORD_HEADER], const uint8_t key[MT_TIER_KEY], uint32_t kind,
                     const mt_tier_part part[], size_t parts, uint64_t nonce);

/* Reads a header; sets `at` to 0, and `bytes` to the sum of the parts. False where it is no valid header with this
   nonce, or the parts have more than `most` bytes. */
bool mt_record_read(mt_record *record, const uint8_t header[MT_RECORD_HEADER], uint64_t nonce, uint64_t most);

/* Whether the record has that key, kind and these lengths; and whether these parts have the record's checksum. */
bool mt_record_matches(const mt_record *record, const uint8_t key[MT_TIER_KEY], uint32_t kind,
                       const mt_tier_part part[], size_t parts);
bool mt_record_is_whole(const mt_record *record, const mt_tier_part part[], size_t parts);

#endif
