/* See deadline.h. */
#include "server/calls/deadline.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/* The thread, which ends the process when the time is over. */
static void *wait_for(void *arg)
{
    mt_deadline *d = arg;
    const struct timespec until = mt_clock_deadline(d->ms);
    int result = 0;
    bool met;

    pthread_mutex_lock(&d->lock);
    while (!d->met && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&d->changed, &d->lock, &until);
    met = d->met;
    pthread_mutex_unlock(&d->lock);
    if (met)
        return NULL;
    signal(SIGALRM, SIG_DFL); /* it is ignored while the server works (base/signals.h) */
    alarm(1);                 /* ends the process if writing to the log blocks */
    mt_log_error("server.stuck", "a thread is still at work when the time to end is over: ending without it");
    _exit(EXIT_FAILURE);
}

bool mt_deadline_set(mt_deadline *d, int ms)
{
    d->ms = ms;
    pthread_mutex_init(&d->lock, NULL);
    mt_clock_cond_init(&d->changed);
    d->set = pthread_create(&d->thread, NULL, wait_for, d) == 0;
    return d->set;
}

void mt_deadline_meet(mt_deadline *d)
{
    if (!d->set)
        return;
    pthread_mutex_lock(&d->lock);
    d->met = true;
    pthread_cond_signal(&d->changed);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    *d = (mt_deadline){0};
}
