#include "device/host.h"

#include "base/alloc.h"
#include "base/pool.h"

struct mt_host {
    mt_kernels kernels;
    mt_pool *pool;
};

mt_host *mt_host_open(const mt_host_params *params, mt_error *err)
{
    mt_pool *pool = mt_pool_new(params->threads, err);
    if (!pool)
        return NULL;
    mt_host *host = mt_alloc(sizeof *host);
    host->pool = pool;
    mt_kernels_init(&host->kernels, mt_cpu_detect() & params->cpu_mask);
    return host;
}

void mt_host_close(mt_host *host)
{
    if (!host)
        return;
    mt_pool_free(host->pool);
    mt_free(host);
}

size_t mt_host_threads(const mt_host *host)
{
    return mt_pool_threads(host->pool);
}

const mt_kernels *mt_host_kernels(const mt_host *host)
{
    return &host->kernels;
}

void mt_host_run(mt_host *host, void (*fn)(void *ctx, size_t item, size_t worker), void *ctx, size_t items)
{
    if (items > 1) {
        mt_pool_run(host->pool, fn, ctx, items);
        return;
    }
    if (items == 1)
        fn(ctx, 0, 0);
}
