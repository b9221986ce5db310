/* A record's header, wherever the record is kept: what it is, how long its parts are, and what they must add up to. */
#ifndef MT_TIER_RECORD_H
#define MT_TIER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_TIER_KEY 32
#define MT_TIER_PARTS 6 /* most parts of a record */
#define MT_RECORD_HEADER 128

/* A piece of what is kept. Those of a record follow each other; each comes back with the length that it had. */
typedef struct mt_tier_part {
    void *data;
    size_t size;
} mt_tier_part;

/* A record as its header has it. */
typedef struct mt_record {
    uint8_t key[MT_TIER_KEY];
    uint64_t at;    /* where its header begins */
    uint64_t bytes; /* of the file, its header and what fills it up included */
    uint64_t size[MT_TIER_PARTS];
    uint32_t parts;
    uint32_t kind;
    uint32_t sum; /* CRC32C of its parts */
} mt_record;

/* nonce: of the file that it is in; 0 elsewhere. */
void mt_record_write(uint8_t header[MT_RECORD_HEADER], const uint8_t key[MT_TIER_KEY], uint32_t kind,
                     const mt_tier_part part[], size_t parts, uint64_t nonce);

/* What a header says, but for where it is; false where it is none, or its parts have more than so many bytes. */
bool mt_record_read(mt_record *record, const uint8_t header[MT_RECORD_HEADER], uint64_t nonce, uint64_t most);

/* Whether it is of that key and kind, and its parts are as long as these; and whether these are what was written. */
bool mt_record_matches(const mt_record *record, const uint8_t key[MT_TIER_KEY], uint32_t kind,
                       const mt_tier_part part[], size_t parts);
bool mt_record_is_whole(const mt_record *record, const mt_tier_part part[], size_t parts);

#endif
