/* What other threads hand the engine. It has a place for each request that may come, and one for a poke, whose address
   wakes the engine and means nothing else. */
#include "engine/inside.h"

void mt_engine_poke(mt_engine *e)
{
    const bool pushed = e && !atomic_exchange(&e->poked, true) && mt_queue_push(e->inbox, &e->poked);
    (void)pushed; /* one at a time */
}

mt_request *mt_inbox_next(mt_engine *e, int wait)
{
    void *item = wait ? mt_queue_wait(e->inbox, wait) : mt_queue_pop(e->inbox);
    for (; item == &e->poked; item = mt_queue_pop(e->inbox))
        (void)atomic_exchange(&e->poked, false); /* flags that were set before it are seen from here on */
    return item;
}
