/* How long the caller of a long computation is willing to wait: until a flag is set, or until a time. The computation
   checks it now and then. */
#ifndef MT_BASE_PATIENCE_H
#define MT_BASE_PATIENCE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"

typedef struct mt_patience {
    const atomic_bool *stop; /* true: stop; may be NULL */
    uint64_t until;          /* mt_clock_ns; 0: no deadline */
} mt_patience;

/* p NULL: never over. */
static inline bool mt_patience_over(const mt_patience *p)
{
    if (p && p->stop && atomic_load_explicit(p->stop, memory_order_relaxed)) /* relaxed: read again and again */
        return true;
    return p && p->until && mt_clock_ns() >= p->until;
}

#endif
