/* Figures of each second of the last hour: a row of numbers, under names that the dashboard is told. See pulse.c. */
#ifndef MT_SERVER_PULSE_H
#define MT_SERVER_PULSE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"
#include "cache/tree.h"
#include "engine/voices.h"

struct mt_server;

#define MT_PULSE_COLUMNS 44

typedef struct mt_second {
    uint64_t at; /* its end, as mt_voices_time */
    float value[MT_PULSE_COLUMNS];
} mt_second;

/* The io thread's. */
typedef struct mt_pulse {
    mt_second *seconds;              /* a ring */
    size_t room;                     /* of it */
    uint64_t count;                  /* of those that were ever written */
    double before[MT_PULSE_COLUMNS]; /* counters at the last beat: a row has what was added since */
    mt_tempo tempo;                  /* likewise: sums at the last beat */
} mt_pulse;

/* Seconds of a pulse, which takes one part of 512 of the memory, but five minutes at least. */
static inline size_t mt_pulse_seconds(uint64_t memory)
{
    const uint64_t least = 300, most = memory / 512 / sizeof(mt_second);

    return (size_t)(most < least ? least : most < MT_LIMIT_SCORE_SECONDS ? most : MT_LIMIT_SCORE_SECONDS);
}

void mt_pulse_init(mt_pulse *pulse, uint64_t memory);
void mt_pulse_free(mt_pulse *pulse); /* a zeroed one is fine */

/* Once a second. */
void mt_pulse_beat(mt_pulse *pulse, struct mt_server *server);

/* The oldest that is kept. */
uint64_t mt_pulse_first(const mt_pulse *pulse);

/* Appends ["name",...], and [at,...] of row number n; apart: for somebody who may not know what others have sent. */
void mt_pulse_names(mt_buf *out);
void mt_pulse_write(const mt_pulse *pulse, uint64_t n, bool apart, mt_buf *out);

#endif
