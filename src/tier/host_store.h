/* The host store: records in the host's memory, below a device with memory of its own. Bounded; the least recently used
   records are evicted first. See host_store.c. All functions may be called from any thread. */
#ifndef MT_TIER_HOST_STORE_H
#define MT_TIER_HOST_STORE_H

#include "base/compiler.h"
#include "tier/record.h"

typedef struct mt_host_store mt_host_store;

/* bytes: of the whole host store, the index included; usual: size of a typical record. NULL where the system has not so
   much memory, or it is too little to be of use. Physical memory is used only as records come. Free with
   mt_host_store_free. */
mt_host_store *mt_host_store_new(uint64_t bytes, size_t usual);
void mt_host_store_free(mt_host_store *host_store); /* NULL is fine */

bool mt_host_store_has(mt_host_store *host_store, const uint8_t key[MT_TIER_KEY]);

/* Copies a record into parts of the sizes with which it was written. False where there is none, or its kind or sizes
   differ. */
bool mt_host_store_read(mt_host_store *host_store, const uint8_t key[MT_TIER_KEY], uint32_t kind,
                        const mt_tier_part part[], size_t parts) MT_NODISCARD;

/* Stores a copy of a record; the least recently used records make room. */
void mt_host_store_write(mt_host_store *host_store, const uint8_t key[MT_TIER_KEY], uint32_t kind,
                         const mt_tier_part part[], size_t parts);

/* Evicts all records. None of them is found from then on; those that other threads are reading or writing are evicted
   when these are done. */
void mt_host_store_clear(mt_host_store *host_store);

/* Sets the function that is called when a marked record is evicted; before anything is written. Called with the host
   store's lock held. */
typedef void mt_host_store_listener(void *ctx, const uint8_t key[MT_TIER_KEY], uint32_t kind);

void mt_host_store_watch(mt_host_store *host_store, mt_host_store_listener *tell, void *ctx);

/* mt_host_store_is_new: whether there is a record with that key that is not marked. mt_host_store_mark marks it; false
   where it was evicted. */
bool mt_host_store_is_new(mt_host_store *host_store, const uint8_t key[MT_TIER_KEY]);
bool mt_host_store_mark(mt_host_store *host_store, const uint8_t key[MT_TIER_KEY]);

typedef struct mt_host_store_stats {
    uint64_t bytes, limit; /* used by records, and the most */
    uint64_t records, written, read, evicted;
} mt_host_store_stats;

mt_host_store_stats mt_host_store_look(mt_host_store *host_store);

#endif
