/* The shelf: records in the host's memory, below a device with memory of its own. Bounded; the least recently used
   records are evicted first. See shelf.c. All functions may be called from any thread. */
#ifndef MT_TIER_SHELF_H
#define MT_TIER_SHELF_H

#include "base/compiler.h"
#include "tier/record.h"

typedef struct mt_shelf mt_shelf;

/* bytes: of the whole shelf, the index included; usual: size of a typical record. NULL where the system has not so much
   memory, or it is too little to be of use. Physical memory is used only as records come. Free with mt_shelf_free. */
mt_shelf *mt_shelf_new(uint64_t bytes, size_t usual);
void mt_shelf_free(mt_shelf *shelf); /* NULL is fine */

bool mt_shelf_has(mt_shelf *shelf, const uint8_t key[MT_TIER_KEY]);

/* Copies a record into parts of the sizes with which it was written. False where there is none, or its kind or sizes
   differ. */
bool mt_shelf_read(mt_shelf *shelf, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                   size_t parts) MT_NODISCARD;

/* Stores a copy of a record; the least recently used records make room. */
void mt_shelf_write(mt_shelf *shelf, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                    size_t parts);

void mt_shelf_clear(mt_shelf *shelf); /* evicts all records that are not being read */

/* Sets who is called when a marked record is evicted; before anything is written. Called with the shelf's lock held. */
typedef void mt_shelf_listener(void *ctx, const uint8_t key[MT_TIER_KEY], uint32_t kind);

void mt_shelf_watch(mt_shelf *shelf, mt_shelf_listener *tell, void *ctx);

/* mt_shelf_is_new: whether there is a record with that key that is not marked. mt_shelf_mark marks it; false where it
   was evicted. */
bool mt_shelf_is_new(mt_shelf *shelf, const uint8_t key[MT_TIER_KEY]);
bool mt_shelf_mark(mt_shelf *shelf, const uint8_t key[MT_TIER_KEY]);

typedef struct mt_shelf_stats {
    uint64_t bytes, limit; /* used by records, and the most */
    uint64_t records, written, read, evicted;
} mt_shelf_stats;

mt_shelf_stats mt_shelf_look(mt_shelf *shelf);

#endif
