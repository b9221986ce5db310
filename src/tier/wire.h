/* A connection to a Redis server, or one with the same protocol. Commands are sent together before replies are read;
   every call is bounded in time and memory. One thread at a time. See wire.c.

   The code of an error says why: MT_E_IO, the store cannot be reached or has hung up; MT_E_BUSY, it does not answer in
   time; MT_E_UNSUPPORTED, it refuses; MT_E_INVALID, it is out of step: what it sends is not the reply to what it was
   asked, and the sentence says what was expected and what came. */
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

/* False with a sentence where the URL is not of this form. */
bool mt_wire_address_read(mt_wire_address *address, const char *url, mt_error *err) MT_NODISCARD;

/* Copies an address, with a number for the name of its host. Takes as long as the system's resolver does. False with a
   sentence. */
bool mt_wire_resolve(mt_wire_address *to, const mt_wire_address *from, mt_error *err) MT_NODISCARD;

typedef struct mt_wire mt_wire;

extern const bool mt_wire_present; /* false in a build without hiredis */

/* Connects, authenticates and selects the database, until the time `until` (mt_clock_ns) at the latest, unless the
   address has a name that has to be resolved. NULL with a sentence. */
mt_wire *mt_wire_open(const mt_wire_address *address, uint64_t until, mt_error *err) MT_NODISCARD;
void mt_wire_close(mt_wire *wire); /* NULL is fine */

/* Adds a command to those that mt_wire_send sends; copies the words. False without memory. */
bool mt_wire_add(mt_wire *wire, size_t words, const char *word[], const size_t length[]) MT_NODISCARD;

/* Sends the commands. False with a sentence: then only mt_wire_close may follow. */
bool mt_wire_send(mt_wire *wire, uint64_t until, mt_error *err) MT_NODISCARD;

typedef enum mt_wire_kind { MT_WIRE_NONE, MT_WIRE_BYTES, MT_WIRE_NUMBER, MT_WIRE_STATUS, MT_WIRE_ERROR } mt_wire_kind;

/* The reply to a command. */
typedef struct mt_wire_reply {
    mt_wire_kind kind;
    int64_t number;
    const char *data; /* of BYTES, STATUS and ERROR; valid until the next reply */
    size_t len;
} mt_wire_reply;

/* Reads the next reply, of at most `most` bytes. False with a sentence: then only mt_wire_close may follow. */
bool mt_wire_next(mt_wire *wire, mt_wire_reply *reply, size_t most, uint64_t until, mt_error *err) MT_NODISCARD;

/* The same for the reply to a command, which is of that kind or an error; another one means that replies and commands
   are out of step. */
bool mt_wire_expect(mt_wire *wire, mt_wire_reply *reply, const char *command, mt_wire_kind kind, size_t most,
                    uint64_t until, mt_error *err) MT_NODISCARD;

#endif
