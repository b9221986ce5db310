/* One job at a time. The owner publishes it, takes part in it, and returns when every item is done. It does not wait
   for threads that are still asleep or descheduled: with more threads than cores that would cost a time slice.

   All agree by one word, `claim`: the job's number in the high half, the number of unclaimed items in the low half. A
   thread claims an item by decrementing it with compare-and-swap. Success proves that the job it read is current; and
   since the owner cannot finish before that item is done, fn, ctx and items do not change until the thread counts the
   item in `done`. So they need no atomics, and a thread that wakes up late finds the low half 0 or the number changed,
   and claims nothing of a job that is over.

   Waiting means spinning for some microseconds, then sleeping on a condition variable: a busy pool wakes no thread, an
   idle one uses no processor. No more threads are woken than there are cores for them.

   Invariants:
   1. The low half of claim grows only in mt_pool_run, when done shows that the job before is over.
   2. job is written only while no item is claimed and not done.
   3. Under the lock: parked is the number of workers whose asleep is true. The thread that wakes a worker sets it to
      false, so that it is not woken twice.

   Rejected: a barrier that all threads pass (each run would wait for the slowest thread to be scheduled); a queue for
   each thread (items are alike and few, so there is nothing to steal). */
#include "base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cores.h"
#include "base/limits.h"
#include "base/placement.h"

enum {
    SPIN_NS = 50000, /* longer than the owner works between two jobs of a step, short beside a time slice */
    SPIN_ROUNDS = 32 /* between two reads of the clock */
};

typedef struct job {
    mt_pool_fn *fn;
    void *ctx;
    uint32_t items;
    bool forbid_alloc; /* the owner must not allocate, so the workers must not */
} job;

typedef struct worker {
    mt_pool *pool;
    size_t index;
    pthread_t thread;
    pthread_cond_t wake;
    bool asleep;
    mt_placement place;
} worker;

struct mt_pool {
    MT_ALIGNED(MT_CACHE_LINE) _Atomic uint64_t claim;
    /* Items of the current job done by threads other than the owner */
    MT_ALIGNED(MT_CACHE_LINE) _Atomic uint32_t done;
    MT_ALIGNED(MT_CACHE_LINE) job job;
    size_t threads;
    size_t helpers; /* threads besides the owner that have a core to run on */

    /* Only the owner uses these. */
    uint32_t number; /* of the current job */
    uint32_t wanted; /* value of done at which the job is over */
    atomic_bool running;

    MT_ALIGNED(MT_CACHE_LINE) atomic_size_t parked;
    atomic_bool owner_parked;
    atomic_bool stop;
    pthread_mutex_t lock;
    pthread_cond_t finished;
    worker workers[]; /* threads - 1: worker 0 is the owner */
};

static uint32_t unclaimed(uint64_t claim)
{
    return (uint32_t)claim;
}

/* Runs items of the current job until none is unclaimed. Returns how many. */
static uint32_t work_through(mt_pool *pool, size_t index)
{
    uint64_t claim = atomic_load_explicit(&pool->claim, memory_order_relaxed); /* relaxed: a guess; the swap decides */
    uint32_t count = 0;

    while (unclaimed(claim) > 0) {
        /* Acquire: pairs with the owner's store of claim (the swaps between are of its release sequence), so that
           job is the one published. Failure gives only the next guess. */
        if (!atomic_compare_exchange_weak_explicit(&pool->claim, &claim, claim - 1, memory_order_acquire,
                                                   memory_order_relaxed))
            continue;
        if (count == 0 && pool->job.forbid_alloc)
            mt_alloc_forbid();
        pool->job.fn(pool->job.ctx, pool->job.items - unclaimed(claim), index);
        count++;
        claim--;
    }
    if (count > 0 && pool->job.forbid_alloc)
        mt_alloc_permit();
    return count;
}

/* Spins until ready(pool) is true. False: it took longer than SPIN_NS. */
static bool spin(mt_pool *pool, bool (*ready)(mt_pool *pool, memory_order order))
{
    uint64_t end = mt_clock_ns() + SPIN_NS;

    do {
        for (int i = 0; i < SPIN_ROUNDS; i++) {
            /* Relaxed: what follows orders itself (a claim acquires, await_done looks again). */
            if (ready(pool, memory_order_relaxed))
                return true;
            MT_RELAX();
        }
        sched_yield(); /* the thread we wait for may need this core */
    } while (mt_clock_ns() < end);
    return false;
}

static bool work_ready(mt_pool *pool, memory_order order)
{
    return unclaimed(atomic_load_explicit(&pool->claim, order)) > 0 ||
           atomic_load_explicit(&pool->stop, memory_order_relaxed); /* relaxed: a flag that guards nothing */
}

static bool job_over(mt_pool *pool, memory_order order)
{
    return atomic_load_explicit(&pool->done, order) == pool->wanted;
}

/* Sleeps until someone wakes it. */
static void park(worker *self)
{
    mt_pool *pool = self->pool;

    mt_placement_sleep(&self->place);
    pthread_mutex_lock(&pool->lock);
    self->asleep = true;
    /* Sequentially consistent, here and in publish: either the owner's look at parked comes after this and it wakes
       us, or our look at claim comes after its store and we see the work. */
    atomic_fetch_add_explicit(&pool->parked, 1, memory_order_seq_cst);
    if (work_ready(pool, memory_order_seq_cst)) {
        self->asleep = false;
        atomic_fetch_sub_explicit(&pool->parked, 1, memory_order_relaxed); /* relaxed: changed under the lock only */
    }
    while (self->asleep)
        pthread_cond_wait(&self->wake, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    mt_placement_awake(&self->place);
}

/* Wakes up to count sleepers. */
static void wake(mt_pool *pool, size_t count)
{
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; count > 0 && i < pool->threads - 1; i++) {
        worker *w = &pool->workers[i];

        if (!w->asleep)
            continue;
        w->asleep = false;
        atomic_fetch_sub_explicit(&pool->parked, 1, memory_order_relaxed); /* relaxed: changed under the lock only */
        mt_placement_wake(&w->place);
        pthread_cond_signal(&w->wake);
        count--;
    }
    pthread_mutex_unlock(&pool->lock);
}

static void work_as_helper(mt_pool *pool, size_t index)
{
    uint32_t count = work_through(pool, index);

    if (count == 0)
        return;
    /* Release, so that the owner sees what the items wrote; sequentially consistent with the load below and with
       await_done: either the owner sees done, or we see that it sleeps. */
    atomic_fetch_add_explicit(&pool->done, count, memory_order_seq_cst);
    if (atomic_load_explicit(&pool->owner_parked, memory_order_seq_cst)) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_signal(&pool->finished);
        pthread_mutex_unlock(&pool->lock);
    }
}

static void *worker_main(void *arg)
{
    worker *self = arg;
    mt_pool *pool = self->pool;

#ifdef __linux__
    pthread_setname_np(pthread_self(), "motet-compute");
#endif
    while (!atomic_load_explicit(&pool->stop, memory_order_relaxed)) { /* relaxed: a flag that guards nothing */
        if (!spin(pool, work_ready))
            park(self);
        work_as_helper(pool, self->index);
    }
    return NULL;
}

/* Makes next the current job and sees to it that enough threads are awake for it. */
static void publish(mt_pool *pool, job next)
{
    size_t others = pool->threads - 1, want = next.items - 1, parked;

    pool->job = next;
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed); /* relaxed: published by claim like the job */
    /* Release, for those who claim; sequentially consistent with the load below, for those who park. */
    atomic_store_explicit(&pool->claim, (uint64_t)++pool->number << 32 | next.items, memory_order_seq_cst);
    parked = atomic_load_explicit(&pool->parked, memory_order_seq_cst);
    if (want > pool->helpers)
        want = pool->helpers;
    if (others - parked < want)
        wake(pool, want - (others - parked));
}

/* Waits for the items that other threads have claimed. */
static void await_done(mt_pool *pool)
{
    if (!spin(pool, job_over)) {
        pthread_mutex_lock(&pool->lock);
        atomic_store_explicit(&pool->owner_parked, true, memory_order_seq_cst); /* see work_as_helper */
        while (!job_over(pool, memory_order_seq_cst))
            pthread_cond_wait(&pool->finished, &pool->lock);
        /* Relaxed: a helper that still sees true sends no signal. */
        atomic_store_explicit(&pool->owner_parked, false, memory_order_relaxed);
        pthread_mutex_unlock(&pool->lock);
    }
    /* Acquire: pairs with the release of each helper's count, the last and, through it, those before. */
    (void)atomic_load_explicit(&pool->done, memory_order_acquire);
}

void mt_pool_run(mt_pool *pool, mt_pool_fn *fn, void *ctx, size_t items)
{
    assert(items <= UINT32_MAX);
    const bool taken = atomic_exchange_explicit(&pool->running, true, memory_order_relaxed); /* it finds bugs only */
    assert(!taken);
    (void)taken;
    if (pool->helpers == 0 || items <= 1) {
        for (size_t i = 0; i < items; i++)
            fn(ctx, i, 0);
    } else {
        publish(pool, (job){
                          .fn = fn,
                          .ctx = ctx,
                          .items = (uint32_t)items,
                          .forbid_alloc = mt_alloc_forbidden(),
                      });
        pool->wanted = (uint32_t)items - work_through(pool, 0);
        await_done(pool);
    }
    atomic_store_explicit(&pool->running, false, memory_order_relaxed);
}

/* Starts the thread of one worker with all signals blocked, since they are for the threads that handle them, but for
   the one that says that a mapped file is gone: it comes to the thread that reads the file. */
static int start_worker(mt_pool *pool, size_t index)
{
    worker *w = &pool->workers[index - 1];
    sigset_t all, old;
    int code;

    *w = (worker){.pool = pool, .index = index};
    pthread_cond_init(&w->wake, NULL);
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    code = pthread_create(&w->thread, NULL, worker_main, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return code;
}

mt_pool *mt_pool_new(size_t threads, mt_error *err)
{
    size_t cores = mt_cores_allowed();
    mt_pool *pool;

    if (threads == 0)
        threads = mt_pool_default_threads();
    if (threads > MT_LIMIT_THREADS) {
        mt_fail(err, MT_E_INVALID, "%zu threads are too many: use at most %d", threads, MT_LIMIT_THREADS);
        return NULL;
    }
    pool = mt_alloc_aligned(MT_CACHE_LINE, sizeof(*pool) + (threads - 1) * sizeof(pool->workers[0]));
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->finished, NULL);
    pool->helpers = (threads < cores ? threads : cores) - 1;
    for (pool->threads = 1; pool->threads < threads; pool->threads++) {
        int code = start_worker(pool, pool->threads);

        if (code) {
            mt_fail(err, MT_E_IO, "cannot start thread %zu of %zu: %s: use fewer threads", pool->threads + 1, threads,
                    strerror(code));
            mt_pool_free(pool);
            return NULL;
        }
    }
    return pool;
}

void mt_pool_free(mt_pool *pool)
{
    if (!pool)
        return;
    assert(!atomic_load_explicit(&pool->running, memory_order_relaxed));
    /* Relaxed: those awake see it soon enough; those asleep and those about to be see it through the lock. */
    atomic_store_explicit(&pool->stop, true, memory_order_relaxed);
    wake(pool, pool->threads - 1);
    for (size_t i = 0; i < pool->threads - 1; i++) {
        pthread_join(pool->workers[i].thread, NULL);
        pthread_cond_destroy(&pool->workers[i].wake);
    }
    pthread_cond_destroy(&pool->finished);
    pthread_mutex_destroy(&pool->lock);
    mt_free(pool);
}

size_t mt_pool_threads(const mt_pool *pool)
{
    return pool->threads;
}

size_t mt_pool_default_threads(void)
{
    size_t cores = mt_cores_fast();

    return cores < MT_LIMIT_THREADS ? cores : MT_LIMIT_THREADS;
}
