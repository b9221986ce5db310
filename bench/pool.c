/* What a parallel-for without work costs: hot (the next follows at once) and cold (the pool has gone to sleep), each
   with empty items, which one thread may take all of, and with items that wait until every thread has one. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/cores.h"
#include "base/pool.h"

enum { HOT_RUNS = 20000, COLD_RUNS = 200, PAUSE_US = 2000 };

static void nothing(void *ctx, size_t item, size_t worker)
{
    (void)ctx;
    (void)item;
    (void)worker;
}

/* ctx counts the threads that are still missing. */
static void meet(void *ctx, size_t item, size_t worker)
{
    atomic_size_t *missing = ctx;

    (void)item;
    (void)worker;
    atomic_fetch_sub(missing, 1);
    while (atomic_load(missing) > 0)
        MT_RELAX();
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Times `runs` runs with pause_us between them and prints the median and the 99th percentile. */
static void measure(mt_pool *pool, const char *what, mt_pool_fn *fn, size_t runs, unsigned pause_us)
{
    static uint64_t ns[HOT_RUNS];
    size_t threads = mt_pool_threads(pool);

    for (size_t i = 0; i < runs; i++) {
        atomic_size_t missing = threads;
        uint64_t start;

        if (pause_us)
            usleep(pause_us);
        start = mt_clock_ns();
        mt_pool_run(pool, fn, &missing, threads);
        ns[i] = mt_clock_ns() - start;
    }
    qsort(ns, runs, sizeof(ns[0]), by_value);
    printf("%zu threads, %-16s %8.2f us median %8.2f us 99 %%\n", threads, what, (double)ns[runs / 2] / 1e3,
           (double)ns[runs * 99 / 100] / 1e3);
}

int main(void)
{
    static const size_t counts[] = {1, 2, 4, 7};
    mt_error err;

    for (size_t i = 0; i < MT_COUNT(counts); i++) {
        mt_pool *pool = mt_pool_new(counts[i], &err);

        if (!pool) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        measure(pool, "empty, hot", nothing, HOT_RUNS, 0);
        measure(pool, "empty, cold", nothing, COLD_RUNS, PAUSE_US);
        if (counts[i] <= mt_cores_allowed()) { /* more could never meet */
            measure(pool, "all meet, hot", meet, HOT_RUNS, 0);
            measure(pool, "all meet, cold", meet, COLD_RUNS, PAUSE_US);
        }
        mt_pool_free(pool);
    }
    return 0;
}
