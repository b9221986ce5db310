/* The remote store: a store on the network that several servers share (Redis, Valkey), with the same records and keys
   as the disk. Where it is slow, full, unreachable or returns wrong bytes, there are fewer cache hits and no other
   harm. See remote.c. All functions may be called from any thread. */
#ifndef MT_TIER_REMOTE_H
#define MT_TIER_REMOTE_H

#include "base/compiler.h"
#include "base/error.h"
#include "tier/record.h"

#define MT_REMOTE_STORE_BATCH 16    /* most records that one mt_remote_store_read reads */
#define MT_REMOTE_STORE_ASKED 4096  /* most keys that one mt_remote_store_ask asks for */
#define MT_REMOTE_STORE_SECRET 4096 /* most bytes of a secret */

typedef struct mt_remote_store mt_remote_store;

typedef struct mt_remote_store_params {
    const char *url; /* redis://..., see mt_wire_address_read */
    /* records are signed with it, and records without its signature are ignored; NULL: no signatures */
    const void *secret;
    size_t secret_len;
    uint64_t queue; /* most bytes that wait to be sent */
    uint64_t rate;  /* most bytes a second that are sent; 0: no limit */
} mt_remote_store_params;

/* Connects later, when needed. NULL with a sentence. Free with mt_remote_store_close, which sends what waits for at
   most two seconds. */
mt_remote_store *mt_remote_store_open(const mt_remote_store_params *params, mt_error *err) MT_NODISCARD;
void mt_remote_store_close(mt_remote_store *remote); /* NULL is fine */

/* Whether the remote store is known to have a record with that key, and whether it is worth sending one. Neither waits
   for the network. */
bool mt_remote_store_has(mt_remote_store *remote, const uint8_t key[MT_TIER_KEY]);
bool mt_remote_store_lacks(mt_remote_store *remote, const uint8_t key[MT_TIER_KEY]);

/* Whether asking makes sense now: false for some time after a failure. */
bool mt_remote_store_is_there(mt_remote_store *remote);

/* Asks which of `count` records the remote store has, so that mt_remote_store_has knows. Waits at most half a second.
   */
void mt_remote_store_ask(mt_remote_store *remote, const uint8_t (*key)[MT_TIER_KEY], size_t count);

/* A record to be read, into parts of the sizes with which it was written. */
typedef struct mt_remote_store_want {
    const uint8_t *key;
    uint32_t kind;
    const mt_tier_part *part;
    size_t parts;
    bool ok; /* result: the record has come and is as it was written */
} mt_remote_store_want;

/* Reads up to MT_REMOTE_STORE_BATCH records at once. Waits at most two seconds. */
void mt_remote_store_read(mt_remote_store *remote, mt_remote_store_want *want, size_t count);

/* Queues a copy of a record to be sent. It is dropped where the queue is full or the remote store is unreachable. */
void mt_remote_store_write(mt_remote_store *remote, const uint8_t key[MT_TIER_KEY], uint32_t kind,
                           const mt_tier_part part[], size_t parts);

/* Why a command had no answer. */
typedef enum mt_remote_store_failure {
    MT_REMOTE_STORE_GONE,        /* the remote store cannot be reached, or has hung up */
    MT_REMOTE_STORE_LATE,        /* it did not answer in time */
    MT_REMOTE_STORE_REFUSES,     /* it answered with an error */
    MT_REMOTE_STORE_OUT_OF_STEP, /* what it sent was not the answer to what it was asked */
    MT_REMOTE_STORE_FAILURES
} mt_remote_store_failure;

typedef struct mt_remote_store_stats {
    /* records */
    uint64_t written, read, missed;
    uint64_t broken;  /* records that were not as written, or not signed with the secret */
    uint64_t dropped; /* records dropped, since the queue was full or the remote store unreachable */
    uint64_t refused; /* records that the remote store did not accept: it is full, or we may not write */
    uint64_t failures[MT_REMOTE_STORE_FAILURES]; /* by reason */
    uint64_t sent, received;                     /* bytes of records */
    uint64_t queued;                             /* bytes that wait to be sent */
    bool up;                                     /* the last command was answered */
} mt_remote_store_stats;

mt_remote_store_stats mt_remote_store_look(mt_remote_store *remote);
const char *mt_remote_store_failure_name(mt_remote_store_failure reason); /* for metrics */

#endif
