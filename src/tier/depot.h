/* A store on the network that several servers share (Redis, Valkey): the records of a disk, under the same keys. It may
   be slow, full, gone or lying: then there are fewer hits, and nothing else. See depot.c. All functions may be called
   from any thread. */
#ifndef MT_TIER_DEPOT_H
#define MT_TIER_DEPOT_H

#include "base/compiler.h"
#include "base/error.h"
#include "tier/record.h"

#define MT_DEPOT_BATCH 16    /* records that are read at a time, at most */
#define MT_DEPOT_ASKED 4096  /* keys that are asked for at a time, at most */
#define MT_DEPOT_SECRET 4096 /* bytes of a secret, at most */

typedef struct mt_depot mt_depot;

typedef struct mt_depot_params {
    const char *url;    /* as mt_wire_address_read takes it */
    const void *secret; /* records are signed with it, and others do not count; NULL: no signatures */
    size_t secret_len;
    uint64_t queue; /* bytes that wait to be sent, at most */
    uint64_t rate;  /* bytes a second that are sent, at most; 0: as fast as they come */
} mt_depot_params;

/* Nothing is connected yet. NULL with a sentence. Free with mt_depot_close, which sends what waits as far as that is
   quick. */
mt_depot *mt_depot_open(const mt_depot_params *params, mt_error *err) MT_NODISCARD;
void mt_depot_close(mt_depot *remote); /* NULL is fine */

/* Whether it is known to have a record of that key; and whether it would take one. Neither waits for it. */
bool mt_depot_has(mt_depot *remote, const uint8_t key[MT_TIER_KEY]);
bool mt_depot_lacks(mt_depot *remote, const uint8_t key[MT_TIER_KEY]);

/* Whether asking makes sense now: it is not known to be gone. */
bool mt_depot_is_there(mt_depot *remote);

/* Finds out which of so many records it has, for mt_depot_has. Waits half a second at most. */
void mt_depot_ask(mt_depot *remote, const uint8_t (*key)[MT_TIER_KEY], size_t count);

/* A record that is wanted, into parts of the sizes it was written with. */
typedef struct mt_depot_want {
    const uint8_t *key;
    uint32_t kind;
    const mt_tier_part *part;
    size_t parts;
    bool ok; /* set: it has come, and is what was written */
} mt_depot_want;

/* Reads up to MT_DEPOT_BATCH records at once. Waits two seconds at most. */
void mt_depot_read(mt_depot *remote, mt_depot_want *want, size_t count);

/* Has a copy of a record sent, sooner or later, or not. */
void mt_depot_write(mt_depot *remote, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                    size_t parts);

typedef struct mt_depot_stats {
    uint64_t written, read, missed;
    uint64_t broken;         /* that were not what was written, or are not signed as they must be */
    uint64_t dropped;        /* that there was no room for in the queue, or no store to send them to */
    uint64_t refused;        /* that it would not take: it is full, or we may not write */
    uint64_t failures;       /* how often it could not be reached, or did not answer in time */
    uint64_t sent, received; /* bytes of records */
    uint64_t queued;         /* bytes that wait */
    bool up;                 /* the last that was asked of it was answered */
} mt_depot_stats;

mt_depot_stats mt_depot_look(mt_depot *remote);

#endif
