/* A lane's queue and threads (workers.h). All state is under the lane's lock; the threads prepare calls without it.

   Which call is next:
   1. The client with the fewest calls in preparation here, divided by its share, comes first; of equals, the one that
      has used the least processor time in this lane lately (engine/clients.h). Of its calls, one from the address with
      the fewest calls in preparation comes first; of equals, the oldest.
   2. `threads` calls run at once. A call of a client that has none running may use a spare thread, so that no client
      waits while another has all threads.
   3. A call that has run for `long_ms`, or says that it will take long, no longer counts as one of the `threads`:
      another may begin on a spare thread beside it, but half of the spare threads are kept for rule 2.

   Rejected: stopping long work and preparing it again later. Pictures would be fetched and decoded twice. */
#include "server/prepare/workers.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

typedef struct worker {
    mt_workers *lane;
    pthread_t thread;
    uint64_t since;   /* mt_clock_ns: when its call began; 0: it has none */
    uint64_t address; /* of its call */
    bool is_long;     /* its call has said that it takes long */
} worker;

struct mt_workers {
    mt_workers_settings settings;
    worker *workers; /* as many as `threads` and `spare` together */

    pthread_mutex_t lock;   /* of the fields below, and of what workers do */
    size_t count;           /* threads that were started: spare ones when they are first needed */
    size_t idle;            /* of count: those that wait for a call */
    pthread_cond_t changed; /* a call may begin, or the lane is closed */
    mt_clients clients;
    mt_call *first, **end; /* calls that wait, in the order they came */
    size_t waiting, running;
    bool closed;
};

/* The client whose call is next. NULL: no call waits. */
static mt_client_record *next_client(mt_workers *w, uint64_t now)
{
    size_t index = 0;

    for (size_t i = 0; i < w->clients.count; i++) {
        mt_client_record *g = &w->clients.client_record[i];

        g->debt = mt_client_record_debt(g, now);
        g->first = SIZE_MAX;
    }
    for (const mt_call *call = w->first; call; call = call->behind, index++)
        call->client_record->first = call->client_record->first < index ? call->client_record->first : index;
    return mt_clients_next(&w->clients);
}

/* How many running calls are not long yet. *next_ms: after how many milliseconds one more will be. */
static size_t count_short(const mt_workers *w, uint64_t now, int *next_ms)
{
    const uint64_t most = (uint64_t)w->settings.long_ms * 1000000;
    size_t count = 0;

    *next_ms = w->settings.long_ms;
    for (size_t i = 0; i < w->count; i++) {
        const uint64_t since = w->workers[i].since;

        if (since && !w->workers[i].is_long && now < since + most) {
            const int left_ms = (int)((since + most - now) / 1000000) + 1;

            count++;
            *next_ms = left_ms < *next_ms ? left_ms : *next_ms;
        }
    }
    return count;
}

/* Whether a call of the client may begin on a free thread: rules 2 and 3. False: *next_ms says when to ask again. */
static bool may_begin(const mt_workers *w, const mt_client_record *client_record, uint64_t now, int *next_ms)
{
    const size_t threads = w->settings.threads, spare = w->settings.spare;

    if (w->running < threads || client_record->running == 0)
        return true;
    return count_short(w, now, next_ms) < threads && w->running < threads + spare / 2;
}

/* How many calls from an address are in preparation. */
static size_t count_running(const mt_workers *w, uint64_t address)
{
    size_t count = 0;

    for (size_t i = 0; i < w->count; i++)
        count += w->workers[i].since && w->workers[i].address == address;
    return count;
}

/* Takes the next call of a client out of the queue. */
static mt_call *remove_next(mt_workers *w, mt_client_record *client_record)
{
    mt_call **found = NULL, *call;
    size_t fewest = SIZE_MAX;

    for (mt_call **at = &w->first; *at && fewest > 0; at = &(*at)->behind) {
        const size_t running = (*at)->client_record == client_record ? count_running(w, (*at)->address) : SIZE_MAX;

        if (running < fewest) {
            fewest = running;
            found = at;
        }
    }
    call = *found;
    *found = call->behind;
    if (!*found)
        w->end = found;
    w->waiting--;
    client_record->eager--;
    return call;
}

static void *work(void *arg);

/* Starts one more thread. Returns an error number; 0: it was started. */
static int start_thread(mt_workers *w)
{
    worker *next = &w->workers[w->count];
    int failed;

    next->lane = w;
    failed = pthread_create(&next->thread, NULL, work, next);
    w->count += failed ? 0 : 1;
    return failed;
}

/* Has a thread look at the queue: one that is idle, or else a spare one. Where none can be started, a busy one looks
   when it is done. */
static void wake(mt_workers *w)
{
    if (w->idle > 0 || w->closed || w->count == w->settings.threads + w->settings.spare)
        pthread_cond_signal(&w->changed);
    else
        (void)start_thread(w);
}

/* Waits for the next call. NULL: the lane is closed, and none waits. With the lock. */
static mt_call *wait_for_call(mt_workers *w)
{
    while (w->waiting > 0 || !w->closed) {
        const uint64_t now = mt_clock_ns();
        mt_client_record *client_record = next_client(w, now);
        int next_ms = 0;

        if (client_record && may_begin(w, client_record, now, &next_ms))
            return remove_next(w, client_record);
        w->idle++;
        if (client_record) {
            const struct timespec until = mt_clock_deadline(next_ms);

            pthread_cond_timedwait(&w->changed, &w->lock, &until);
        } else
            pthread_cond_wait(&w->changed, &w->lock);
        w->idle--;
    }
    return NULL;
}

/* The callback mt_prep.takes_long. */
static void takes_long(void *ctx)
{
    worker *self = ctx;

    pthread_mutex_lock(&self->lane->lock);
    self->is_long = true;
    if (self->lane->waiting > 0)
        wake(self->lane);
    pthread_mutex_unlock(&self->lane->lock);
}

static void *work(void *arg)
{
    worker *self = arg;
    mt_workers *w = self->lane;
    mt_call *call;

    pthread_mutex_lock(&w->lock);
    while ((call = wait_for_call(w))) {
        mt_client_record *client_record = call->client_record;
        double seconds;

        self->since = mt_clock_ns();
        self->address = call->address;
        self->is_long = false;
        call->prep.takes_long = takes_long;
        call->prep.lane = self;
        client_record->running++;
        w->running++;
        if (w->waiting > 0)
            wake(w); /* another thread looks whether the next may begin, too */
        pthread_mutex_unlock(&w->lock);
        seconds = w->settings.prepare(call);
        pthread_mutex_lock(&w->lock);
        self->since = 0;
        w->running--;
        client_record->running--;
        client_record->here--;
        mt_client_record_charge(client_record, seconds, mt_clock_ns());
    }
    pthread_cond_signal(&w->changed); /* the next thread ends, too */
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

mt_workers *mt_workers_start(const mt_workers_settings *settings, mt_error *err)
{
    const size_t all = settings->threads + settings->spare;
    mt_workers *w = mt_alloc(sizeof(*w));
    int failed = 0;

    w->settings = *settings;
    w->end = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    mt_clock_cond_init(&w->changed);
    mt_clients_init(&w->clients, settings->capacity + all);
    w->workers = mt_alloc_array(all, sizeof(*w->workers));
    pthread_mutex_lock(&w->lock);
    while (!failed && w->count < settings->threads)
        failed = start_thread(w);
    pthread_mutex_unlock(&w->lock);
    if (!failed)
        return w;
    mt_fail(err, MT_E_IO, "the preparation threads cannot be started: %s", strerror(failed));
    mt_workers_stop(w);
    return NULL;
}

void mt_workers_stop(mt_workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->closed = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < w->count; i++)
        pthread_join(w->workers[i].thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    mt_clients_free(&w->clients);
    mt_free(w->workers);
    mt_free(w);
}

bool mt_workers_add(mt_workers *w, mt_call *call)
{
    bool fits;

    pthread_mutex_lock(&w->lock);
    fits = !w->closed && w->waiting < w->settings.capacity;
    if (fits) {
        call->behind = NULL;
        call->client_record = mt_clients_enter(&w->clients, &call->client, 1, mt_clock_ns());
        call->client_record->eager++;
        *w->end = call;
        w->end = &call->behind;
        w->waiting++;
        wake(w);
    }
    pthread_mutex_unlock(&w->lock);
    return fits;
}

size_t mt_workers_waiting(mt_workers *w)
{
    size_t waiting;

    pthread_mutex_lock(&w->lock);
    waiting = w->waiting;
    pthread_mutex_unlock(&w->lock);
    return waiting;
}
