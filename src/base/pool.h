/* The compute pool: threads that run a parallel for of the owner, one at a time. They never start work of their own. */
#ifndef MT_BASE_POOL_H
#define MT_BASE_POOL_H

#include <stddef.h>

#include "base/error.h"

typedef struct mt_pool mt_pool;

/* The body of the loop. item is in [0, items); worker is in [0, mt_pool_threads) and unique among the calls that run at
   a time. */
typedef void mt_pool_fn(void *ctx, size_t item, size_t worker);

/* threads includes the caller; 0: mt_pool_default_threads(). NULL: *err. Free with mt_pool_free. */
mt_pool *mt_pool_new(size_t threads, mt_error *err) MT_NODISCARD;
void mt_pool_free(mt_pool *pool); /* NULL is fine; not while it runs */
size_t mt_pool_threads(const mt_pool *pool);
size_t mt_pool_default_threads(void); /* the machine's fast cores that this process may use */

/* Calls fn for every item (fewer than 2^32), on up to all threads; items are claimed in ascending order. Returns when
   all are done. One thread at a time may call; a hand-over to another thread must synchronise memory (as a lock does).
   Calls do not nest. */
void mt_pool_run(mt_pool *pool, mt_pool_fn *fn, void *ctx, size_t items);

#endif
