/* The pulse: figures of each second of the last hour for the dashboard's charts. A row of numbers for each second;
   pulse.c names the columns. Only the io thread uses it. */
#ifndef MT_SERVER_METRICS_PULSE_H
#define MT_SERVER_METRICS_PULSE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "engine/voices.h"
#include "server/limits.h"

struct mt_server;

#define MT_PULSE_COLUMNS 44
#define MT_PULSE_TIMES 12 /* different times of a second */

/* How many times of each length a second had; `count` 0 ends it. Where there are more than MT_PULSE_TIMES lengths,
   neighbours are put together. */
typedef struct mt_pulse_times {
    float ms[MT_PULSE_TIMES];
    uint32_t count[MT_PULSE_TIMES];
} mt_pulse_times;

typedef struct mt_second {
    uint64_t at; /* its end, as mt_voices_time */
    float value[MT_PULSE_COLUMNS];
    mt_pulse_times times[2]; /* to the first token, and between tokens */
} mt_second;

/* The io thread's. */
typedef struct mt_pulse {
    mt_second *seconds;              /* a ring: row number n is at n % room */
    size_t room;                     /* rows of the ring */
    uint64_t count;                  /* rows that were ever written */
    double before[MT_PULSE_COLUMNS]; /* values at the last row, of columns that are counters */
    mt_tempo tempo;                  /* counters of the recorder at the last row */
} mt_pulse;

/* How many seconds a pulse keeps: at most 1/512 of the memory (bytes), at least five minutes. */
static inline size_t mt_pulse_seconds(uint64_t memory)
{
    const uint64_t least = 300, most = memory / 512 / sizeof(mt_second);

    return (size_t)(most < least ? least : most < MT_LIMIT_SCORE_SECONDS ? most : MT_LIMIT_SCORE_SECONDS);
}

void mt_pulse_init(mt_pulse *pulse, uint64_t memory);
void mt_pulse_free(mt_pulse *pulse); /* a zeroed one is fine */

/* Adds a row. Called once a second. */
void mt_pulse_beat(mt_pulse *pulse, struct mt_server *server);

/* Number of the oldest row that is kept. */
uint64_t mt_pulse_first(const mt_pulse *pulse);

/* Appends the columns' names as ["at",...], and row number n as [at,...]. apart: for an account that must not learn
   what others have sent. */
void mt_pulse_names(mt_buf *out);
void mt_pulse_write(const mt_pulse *pulse, uint64_t n, bool apart, mt_buf *out);

#endif
