/* Threads that start together, best-of timing, one line per measurement. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "check.h"

enum { MAX_THREADS = 256, MIN_RUNS = 5, MAX_RUNS = 1000 };

typedef struct team {
    bench_fn *fn;
    void *arg;
    size_t threads;
    atomic_uint round, done; /* a round starts when `round` changes and ends when `done` counts all helpers */
    atomic_bool quit;
    double best; /* seconds */
} team;

typedef struct member {
    team *team;
    size_t index;
} member;

/* One processor each: best-of timing on a busy machine needs rounds in which all threads run at once. */
static void pin(size_t index)
{
#if defined(__linux__)
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof(all), &all) != 0)
        return;
    size_t left = index % (size_t)CPU_COUNT(&all);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all) || left-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
        return;
    }
#else
    (void)index;
#endif
}

static void *help(void *p)
{
    member *me = p;
    team *t = me->team;
    pin(me->index);
    for (unsigned seen = 0;;) {
        while (atomic_load_explicit(&t->round, memory_order_acquire) == seen)
            ;
        seen++;
        if (atomic_load_explicit(&t->quit, memory_order_relaxed))
            return NULL;
        t->fn(t->arg, me->index, t->threads);
        atomic_fetch_add_explicit(&t->done, 1, memory_order_release);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double one_round(team *t)
{
    double start = now();
    atomic_store_explicit(&t->done, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->round, 1, memory_order_release);
    t->fn(t->arg, 0, t->threads);
    while (atomic_load_explicit(&t->done, memory_order_acquire) != t->threads - 1)
        ;
    return now() - start;
}

static void *lead(void *p)
{
    member *me = p;
    team *t = me->team;
    pin(0);
    double total = t->best = one_round(t);
    for (int runs = 1; runs < MAX_RUNS && (runs < MIN_RUNS || total < 1.0); runs++) {
        double seconds = one_round(t);
        t->best = seconds < t->best ? seconds : t->best;
        total += seconds;
    }
    atomic_store_explicit(&t->quit, true, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->round, 1, memory_order_release);
    return NULL;
}

double bench_time(const bench *b, bench_fn *fn, void *arg)
{
    team t = {.fn = fn, .arg = arg, .threads = b->threads};
    pthread_t id[MAX_THREADS];
    member members[MAX_THREADS];
    for (size_t i = 0; i < t.threads; i++) {
        members[i] = (member){.team = &t, .index = i};
        if (pthread_create(&id[i], NULL, i == 0 ? lead : help, &members[i]) != 0)
            abort();
    }
    for (size_t i = 0; i < t.threads; i++)
        pthread_join(id[i], NULL);
    return t.best;
}

void bench_share(size_t n, size_t step, size_t thread, size_t threads, size_t *begin, size_t *end)
{
    size_t steps = (n + step - 1) / step;
    *begin = steps * thread / threads * step;
    *end = steps * (thread + 1) / threads * step;
    *begin = *begin < n ? *begin : n;
    *end = *end < n ? *end : n;
}

static void *random_bytes(size_t align, size_t bytes)
{
    size_t size = (bytes + align - 1) / align * align;
    uint64_t x = 0x9e3779b97f4a7c15u, *p = aligned_alloc(align, size);
    if (!p)
        abort();
#if defined(MADV_HUGEPAGE)
    if (align > 64)
        (void)madvise(p, size, MADV_HUGEPAGE);
#endif
    for (size_t i = 0; i < size / 8; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        p[i] = x;
    }
    return p;
}

void *bench_alloc(size_t bytes)
{
    return random_bytes(64, bytes);
}

void *bench_alloc_large(size_t bytes)
{
    return random_bytes((size_t)2 << 20, bytes);
}

bool bench_wants(const bench *b, const char *kernel)
{
    return !b->filter || strstr(kernel, b->filter) != NULL || strstr(b->filter, kernel) != NULL;
}

bool bench_picks(const bench *b, const char *what)
{
    return !b->filter || strstr(what, b->filter) != NULL;
}

void bench_report(const bench *b, const char *what, double seconds, double bytes, double ops, double ops_peak)
{
    printf("  %-34s %10.1f us", what, seconds * 1e6);
    if (bytes > 0)
        printf("  %7.2f GB/s %4.0f %%", bytes / seconds * 1e-9, 100 * bytes / seconds / b->bandwidth);
    if (ops > 0 && ops_peak > 0)
        printf("  %8.1f GOP/s %4.0f %%", ops / seconds * 1e-9, 100 * ops / seconds / ops_peak);
    printf("\n");
    fflush(stdout);
}
