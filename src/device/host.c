/* The host's threads and kernels (host.h). */
#include "device/host.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "base/pool.h"
#include "kernels/kernels.h"

/* The work of one thread in a measured run: times of mt_clock_ns, and nanoseconds. */
typedef struct stay {
    MT_ALIGNED(MT_CACHE_LINE) uint64_t first; /* when its first item began; 0: it had none */
    uint64_t last;                            /* when its last item ended */
    uint64_t busy;                            /* how long its items took, in all */
} stay;

struct mt_host {
    mt_kernels kernels;
    pthread_mutex_t lock; /* held while the pool runs: one run of several items at a time */
    mt_pool *pool;
    mt_host_work *work; /* NULL: not measured */
    stay *stays;        /* [threads], made when first measured */
};

mt_host *mt_host_open(const mt_host_params *params, mt_error *err)
{
    mt_pool *pool = mt_pool_new(params->threads, err);
    if (!pool)
        return NULL;
    mt_host *host = mt_alloc(sizeof(*host));
    host->pool = pool;
    pthread_mutex_init(&host->lock, NULL);
    mt_kernels_init(&host->kernels, mt_cpu_detect() & params->cpu_mask);
    return host;
}

void mt_host_close(mt_host *host)
{
    if (!host)
        return;
    mt_pool_free(host->pool);
    pthread_mutex_destroy(&host->lock);
    mt_free(host->stays);
    mt_free(host);
}

uint64_t mt_host_memory(void)
{
    return mt_memory_total();
}

size_t mt_host_threads(const mt_host *host)
{
    return mt_pool_threads(host->pool);
}

const mt_kernels *mt_host_kernels(const mt_host *host)
{
    return &host->kernels;
}

void mt_host_measure(mt_host *host, mt_host_work *work)
{
    host->work = work;
    if (work && !host->stays)
        host->stays = mt_alloc_aligned(MT_CACHE_LINE, mt_host_threads(host) * sizeof(*host->stays));
}

typedef struct measured {
    void (*fn)(void *ctx, size_t item, size_t worker);
    void *ctx;
    stay *stays;
} measured;

static void measured_item(void *ctx, size_t item, size_t worker)
{
    const measured *m = ctx;
    stay *s = &m->stays[worker];
    const uint64_t begin = mt_clock_ns();
    m->fn(m->ctx, item, worker);
    s->last = mt_clock_ns();
    s->busy += s->last - begin;
    s->first = s->first ? s->first : begin;
}

static void run_measured(mt_host *host, void (*fn)(void *ctx, size_t item, size_t worker), void *ctx, size_t items)
{
    const size_t threads = mt_host_threads(host);
    mt_host_work *work = host->work;
    for (size_t i = 0; i < threads; i++)
        host->stays[i] = (stay){0};
    measured m = {fn, ctx, host->stays};
    const uint64_t begin = mt_clock_ns();
    mt_pool_run(host->pool, measured_item, &m, items);
    const uint64_t end = mt_clock_ns();
    work->wall += end - begin;
    for (size_t i = 0; i < threads; i++) {
        const stay *s = &host->stays[i];
        work->busy += s->busy;
        work->late += s->first ? s->first - begin : 0;
        work->idle += s->first ? end - s->last : end - begin;
        work->claims += s->first ? s->last - s->first - s->busy : 0;
    }
}

void mt_host_run(mt_host *host, void (*fn)(void *ctx, size_t item, size_t worker), void *ctx, size_t items)
{
    if (items > 1) {
        pthread_mutex_lock(&host->lock);
        if (host->work)
            run_measured(host, fn, ctx, items);
        else
            mt_pool_run(host->pool, fn, ctx, items);
        pthread_mutex_unlock(&host->lock);
        return;
    }
    if (items == 1)
        fn(ctx, 0, 0);
}
