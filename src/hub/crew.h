/* Threads that do the items of a list, each with a line of its own to the hub. */
#ifndef MT_HUB_CREW_H
#define MT_HUB_CREW_H

#include <stdatomic.h>

#include "hub/line.h"

typedef struct mt_crew {
    const mt_remote *remote;
    const mt_hub_name *name;
    size_t size;                           /* threads at most */
    const atomic_bool *cancel;             /* may be NULL */
    void (*look)(void *arg);               /* called by who waits for the crew, some ten times a second */
    void *arg;                             /* of look and of the work */
    atomic_bool stop;                      /* the lines': somebody has failed, or it was cancelled */
    mt_line *lines[MT_LIMIT_PULL_AT_ONCE]; /* opened as they are needed, kept from list to list */
} mt_crew;

/* Does all items; false with the first error, after which no item is begun and those that run are stopped. */
bool mt_crew_run(mt_crew *crew, size_t items, bool (*work)(void *arg, mt_line *line, size_t item, mt_error *err),
                 mt_error *err) MT_NODISCARD;
void mt_crew_end(mt_crew *crew); /* closes the lines */

#endif
