/* The thread that runs errands, in the order in which they were given, those that bring something back first. */
#include <string.h>

#include "base/clock.h"
#include "engine/keep_inside.h"

/* The first that was given, of those that bring something back if there is one; under the lock. */
static mt_errand *next_errand(mt_keep *k)
{
    mt_errand *best = NULL;
    for (size_t i = 0; i < MT_KEEP_ERRANDS; i++) {
        mt_errand *x = &k->errand[i];
        if (x->state == MT_ERRAND_GIVEN &&
            (!best || x->store < best->store || (x->store == best->store && x->order < best->order)))
            best = x;
    }
    return best;
}

static void *run(void *arg)
{
    mt_keep *k = arg;
    pthread_mutex_lock(&k->lock);
    for (;;) {
        mt_errand *x = next_errand(k);
        if (!x && k->ending)
            break;
        if (!x) {
            pthread_cond_wait(&k->given, &k->lock);
            continue;
        }
        x->state = MT_ERRAND_UNDER_WAY;
        pthread_mutex_unlock(&k->lock);
        const uint64_t began = mt_clock_ns();
        if (x->store)
            mt_tiers_write(&k->tiers, x->key, x->kind, x->part, x->parts);
        else
            x->ok = mt_tiers_read(&k->tiers, &x->tier, x->key, x->kind, x->part, x->parts);
        pthread_mutex_lock(&k->lock);
        x->took = mt_clock_ns() - began;
        x->state = MT_ERRAND_DONE;
        k->wake(k->engine);
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

bool mt_errands_start(mt_keep *k, mt_error *err)
{
    return pthread_create(&k->thread, NULL, run, k) == 0 ||
           mt_fail(err, MT_E_IO, "a thread for the cache cannot be started; raise the limit (ulimit -u)");
}

void mt_errands_stop(mt_keep *k)
{
    pthread_mutex_lock(&k->lock);
    k->ending = true;
    pthread_cond_signal(&k->given);
    pthread_mutex_unlock(&k->lock);
    pthread_join(k->thread, NULL);
}

void mt_errand_give(mt_keep *k, mt_errand *x)
{
    pthread_mutex_lock(&k->lock);
    x->order = k->order++;
    x->state = MT_ERRAND_GIVEN;
    pthread_cond_signal(&k->given);
    pthread_mutex_unlock(&k->lock);
}

mt_errand_state mt_errand_look(mt_keep *k, const mt_errand *x)
{
    pthread_mutex_lock(&k->lock);
    const mt_errand_state state = x->state;
    pthread_mutex_unlock(&k->lock);
    return state;
}

mt_errand *mt_errand_free(mt_keep *k, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        if (mt_errand_look(k, &k->errand[i]) == MT_ERRAND_FREE)
            return &k->errand[i];
    return NULL;
}

/* All are looked at at once: else two might end between two looks, and the second be seen without the first. */
mt_errand *mt_errand_first(mt_keep *k, mt_errand_state state)
{
    mt_errand *first = NULL;
    pthread_mutex_lock(&k->lock);
    for (size_t i = MT_KEEP_STORES; i < MT_KEEP_ERRANDS; i++) {
        mt_errand *x = &k->errand[i];
        const bool waits = x->kind == MT_KEEP_STATE && x->s && x->s->kept.brought; /* for its pages */
        if (x->state == state && !(state == MT_ERRAND_DONE && waits) && (!first || x->order < first->order))
            first = x;
    }
    pthread_mutex_unlock(&k->lock);
    return first;
}

void mt_held_init(mt_held *h)
{
    *h = (mt_held){.slot = MT_NO_PAGE};
    for (size_t g = 0; g < MT_KV_GROUPS; g++)
        h->page[g] = MT_NO_PAGE;
}

void mt_held_release(mt_engine *e, mt_held *h)
{
    for (size_t g = 0; g < e->keep->groups; g++)
        if (h->page[g] != MT_NO_PAGE)
            mt_tree_release(e->tree, g, h->page[g], false);
    if (h->slot != MT_NO_PAGE)
        mt_anchors_release(mt_tree_anchors(e->tree), h->slot);
    if (h->medium) {
        mt_gallery_unpin(e->gallery, h->medium);
        mt_gallery_release(e->gallery, h->medium);
    }
    mt_held_init(h);
}

void mt_errand_set(mt_keep *k, mt_errand *x, mt_errand_state state)
{
    pthread_mutex_lock(&k->lock);
    x->state = state;
    pthread_mutex_unlock(&k->lock);
}

void mt_errand_end(mt_engine *e, mt_errand *x)
{
    if (x->sending)
        mt_sending_wait(e->dev, x->sending); /* its pages may become somebody else's */
    mt_held_release(e, &x->held);
    x->s = NULL;
    x->view = NULL;
    mt_errand_set(e->keep, x, MT_ERRAND_FREE);
}
