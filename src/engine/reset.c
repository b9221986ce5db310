/* Forgetting what is cached, at the wish of an operator. Between two steps the engine's thread drops all pages, states
   and features that no request holds, here and in the host's memory, and what waits to be stored in a tier. Requests
   that run keep what they hold; those that wait are looked up anew when they get their seats. */
#include "engine/inside.h"

void mt_engine_reset(mt_engine *e)
{
    /* Before the poke, and before any request that is submitted later: the engine looks after it has taken requests */
    atomic_store(&e->reset, true);
    mt_engine_poke(e);
}

void mt_engine_clear(mt_engine *e)
{
    if (!atomic_exchange(&e->reset, false) || !e->model)
        return;
    while (mt_keep_yield(e, false))
        continue;
    mt_tree_clear(e->tree);
    if (e->feature_cache)
        mt_feature_cache_clear(e->feature_cache);
    if (e->host_store)
        mt_host_store_clear(e->host_store);
}
