/* The disk tier: a folder of bounded size that outlives the process, in which records are found by key as long as there
   is room. See disk.c. All functions may be called from any thread; reading and writing wait for the disk. */
#ifndef MT_TIER_DISK_H
#define MT_TIER_DISK_H

#include <stdatomic.h>

#include "tier/limits.h"
#include "tier/segment.h"

typedef struct mt_disk mt_disk;

typedef struct mt_disk_params {
    const char *folder; /* made where it does not exist; its parent must exist */
    uint64_t bytes;     /* limit for all files together, at least MT_LIMIT_DISK_LEAST */
    size_t entries;     /* most records that the index knows; it takes 32 to 64 bytes of memory for each */
} mt_disk_params;

/* NULL with a sentence where the folder cannot be used; err->code is MT_E_BUSY where another process uses it. Records
   of earlier processes are not known before mt_disk_scan. Free with mt_disk_close. */
mt_disk *mt_disk_open(const mt_disk_params *params, mt_error *err) MT_NODISCARD;
void mt_disk_close(mt_disk *disk); /* when no call is under way any more; NULL is fine */

/* Adds the records of earlier processes to the index, the newest first. Call once; other calls may run meanwhile. Ends
   early when *stop becomes true. */
void mt_disk_scan(mt_disk *disk, const atomic_bool *stop);

/* Whether the index has a record with that key. Reading it may fail all the same. */
bool mt_disk_has(mt_disk *disk, const uint8_t key[MT_TIER_KEY]);

/* Reads a record into parts of the sizes with which it was written. False where there is none, its kind or sizes
   differ, or its checksum is wrong; then the parts hold anything, and a broken record is removed from the index. */
bool mt_disk_read(mt_disk *disk, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                  size_t parts) MT_NODISCARD;

/* Stores a record; the oldest records make room. Does nothing where a record has that key, or for some time after
   writing has failed. */
void mt_disk_write(mt_disk *disk, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                   size_t parts);

/* Removes all records, and their files. What other threads write meanwhile may stay. */
void mt_disk_clear(mt_disk *disk);

/* Calls `tell`, on any thread, for every record that is removed from the index, until mt_disk_unwatch with the same
   ctx. At most MT_DISK_WATCHERS watch; further ones are ignored. mt_disk_unwatch ignores a ctx that does not watch, and
   NULL. */
#define MT_DISK_WATCHERS 64
typedef void mt_disk_listener(void *ctx, const uint8_t key[MT_TIER_KEY], uint32_t kind);
void mt_disk_watch(mt_disk *disk, mt_disk_listener *tell, void *ctx);
void mt_disk_unwatch(mt_disk *disk, void *ctx);

typedef struct mt_disk_stats {
    uint64_t bytes, limit; /* size of all files, and its limit */
    uint64_t records;      /* in the index */
    /* records */
    uint64_t written, read, missed;
    uint64_t broken;   /* records that were not as written */
    uint64_t moved;    /* records that were read before and therefore copied when their file was removed */
    uint64_t dropped;  /* files removed to make room */
    uint64_t unusable; /* files removed since they were no segments of this version */
    uint64_t lost;     /* bytes of earlier processes' files that belong to no whole record */
    bool scanned;      /* mt_disk_scan is complete */
    bool failed;       /* writing has failed: nothing is stored until it works again, reading goes on */
} mt_disk_stats;

mt_disk_stats mt_disk_look(mt_disk *disk);

#endif
