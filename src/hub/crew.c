/* Threads that download items of a list (crew.h). */
#include "hub/crew.h"

#include <pthread.h>

#include "base/clock.h"
#include "hub/limits.h"

#define LOOK_MS 100

/* A list that is being processed. */
typedef struct run {
    mt_crew *crew;
    bool (*work)(void *arg, mt_line *line, size_t item, mt_error *err);
    size_t items;
    pthread_mutex_t lock; /* protects the fields below */
    pthread_cond_t ended;
    size_t next, busy, hands;
    bool failed;
    mt_error error; /* of the first item that failed */
} run;

static void stop(mt_crew *crew)
{
    /* relaxed: no other data depend on the flag */
    atomic_store_explicit(&crew->stop, true, memory_order_relaxed);
}

/* Ends an item and returns the next, or the number of items where there is none for this thread. */
static size_t next_item(run *r, bool ok, const mt_error *err)
{
    size_t item = r->items;

    pthread_mutex_lock(&r->lock);
    if (!ok && !r->failed) {
        r->failed = true;
        r->error = *err;
        stop(r->crew);
    }
    if (!r->failed && r->next < r->items)
        item = r->next++;
    else if (--r->busy == 0)
        pthread_cond_signal(&r->ended);
    pthread_mutex_unlock(&r->lock);
    return item;
}

static mt_line *line_of(run *r, size_t hand, mt_error *err)
{
    mt_line **line = &r->crew->lines[hand];

    if (!*line)
        *line = mt_line_open(r->crew->remote, r->crew->name, &r->crew->stop, err);
    return *line;
}

static void *labour(void *arg)
{
    run *r = arg;
    mt_error err = {0};
    mt_line *line;
    size_t item;

    pthread_mutex_lock(&r->lock);
    const size_t hand = r->hands++;
    pthread_mutex_unlock(&r->lock);
    line = line_of(r, hand, &err);
    for (bool ok = line != NULL; (item = next_item(r, ok, &err)) < r->items;)
        ok = r->work(r->crew->arg, line, item, &err);
    return NULL;
}

static bool is_cancelled(const mt_crew *crew)
{
    /* relaxed: no other data depend on the flag */
    return crew->cancel && atomic_load_explicit(crew->cancel, memory_order_relaxed);
}

static void wait_for(run *r)
{
    pthread_mutex_lock(&r->lock);
    while (r->busy > 0) {
        const struct timespec until = mt_clock_deadline(LOOK_MS);

        pthread_cond_timedwait(&r->ended, &r->lock, &until);
        pthread_mutex_unlock(&r->lock);
        if (is_cancelled(r->crew))
            stop(r->crew);
        r->crew->look(r->crew->arg);
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
}

bool mt_crew_run(mt_crew *crew, size_t items, bool (*work)(void *arg, mt_line *line, size_t item, mt_error *err),
                 mt_error *err)
{
    run r = {.crew = crew, .work = work, .items = items};
    pthread_t threads[MT_LIMIT_PULL_AT_ONCE];
    const size_t wanted = items < crew->size ? items : crew->size;
    size_t started = 0;

    if (is_cancelled(crew))
        return mt_fail(err, MT_E_IO, "the download was stopped");
    pthread_mutex_init(&r.lock, NULL);
    mt_clock_cond_init(&r.ended);
    r.busy = wanted;
    while (started < wanted && pthread_create(&threads[started], NULL, labour, &r) == 0)
        started++;
    if (started < wanted) {
        pthread_mutex_lock(&r.lock);
        r.busy -= wanted - started;
        pthread_mutex_unlock(&r.lock);
    }
    wait_for(&r);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&r.ended);
    pthread_mutex_destroy(&r.lock);
    if (r.failed)
        *err = r.error;
    if (!r.failed && started == 0 && items > 0)
        return mt_fail(err, MT_E_IO, "no thread can be started: try again later");
    return !r.failed;
}

void mt_crew_end(mt_crew *crew)
{
    for (size_t i = 0; i < MT_LIMIT_PULL_AT_ONCE; i++)
        mt_line_close(crew->lines[i]);
}
