/* Threads that process the items of a list, each with its own connection (line.h) to the hub. */
#ifndef MT_HUB_CREW_H
#define MT_HUB_CREW_H

#include <stdatomic.h>

#include "hub/limits.h"
#include "hub/line.h"

typedef struct mt_crew {
    mt_remote *remote;
    const mt_hub_name *name;
    size_t size;                           /* most threads */
    const atomic_bool *cancel;             /* may be NULL */
    void (*look)(void *arg);               /* called by the thread that waits for the crew, about ten times a second */
    void *arg;                             /* for look and work */
    atomic_bool stop;                      /* for the lines: some item failed, or it was cancelled */
    mt_line *lines[MT_LIMIT_PULL_AT_ONCE]; /* opened when needed, kept from list to list */
} mt_crew;

/* Processes all items; false with the first error: then no further item is begun, and running ones are stopped. */
bool mt_crew_run(mt_crew *crew, size_t items, bool (*work)(void *arg, mt_line *line, size_t item, mt_error *err),
                 mt_error *err) MT_NODISCARD;
void mt_crew_end(mt_crew *crew); /* closes the lines */

#endif
