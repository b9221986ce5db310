#include "base/lease.h"

void mt_lease_init(mt_lease *lease)
{
    *lease = (mt_lease){.next = 0};
    pthread_mutex_init(&lease->lock, NULL);
    pthread_cond_init(&lease->passed, NULL);
}

void mt_lease_free(mt_lease *lease)
{
    pthread_cond_destroy(&lease->passed);
    pthread_mutex_destroy(&lease->lock);
}

void mt_lease_take(mt_lease *lease)
{
    if (!lease)
        return;
    pthread_mutex_lock(&lease->lock);
    const uint64_t mine = lease->next++;
    while (lease->now != mine)
        pthread_cond_wait(&lease->passed, &lease->lock);
    pthread_mutex_unlock(&lease->lock);
}

void mt_lease_give(mt_lease *lease)
{
    if (!lease)
        return;
    pthread_mutex_lock(&lease->lock);
    lease->now++;
    pthread_cond_broadcast(&lease->passed);
    pthread_mutex_unlock(&lease->lock);
}
