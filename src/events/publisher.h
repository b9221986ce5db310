/* Messages for whoever listens, over ZeroMQ, numbered, with the latest kept for those who missed some. See publisher.c.
 */
#ifndef MT_EVENTS_PUBLISHER_H
#define MT_EVENTS_PUBLISHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

extern const bool mt_publisher_present; /* whether this build can publish at all */

typedef struct mt_publisher mt_publisher;

typedef struct mt_publisher_params {
    const char *address;              /* "tcp://...:5557" */
    const char *replay;               /* where those who missed some ask for them; NULL: nowhere */
    size_t waiting_bytes, kept_bytes; /* of what is yet to be sent, and of what is kept; 0: MT_LIMIT_EVENT_... */
    size_t kept;                      /* messages; 0: MT_LIMIT_EVENT_BATCHES */
} mt_publisher_params;

/* NULL with a sentence where it cannot listen there, or the build has no ZeroMQ. Close with mt_publisher_close, which
   sends what waits. */
mt_publisher *mt_publisher_open(const mt_publisher_params *params, mt_error *err) MT_NODISCARD;
void mt_publisher_close(mt_publisher *publisher); /* NULL is fine */

/* ---- any thread ---- */

/* Never waits. False: too much is yet to be sent, and so this is not; its number is left out. */
bool mt_publisher_send(mt_publisher *publisher, const char *topic, const void *data, size_t size) MT_NODISCARD;

typedef struct mt_publisher_stats {
    uint64_t numbered; /* messages, those that were dropped included */
    uint64_t dropped;
    uint64_t sent, bytes; /* to whoever listened */
    uint64_t replays;     /* that were asked for */
    uint64_t waiting;     /* bytes that are yet to be sent */
    uint64_t kept;        /* messages that can be asked for */
} mt_publisher_stats;

mt_publisher_stats mt_publisher_look(mt_publisher *publisher); /* NULL: zeros */

/* Where it listens, with the port that was taken where "*" was given. */
const char *mt_publisher_address(const mt_publisher *publisher);
const char *mt_publisher_replay_address(const mt_publisher *publisher); /* "": nowhere */

#endif
