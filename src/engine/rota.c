/* Turns are fair by time, not by number: an engine with long steps has fewer of them. Each place counts the seconds it
   had. An engine that returns after a pause starts with the count of the one that was let in last, so that no engine
   saves up time by pausing, or pays later for the time it had alone.

   All engines wait on one condition variable: there are only a few, one a model that computes now. */
#include "engine/rota.h"

#include <assert.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/clock.h"

struct mt_rota {
    pthread_mutex_t lock;   /* protects the other fields, and the places */
    pthread_cond_t ended;   /* a turn has ended */
    mt_rota_place *waiting; /* in no order */
    size_t wanting;         /* engines that have a turn or wait for one */
    bool taken;             /* one of them has a turn */
    double level;           /* seconds that the place let in last had then */
};

mt_rota *mt_rota_new(void)
{
    mt_rota *r = mt_alloc(sizeof(*r));
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->ended, NULL);
    return r;
}

void mt_rota_free(mt_rota *r)
{
    if (!r)
        return;
    assert(r->wanting == 0);
    pthread_cond_destroy(&r->ended);
    pthread_mutex_destroy(&r->lock);
    mt_free(r);
}

static bool is_next(const mt_rota *r, const mt_rota_place *place)
{
    for (const mt_rota_place *p = r->waiting; p; p = p->next)
        if (p->had < place->had)
            return false;
    return !r->taken;
}

static void leave(mt_rota *r, mt_rota_place *place)
{
    mt_rota_place **at = &r->waiting;
    while (*at != place)
        at = &(*at)->next;
    *at = place->next;
}

void mt_rota_begin(mt_rota *r, mt_rota_place *place)
{
    pthread_mutex_lock(&r->lock);
    if (place->had < r->level)
        place->had = r->level;
    place->next = r->waiting;
    r->waiting = place;
    r->wanting++;
    while (!is_next(r, place))
        pthread_cond_wait(&r->ended, &r->lock);
    leave(r, place);
    r->taken = true;
    r->level = place->had;
    pthread_mutex_unlock(&r->lock);
    place->began = mt_clock_ns();
}

void mt_rota_end(mt_rota *r, mt_rota_place *place)
{
    const double seconds = (double)(mt_clock_ns() - place->began) * 1e-9;
    pthread_mutex_lock(&r->lock);
    place->had += seconds;
    r->taken = false;
    r->wanting--;
    if (r->waiting)
        pthread_cond_broadcast(&r->ended);
    pthread_mutex_unlock(&r->lock);
}

size_t mt_rota_wanting(mt_rota *r)
{
    pthread_mutex_lock(&r->lock);
    const size_t wanting = r->wanting;
    pthread_mutex_unlock(&r->lock);
    return wanting;
}
