/* Records in the host's memory, below a device that has its own: bounded, found by their keys, the least lately used go
   first. See shelf.c. All functions may be called from any thread. */
#ifndef MT_TIER_SHELF_H
#define MT_TIER_SHELF_H

#include "base/compiler.h"
#include "tier/record.h"

typedef struct mt_shelf mt_shelf;

/* bytes: of all of it, the index included; usual: of a record. NULL where the system has no room for it, or that is too
   little to be of use. Memory is touched as it is used. Free with mt_shelf_free. */
mt_shelf *mt_shelf_new(uint64_t bytes, size_t usual);
void mt_shelf_free(mt_shelf *shelf); /* NULL is fine */

bool mt_shelf_has(mt_shelf *shelf, const uint8_t key[MT_TIER_KEY]);

/* Copies a record into parts of the sizes it was written with. False where there is none, or it is another. */
bool mt_shelf_read(mt_shelf *shelf, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                   size_t parts) MT_NODISCARD;

/* Keeps a copy of a record, at the cost of others. */
void mt_shelf_write(mt_shelf *shelf, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                    size_t parts);

/* Who is told of records that go, of those that were marked; before anything is written. It is called with the shelf's
   lock held. */
typedef void mt_shelf_listener(void *ctx, const uint8_t key[MT_TIER_KEY], uint32_t kind);

void mt_shelf_watch(mt_shelf *shelf, mt_shelf_listener *tell, void *ctx);

/* Whether there is a record that is not marked. Marking it: false where it has gone. */
bool mt_shelf_is_new(mt_shelf *shelf, const uint8_t key[MT_TIER_KEY]);
bool mt_shelf_mark(mt_shelf *shelf, const uint8_t key[MT_TIER_KEY]);

typedef struct mt_shelf_stats {
    uint64_t bytes, limit; /* of records */
    uint64_t records, written, read, evicted;
} mt_shelf_stats;

mt_shelf_stats mt_shelf_look(mt_shelf *shelf);

#endif
