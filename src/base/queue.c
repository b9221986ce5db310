/* A ring under one mutex. Items are whole requests and events, a few thousand a second at most: a lock-free ring would
   gain nothing measurable and need a proof.

   Invariants, under the lock:
   1. count <= capacity; the items are slots[head .. head + count) modulo capacity.
   2. Once mt_queue_fd was called (watched), the descriptor is readable exactly while count > 0 or the queue is closed.
      A queue without a watcher makes no system calls for it. */
#include "base/queue.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/eventfd.h>
#endif

#include "base/alloc.h"
#include "base/clock.h"

enum { WAKE_TRIES = 8 };

struct mt_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void **slots;
    size_t capacity, head, count;
    bool closed, watched, signalled;
    int wake_read, wake_write; /* the same descriptor where there is eventfd */
};

#ifdef __linux__
static bool wake_open(mt_queue *queue)
{
    queue->wake_read = queue->wake_write = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return queue->wake_read >= 0;
}
#else
static bool wake_open(mt_queue *queue)
{
    int fds[2];

    if (pipe(fds))
        return false;
    for (int i = 0; i < 2; i++) {
        fcntl(fds[i], F_SETFL, O_NONBLOCK);
        fcntl(fds[i], F_SETFD, FD_CLOEXEC);
    }
    queue->wake_read = fds[0];
    queue->wake_write = fds[1];
    return true;
}
#endif

/* Restores invariant 2. Eight bytes in and out suit both an eventfd and a pipe; at most eight are ever inside. */
static void wake_update(mt_queue *queue)
{
    bool wanted = queue->watched && (queue->count > 0 || queue->closed);
    uint64_t one = 1;
    int tries = 0;
    ssize_t n;

    if (wanted == queue->signalled)
        return;
    do /* repeated, since a thread that is not woken would wait for ever */
        n = wanted ? write(queue->wake_write, &one, sizeof(one)) : read(queue->wake_read, &one, sizeof(one));
    while (n < 0 && (errno == EINTR || ++tries < WAKE_TRIES));
    if (n == sizeof(one))
        queue->signalled = wanted;
}

mt_queue *mt_queue_new(size_t capacity)
{
    mt_queue *queue = mt_alloc(sizeof(*queue));

    assert(capacity > 0);
    if (!wake_open(queue)) {
        mt_free(queue);
        return NULL;
    }
    queue->slots = mt_alloc_array(capacity, sizeof(*queue->slots));
    queue->capacity = capacity;
    pthread_mutex_init(&queue->lock, NULL);
    mt_clock_cond_init(&queue->changed);
    return queue;
}

void mt_queue_free(mt_queue *queue)
{
    if (!queue)
        return;
    close(queue->wake_read);
    if (queue->wake_write != queue->wake_read)
        close(queue->wake_write);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    mt_free(queue->slots);
    mt_free(queue);
}

bool mt_queue_push(mt_queue *queue, void *item)
{
    bool fits;

    assert(item);
    pthread_mutex_lock(&queue->lock);
    fits = !queue->closed && queue->count < queue->capacity;
    if (fits) {
        queue->slots[(queue->head + queue->count) % queue->capacity] = item;
        queue->count++;
        wake_update(queue);
        pthread_cond_signal(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return fits;
}

static void *pop_locked(mt_queue *queue)
{
    void *item;

    if (queue->count == 0)
        return NULL;
    item = queue->slots[queue->head];
    queue->head = (queue->head + 1) % queue->capacity;
    queue->count--;
    wake_update(queue);
    return item;
}

void *mt_queue_pop(mt_queue *queue)
{
    void *item;

    pthread_mutex_lock(&queue->lock);
    item = pop_locked(queue);
    pthread_mutex_unlock(&queue->lock);
    return item;
}

void *mt_queue_wait(mt_queue *queue, int timeout_ms)
{
    struct timespec deadline = {0};
    void *item;

    if (timeout_ms >= 0)
        deadline = mt_clock_deadline(timeout_ms);
    pthread_mutex_lock(&queue->lock);
    while (queue->count == 0 && !queue->closed) {
        if (timeout_ms < 0)
            pthread_cond_wait(&queue->changed, &queue->lock);
        else if (pthread_cond_timedwait(&queue->changed, &queue->lock, &deadline) == ETIMEDOUT)
            break;
    }
    item = pop_locked(queue);
    pthread_mutex_unlock(&queue->lock);
    return item;
}

void mt_queue_close(mt_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    wake_update(queue);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

size_t mt_queue_len(mt_queue *queue)
{
    size_t count;

    pthread_mutex_lock(&queue->lock);
    count = queue->count;
    pthread_mutex_unlock(&queue->lock);
    return count;
}

int mt_queue_fd(mt_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->watched = true;
    wake_update(queue);
    pthread_mutex_unlock(&queue->lock);
    return queue->wake_read;
}
