/* The compute pool: a parallel-for of its owner, one at a time. It never starts work of its own. */
#ifndef MT_BASE_POOL_H
#define MT_BASE_POOL_H

#include <stddef.h>

#include "base/error.h"

typedef struct mt_pool mt_pool;

/* item is in [0, items); worker is in [0, mt_pool_threads) and unique among the calls running at one time. */
typedef void mt_pool_fn(void *ctx, size_t item, size_t worker);

/* threads counts the caller; 0 means mt_pool_default_threads(). NULL on failure. Free with mt_pool_free. */
mt_pool *mt_pool_new(size_t threads, mt_error *err) MT_NODISCARD;
void mt_pool_free(mt_pool *pool); /* NULL is fine; not while it runs */
size_t mt_pool_threads(const mt_pool *pool);
size_t mt_pool_default_threads(void); /* the machine's performance cores this process may use */

/* Calls fn for every item (fewer than 2^32), on up to all threads, items claimed in ascending order; returns when all
   are done. One thread at a time owns the pool and may call; who hands it over to another sees to it that this one sees
   what was written before (a lock does). Calls do not nest. */
void mt_pool_run(mt_pool *pool, mt_pool_fn *fn, void *ctx, size_t items);

#endif
