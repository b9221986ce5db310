/* See workers.h. */
#include "server/workers.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/queue.h"

struct mt_workers {
    mt_queue *queue;
    pthread_t *threads;
    size_t count;
    void (*prepare)(mt_call *call);
};

static void *work(void *arg)
{
    mt_workers *w = arg;
    mt_call *call;

    while ((call = mt_queue_wait(w->queue, -1)))
        w->prepare(call);
    return NULL;
}

mt_workers *mt_workers_start(size_t threads, size_t capacity, void (*prepare)(mt_call *call), mt_error *err)
{
    mt_workers *w = mt_alloc(sizeof(*w));
    int failed = 0;

    w->prepare = prepare;
    w->queue = mt_queue_new(capacity);
    w->threads = mt_alloc_array(threads, sizeof(*w->threads));
    for (; w->queue && !failed && w->count < threads; w->count += failed ? 0 : 1)
        failed = pthread_create(&w->threads[w->count], NULL, work, w);
    if (w->queue && !failed)
        return w;
    mt_fail(err, MT_E_IO, "the preparation threads cannot be started: %s", strerror(failed));
    mt_workers_stop(w);
    return NULL;
}

void mt_workers_stop(mt_workers *w)
{
    if (!w)
        return;
    if (w->queue)
        mt_queue_close(w->queue);
    for (size_t i = 0; i < w->count; i++)
        pthread_join(w->threads[i], NULL);
    mt_queue_free(w->queue);
    mt_free(w->threads);
    mt_free(w);
}

bool mt_workers_add(mt_workers *w, mt_call *call)
{
    return mt_queue_push(w->queue, call);
}

size_t mt_workers_waiting(mt_workers *w)
{
    return mt_queue_len(w->queue);
}
