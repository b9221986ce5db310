/* A connection to a Redis, or a server that speaks as it does: commands are pipelined, and nothing takes longer than it
   is allowed to, or more memory. One thread at a time. See wire.c. */
#ifndef MT_TIER_WIRE_H
#define MT_TIER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

/* redis://[[user]:password@]host[:port][/database] */
typedef struct mt_wire_address {
    char host[256], user[128], password[256];
    int port, database;
} mt_wire_address;

bool mt_wire_address_read(mt_wire_address *address, const char *url, mt_error *err) MT_NODISCARD;

typedef struct mt_wire mt_wire;

extern const bool mt_wire_present; /* this build has it */

/* Connects, says who it is and chooses the database, until mt_clock_ns is `until`. NULL with a sentence. */
mt_wire *mt_wire_open(const mt_wire_address *address, uint64_t until, mt_error *err) MT_NODISCARD;
void mt_wire_close(mt_wire *wire); /* NULL is fine */

/* One more command for mt_wire_send. Copies. False without memory. */
bool mt_wire_add(mt_wire *wire, size_t words, const char *word[], const size_t length[]) MT_NODISCARD;

/* False with a sentence: then nothing but mt_wire_close makes sense. */
bool mt_wire_send(mt_wire *wire, uint64_t until, mt_error *err) MT_NODISCARD;

typedef enum mt_wire_kind { MT_WIRE_NONE, MT_WIRE_BYTES, MT_WIRE_NUMBER, MT_WIRE_STATUS, MT_WIRE_ERROR } mt_wire_kind;

/* What a command is answered. */
typedef struct mt_wire_reply {
    mt_wire_kind kind;
    int64_t number;
    const char *data; /* of bytes, a status or an error; until the next reply */
    size_t len;
} mt_wire_reply;

/* The next reply, of at most so many bytes. False with a sentence: as above. */
bool mt_wire_next(mt_wire *wire, mt_wire_reply *reply, size_t most, uint64_t until, mt_error *err) MT_NODISCARD;

#endif
