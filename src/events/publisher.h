/* Publishes numbered messages over ZeroMQ and keeps the latest, for listeners that missed some. See publisher.c. */
#ifndef MT_EVENTS_PUBLISHER_H
#define MT_EVENTS_PUBLISHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "events/limits.h"

extern const bool mt_publisher_present; /* false in a build without ZeroMQ */

typedef struct mt_publisher mt_publisher;

typedef struct mt_publisher_params {
    const char *address;              /* "tcp://...:5557" */
    const char *replay;               /* address where listeners ask for messages they missed; NULL: none */
    size_t waiting_bytes, kept_bytes; /* most bytes that wait to be sent, and that are kept; 0: MT_LIMIT_EVENT_... */
    size_t kept;                      /* most messages that are kept; 0: MT_LIMIT_EVENT_BATCHES */
} mt_publisher_params;

/* NULL with a sentence where it cannot listen at an address, or the build has no ZeroMQ. Close with mt_publisher_close,
   which sends what waits. */
mt_publisher *mt_publisher_open(const mt_publisher_params *params, mt_error *err) MT_NODISCARD;
void mt_publisher_close(mt_publisher *publisher); /* NULL is fine */

/* ---- any thread ---- */

/* Queues a message; never waits. False: too much waits already, and the message is dropped; its number is not used
   again, so that listeners see the gap. */
bool mt_publisher_send(mt_publisher *publisher, const char *topic, const void *data, size_t size) MT_NODISCARD;

typedef struct mt_publisher_stats {
    uint64_t numbered; /* messages that got a number, those that were dropped included */
    uint64_t dropped;
    uint64_t sent, bytes; /* messages, and their bytes */
    uint64_t replays;     /* requests for missed messages */
    uint64_t waiting;     /* bytes that wait to be sent */
    uint64_t kept;        /* messages that are kept */
} mt_publisher_stats;

mt_publisher_stats mt_publisher_look(mt_publisher *publisher); /* NULL: zeros */

/* The address it listens at, with the actual port where "*" was given. */
const char *mt_publisher_address(const mt_publisher *publisher);
const char *mt_publisher_replay_address(const mt_publisher *publisher); /* "": none */

#endif
