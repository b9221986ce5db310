/* What a decoder asks its caller while it works: for memory before it uses that, and whether the pixels are still
   wanted. */
#ifndef MT_MEDIA_WATCH_H
#define MT_MEDIA_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/error.h"

/* Functions that borrow a watch accept NULL: then memory is not limited and work is never stopped. */
typedef struct mt_media_watch {
    const atomic_bool *stop; /* once true, work ends soon; may be NULL */
    uint64_t cpu_end;        /* work also ends soon once its thread has had so much time (mt_clock_thread_ns); 0: any */
    /* called before so many more bytes are allocated; may wait. False refuses them. NULL: no limit */
    bool (*take)(void *ctx, size_t bytes, mt_error *err);
    void *ctx;
} mt_media_watch;

/* Whether the calling thread has used its processor time up. */
static inline bool mt_media_spent(const mt_media_watch *watch)
{
    return watch && watch->cpu_end && mt_clock_thread_ns() >= watch->cpu_end;
}

static inline bool mt_media_stopped(const mt_media_watch *watch)
{
    /* relaxed: no other data depends on the flag */
    return (watch && watch->stop && atomic_load_explicit(watch->stop, memory_order_relaxed)) || mt_media_spent(watch);
}

static inline bool mt_media_take(const mt_media_watch *watch, size_t bytes, mt_error *err)
{
    return !watch || !watch->take || watch->take(watch->ctx, bytes, err);
}

#endif
