/* Whoever wants pixels is heard while they are made: it is asked for memory before that is used, and it may leave. */
#ifndef MT_MEDIA_WATCH_H
#define MT_MEDIA_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Functions that borrow a watch take NULL, too: then there is room for everything and nobody leaves. */
typedef struct mt_media_watch {
    const atomic_bool *stop;                              /* once it is true, work ends soon; may be NULL */
    bool (*take)(void *ctx, size_t bytes, mt_error *err); /* so many bytes more; may wait. NULL: there is room */
    void *ctx;
} mt_media_watch;

static inline bool mt_media_stopped(const mt_media_watch *watch)
{
    /* relaxed: the flag carries nothing but itself */
    return watch && watch->stop && atomic_load_explicit(watch->stop, memory_order_relaxed);
}

static inline bool mt_media_take(const mt_media_watch *watch, size_t bytes, mt_error *err)
{
    return !watch || !watch->take || watch->take(watch->ctx, bytes, err);
}

#endif
