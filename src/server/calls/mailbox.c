/* A list under one mutex. The wake-up is a queue of capacity one from base/queue.h: full means that the io thread has
   been told already, so a burst of messages costs one system call. */
#include "server/calls/mailbox.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/queue.h"

struct mt_mailbox {
    pthread_mutex_t lock;      /* of the list */
    mt_message *first, **last; /* last: where the next message is linked */
    mt_queue *wake;
};

mt_mailbox *mt_mailbox_new(void)
{
    mt_queue *wake = mt_queue_new(1);
    mt_mailbox *m;

    if (!wake)
        return NULL;
    m = mt_alloc(sizeof(*m));
    pthread_mutex_init(&m->lock, NULL);
    m->last = &m->first;
    m->wake = wake;
    return m;
}

void mt_mailbox_free(mt_mailbox *m)
{
    if (!m)
        return;
    while (m->first)
        mt_mailbox_open(m);
    mt_queue_free(m->wake);
    pthread_mutex_destroy(&m->lock);
    mt_free(m);
}

void mt_mailbox_post(mt_mailbox *m, mt_message *message)
{
    message->next = NULL;
    pthread_mutex_lock(&m->lock);
    *m->last = message;
    m->last = &message->next;
    pthread_mutex_unlock(&m->lock);
    if (!mt_queue_push(m->wake, m)) /* any item will do */
        return;                     /* the queue is full: the io thread was told already */
}

int mt_mailbox_fd(mt_mailbox *m)
{
    return mt_queue_fd(m->wake);
}

/* The wake-up is cleared before the list is taken: a message that comes in between wakes once more. */
void mt_mailbox_open(mt_mailbox *m)
{
    mt_message *message, *next;

    while (mt_queue_pop(m->wake))
        ;
    pthread_mutex_lock(&m->lock);
    message = m->first;
    m->first = NULL;
    m->last = &m->first;
    pthread_mutex_unlock(&m->lock);
    for (; message; message = next) {
        next = message->next;
        message->open(message);
    }
}
