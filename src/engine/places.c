#include "engine/places.h"

#include <assert.h>

size_t mt_places_take(mt_places *p, size_t least, size_t most, mt_error *err)
{
    /* relaxed, here and below: a count, which no data hangs on */
    size_t taken = atomic_load_explicit(&p->taken, memory_order_relaxed), got;
    assert(least > 0 && least <= most);
    do {
        const size_t left = p->most - taken;
        got = left < most ? left : most;
        if (got < least) {
            mt_fail(err, MT_E_BUSY, "%zu requests wait or run already, and no more may; try again later", taken);
            return 0;
        }
    } while (!atomic_compare_exchange_weak_explicit(&p->taken, &taken, taken + got, memory_order_relaxed,
                                                    memory_order_relaxed));
    return got;
}

void mt_places_give(mt_places *p, size_t count)
{
    const size_t before = atomic_fetch_sub_explicit(&p->taken, count, memory_order_relaxed);
    assert(before >= count);
    (void)before;
}
