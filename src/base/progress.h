/* Tells people at a terminal how far something long has come, and a log now and then. What is done within half a second
   is not spoken of. */
#ifndef MT_BASE_PROGRESS_H
#define MT_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct mt_progress {
    const char *event; /* for the log: "weights.reading" */
    const char *what;  /* for people: "reading weights" */
    uint64_t total, done;
    uint64_t next;      /* when it is told again */
    bool bytes;         /* that come from somewhere: how fast, and how long yet, is told, too */
    uint64_t then, had; /* when that was found last, and what was done by then */
    double rate;        /* bytes a second */
} mt_progress;

/* Borrows the texts until mt_progress_end. total: in the unit of mt_progress_add. One thread uses it. */
void mt_progress_begin(mt_progress *p, const char *event, const char *what, uint64_t total);
void mt_progress_add(mt_progress *p, uint64_t done);
void mt_progress_end(void); /* takes the line away */

/* Has somebody else told, too, each time that people are. NULL: nobody. Before there are threads that have something to
   tell; then on those. */
void mt_progress_watch(void (*told)(void *ctx, const char *what, unsigned percent), void *ctx);

/* The same of bytes that are transferred, some of which are there already. What is done and how much there is to do is
   set, and may become less. */
void mt_progress_begin_bytes(mt_progress *p, const char *event, const char *what, uint64_t done, uint64_t total);
void mt_progress_set(mt_progress *p, uint64_t done, uint64_t total);

#endif
