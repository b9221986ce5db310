/* Tells people at a terminal how far something long has come, and a log now and then. What is done within half a second
   is not spoken of. */
#ifndef MT_BASE_PROGRESS_H
#define MT_BASE_PROGRESS_H

#include <stdint.h>

typedef struct mt_progress {
    const char *event; /* for the log: "weights.reading" */
    const char *what;  /* for people: "reading weights" */
    uint64_t total, done;
    uint64_t next; /* when it is told again */
} mt_progress;

/* Borrows the texts until mt_progress_end. total: in the unit of mt_progress_add. One thread uses it. */
void mt_progress_begin(mt_progress *p, const char *event, const char *what, uint64_t total);
void mt_progress_add(mt_progress *p, uint64_t done);
void mt_progress_end(void); /* takes the line away */

/* Has somebody else told, too, each time that people are. NULL: nobody. Before there are threads that have something to
   tell; then on those. */
void mt_progress_watch(void (*told)(void *ctx, const char *what, unsigned percent), void *ctx);

#endif
