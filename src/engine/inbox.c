/* The inbox: a queue with room for each request that may have a place, and for one wake-up. A wake-up is the address of
   e->poked, which is no request: it only ends the engine's waiting. */
#include "engine/inside.h"

void mt_engine_poke(mt_engine *e)
{
    const bool pushed = e && !atomic_exchange(&e->poked, true) && mt_queue_push(e->inbox, &e->poked);
    (void)pushed; /* where one is in the queue already, that one will do */
}

mt_request *mt_inbox_next(mt_engine *e, int wait)
{
    void *item = wait ? mt_queue_wait(e->inbox, wait) : mt_queue_pop(e->inbox);
    for (; item == &e->poked; item = mt_queue_pop(e->inbox))
        /* what other threads wrote before their poke is visible from here on */
        (void)atomic_exchange(&e->poked, false);
    return item;
}
