/* How long the caller of a long computation is willing to wait: until a flag is set, until a time, or until the
   computation has used so much processor time, which depends less on what else the machine does. The computation checks
   it now and then. */
#ifndef MT_BASE_PATIENCE_H
#define MT_BASE_PATIENCE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"

typedef struct mt_patience {
    const atomic_bool *stop; /* true: stop; may be NULL */
    uint64_t until;          /* mt_clock_ns; 0: no deadline */
    uint64_t work_until;     /* mt_clock_thread_ns of the thread that computes, which alone checks it; 0: no limit */
} mt_patience;

/* Whether the processor time is used up. p NULL: never. */
static inline bool mt_patience_spent(const mt_patience *p)
{
    return p && p->work_until && mt_clock_thread_ns() >= p->work_until;
}

/* p NULL: never over. */
static inline bool mt_patience_over(const mt_patience *p)
{
    if (p && p->stop && atomic_load_explicit(p->stop, memory_order_relaxed)) /* relaxed: read again and again */
        return true;
    return (p && p->until && mt_clock_ns() >= p->until) || mt_patience_spent(p);
}

#endif
