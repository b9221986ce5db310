/* Shows progress of something long: on a terminal as a line, elsewhere in the log now and then. Nothing is shown within
   the first half second. */
#ifndef MT_BASE_PROGRESS_H
#define MT_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct mt_progress {
    const char *event; /* for the log: "weights.reading" */
    const char *what;  /* for people: "reading weights" */
    uint64_t total, done;
    uint64_t next;      /* mt_clock_ns: when it is shown again */
    bool bytes;         /* the unit is bytes that are transferred: speed and remaining time are shown, too */
    uint64_t then, had; /* mt_clock_ns of the last measurement of the rate, and `done` then */
    double rate;        /* bytes per second */
} mt_progress;

/* Borrows the texts until mt_progress_end. total: in the unit of mt_progress_add. Used by one thread. */
void mt_progress_begin(mt_progress *p, const char *event, const char *what, uint64_t total);
void mt_progress_add(mt_progress *p, uint64_t done);
void mt_progress_end(void); /* removes the line */

/* Has `told` called, too, whenever progress is shown; NULL: nothing is called. Set before there are threads; called on
   any. */
void mt_progress_watch(void (*told)(void *ctx, const char *what, unsigned percent), void *ctx);

/* The same for bytes that are transferred, some of which may be there already. done and total are set, and may
   decrease. */
void mt_progress_begin_bytes(mt_progress *p, const char *event, const char *what, uint64_t done, uint64_t total);
void mt_progress_set(mt_progress *p, uint64_t done, uint64_t total);

#endif
