/* A folder of segments as a store of bounded size that outlives the process: what was written is found by its key, as
   long as there is room. See disk.c. All functions may be called from any thread; reading and writing wait for the
   disk. */
#ifndef MT_TIER_DISK_H
#define MT_TIER_DISK_H

#include <stdatomic.h>

#include "tier/segment.h"

typedef struct mt_disk mt_disk;

typedef struct mt_disk_params {
    const char *folder; /* made where it is not there; its parent is */
    uint64_t bytes;     /* of all files together, at least MT_LIMIT_DISK_LEAST */
    size_t entries;     /* most records that are known at a time; their index takes 32 to 64 bytes each */
} mt_disk_params;

/* NULL with a sentence where the folder cannot be used; err->code is MT_E_BUSY where another process has it. What was
   in it is not known before mt_disk_scan. Free with mt_disk_close. */
mt_disk *mt_disk_open(const mt_disk_params *params, mt_error *err) MT_NODISCARD;
void mt_disk_close(mt_disk *disk); /* when nobody is in a call any more; NULL is fine */

/* Learns what earlier processes have left, the newest first; once, beside all other calls. Ends early when *stop is
   set. */
void mt_disk_scan(mt_disk *disk, const atomic_bool *stop);

/* Whether there is a record of that key; to be found later, or not, when it is read. */
bool mt_disk_has(mt_disk *disk, const uint8_t key[MT_TIER_KEY]);

/* Reads a record into parts of the sizes it was written with. False where there is none, it is not of that kind and
   those sizes, or it is not whole; then parts hold anything, and what is broken is forgotten. */
bool mt_disk_read(mt_disk *disk, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                  size_t parts) MT_NODISCARD;

/* Keeps a record, at the cost of others. Does nothing where there is one of that key, or the disk has failed. */
void mt_disk_write(mt_disk *disk, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                   size_t parts);

/* `tell` hears, on any thread, of every record that is not there any more, until mt_disk_unwatch for the same ctx
   (NULL, and one that does not listen, are fine). There is no place for more than MT_DISK_WATCHERS, who hear nothing
   then. */
#define MT_DISK_WATCHERS 64
typedef void mt_disk_listener(void *ctx, const uint8_t key[MT_TIER_KEY], uint32_t kind);
void mt_disk_watch(mt_disk *disk, mt_disk_listener *tell, void *ctx);
void mt_disk_unwatch(mt_disk *disk, void *ctx);

typedef struct mt_disk_stats {
    uint64_t bytes, limit; /* of all files */
    uint64_t records;      /* that are known */
    uint64_t written, read, missed;
    uint64_t broken;   /* that were not what was written */
    uint64_t moved;    /* that were used, and so kept when their file went */
    uint64_t dropped;  /* files that made way, */
    uint64_t unusable; /* or were none of ours */
    uint64_t lost;     /* bytes of earlier processes' files that are in no whole record */
    bool scanned;      /* what was left is known */
    bool failed;       /* nothing is kept any more; what is there is read as far as that works */
} mt_disk_stats;

mt_disk_stats mt_disk_look(mt_disk *disk);

#endif
