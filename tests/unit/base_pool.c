#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/limits.h"
#include "base/pool.h"

static const size_t thread_counts[] = {1, 2, 7};

enum { MANY = 100000 };

typedef struct work {
    size_t threads;
    atomic_int busy[7]; /* by worker: calls running now */
    atomic_size_t wrong;
    unsigned char seen[MANY]; /* plain memory: the pool's ordering makes it visible */
} work;

static void visit(void *ctx, size_t item, size_t worker)
{
    work *w = ctx;

    if (worker >= w->threads || atomic_fetch_add(&w->busy[worker], 1) != 0)
        atomic_fetch_add(&w->wrong, 1);
    w->seen[item]++;
    atomic_fetch_sub(&w->busy[worker], 1);
}

/* Every item once, for many counts of items. */
static void every_item_runs_once(void **state)
{
    static const size_t counts[] = {0, 1, 2, 3, 6, 7, 8, 100, 1000, MANY};
    static work w;

    (void)state;
    for (size_t t = 0; t < MT_COUNT(thread_counts); t++) {
        mt_pool *pool = mt_pool_new(thread_counts[t], NULL);

        assert_non_null(pool);
        assert_int_equal(mt_pool_threads(pool), thread_counts[t]);
        for (size_t c = 0; c < MT_COUNT(counts); c++) {
            memset(&w, 0, sizeof(w));
            w.threads = thread_counts[t];
            mt_pool_run(pool, visit, &w, counts[c]);
            assert_int_equal(w.wrong, 0);
            for (size_t i = 0; i < MANY; i++)
                assert_int_equal(w.seen[i], i < counts[c]);
        }
        mt_pool_free(pool);
    }
}

static void add_item(void *ctx, size_t item, size_t worker)
{
    size_t *sums = ctx;

    sums[worker * 16] += item + 1;
}

/* Many short runs, some of them after the threads have gone to sleep. */
static void runs_follow_one_another(void **state)
{
    (void)state;
    for (size_t t = 0; t < MT_COUNT(thread_counts); t++) {
        mt_pool *pool = mt_pool_new(thread_counts[t], NULL);

        assert_non_null(pool);
        for (size_t run = 0; run < 20000; run++) {
            size_t sums[7 * 16] = {0}, items = run % 19, total = 0;

            if (run % 1000 == 999)
                usleep(500);
            mt_pool_run(pool, add_item, sums, items);
            for (size_t i = 0; i < MT_COUNT(sums); i++)
                total += sums[i];
            assert_int_equal(total, items * (items + 1) / 2);
        }
        mt_pool_free(pool);
    }
}

static void claim_in_order(void *ctx, size_t item, size_t worker)
{
    size_t *last = ctx;

    /* A worker's own items ascend: the claims do. */
    if (item < last[worker * 16])
        last[7 * 16]++;
    last[worker * 16] = item;
}

static void items_are_claimed_in_ascending_order(void **state)
{
    mt_pool *pool = mt_pool_new(2, NULL);
    size_t last[8 * 16] = {0};

    (void)state;
    assert_non_null(pool);
    mt_pool_run(pool, claim_in_order, last, MANY);
    assert_int_equal(last[7 * 16], 0);
    mt_pool_free(pool);
}

static void sleep_a_little(void *ctx, size_t item, size_t worker)
{
    atomic_size_t *count = ctx;

    (void)worker;
    usleep(item % 2 ? 3000 : 100);
    atomic_fetch_add(count, 1);
}

/* Items so long that the owner goes to sleep waiting for them. */
static void the_owner_sleeps_and_is_woken(void **state)
{
    mt_pool *pool = mt_pool_new(7, NULL);
    atomic_size_t count = 0;

    (void)state;
    assert_non_null(pool);
    for (size_t i = 1; i <= 20; i++) {
        mt_pool_run(pool, sleep_a_little, &count, 8);
        assert_int_equal(count, 8 * i);
    }
    mt_pool_free(pool);
}

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void an_idle_pool_uses_no_processor(void **state)
{
    mt_pool *pool = mt_pool_new(7, NULL);
    size_t sums[7 * 16] = {0};
    double used = 1;

    (void)state;
    assert_non_null(pool);
    mt_pool_run(pool, add_item, sums, 100);
    for (size_t tries = 0; used >= 0.01 && tries < 100; tries++) { /* on a busy machine some still spin, or begin to */
        usleep(20000);
        const double before = cpu_seconds();
        usleep(100000);
        used = cpu_seconds() - before;
    }
    assert_true(used < 0.01);
    mt_pool_free(pool);
}

static void pools_come_and_go(void **state)
{
    (void)state;
    for (size_t i = 0; i < 100; i++) {
        mt_pool *pool = mt_pool_new(1 + i % 7, NULL);
        size_t sums[7 * 16] = {0};

        assert_non_null(pool);
        if (i % 3)
            mt_pool_run(pool, add_item, sums, i);
        mt_pool_free(pool);
    }
    mt_pool_free(NULL);
}

static void too_many_threads(void **state)
{
    mt_error err;

    (void)state;
    assert_null(mt_pool_new(MT_LIMIT_THREADS + 1, &err));
    assert_int_equal(err.code, MT_E_INVALID);
    assert_string_equal(err.text, "257 threads are too many: use at most 256");
}

static void zero_threads_is_the_default(void **state)
{
    mt_pool *pool = mt_pool_new(0, NULL);

    (void)state;
    assert_non_null(pool);
    assert_int_equal(mt_pool_threads(pool), mt_pool_default_threads());
    mt_pool_free(pool);
}

static void check_ban(void *ctx, size_t item, size_t worker)
{
    atomic_size_t *banned = ctx;

    (void)item;
    (void)worker;
    atomic_fetch_add(banned, mt_alloc_forbidden());
}

static void the_ban_on_allocation_reaches_the_workers(void **state)
{
    mt_pool *pool = mt_pool_new(2, NULL);
    atomic_size_t banned = 0;

    (void)state;
    assert_non_null(pool);
    mt_alloc_forbid();
    mt_pool_run(pool, check_ban, &banned, 10000);
    mt_alloc_permit();
    assert_int_equal(banned, 10000);
    mt_pool_run(pool, check_ban, &banned, 10000);
    assert_int_equal(banned, 10000);
    mt_pool_free(pool);
}

typedef struct transfer {
    mt_pool *pool;
    size_t sums[7 * 16];
} transfer;

static void *run_elsewhere(void *ctx)
{
    transfer *e = ctx;

    mt_pool_run(e->pool, add_item, e->sums, 100);
    return NULL;
}

/* Joining is what makes the next owner see what the one before has written. */
static void owners_follow_one_another(void **state)
{
    transfer e = {.pool = mt_pool_new(3, NULL)};
    size_t sum = 0;

    (void)state;
    assert_non_null(e.pool);
    for (size_t i = 0; i < 20; i++) {
        pthread_t thread;

        run_elsewhere(&e);
        assert_int_equal(pthread_create(&thread, NULL, run_elsewhere, &e), 0);
        pthread_join(thread, NULL);
    }
    for (size_t i = 0; i < 3; i++)
        sum += e.sums[16 * i];
    assert_int_equal(sum, 40 * 100 * 101 / 2);
    mt_pool_free(e.pool);
}

static void run_within(void *ctx, size_t item, size_t worker)
{
    (void)item;
    (void)worker;
    run_elsewhere(ctx);
}

static void run_nested(void *arg)
{
    transfer e = {.pool = mt_pool_new(1, NULL)};

    (void)arg;
    signal(SIGABRT, SIG_DFL);
    if (e.pool)
        mt_pool_run(e.pool, run_within, &e, 1);
}

static void one_at_a_time_may_run(void **state)
{
    struct rlimit none = {0, 0};
    char text[512];
    int status;

    (void)state;
    setrlimit(RLIMIT_CORE, &none);
    status = unit_in_child(run_nested, NULL, text, sizeof(text));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_item_runs_once),
    cmocka_unit_test(runs_follow_one_another),
    cmocka_unit_test(items_are_claimed_in_ascending_order),
    cmocka_unit_test(the_owner_sleeps_and_is_woken),
    cmocka_unit_test(an_idle_pool_uses_no_processor),
    cmocka_unit_test(pools_come_and_go),
    cmocka_unit_test(too_many_threads),
    cmocka_unit_test(zero_threads_is_the_default),
    cmocka_unit_test(the_ban_on_allocation_reaches_the_workers),
    cmocka_unit_test(owners_follow_one_another),
    cmocka_unit_test(one_at_a_time_may_run),
};
UNIT_MAIN(tests)
