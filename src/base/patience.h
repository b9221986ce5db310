/* How long somebody waits for work that may take long: until nobody wants it any more, or until a time has come. Who
   does such work looks at it now and then. */
#ifndef MT_BASE_PATIENCE_H
#define MT_BASE_PATIENCE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"

typedef struct mt_patience {
    const atomic_bool *stop; /* NULL: nobody says so */
    uint64_t until;          /* of mt_clock_ns; 0: as long as it takes */
} mt_patience;

/* p NULL: endless. */
static inline bool mt_patience_over(const mt_patience *p)
{
    if (p && p->stop && atomic_load_explicit(p->stop, memory_order_relaxed)) /* it is looked at again and again */
        return true;
    return p && p->until && mt_clock_ns() >= p->until;
}

#endif
