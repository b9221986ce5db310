/* The threads that perform errands, in the order in which they were given, but those that fetch before those that
   store. One thread is for shelf and disk; where there is a depot, a second one waits for the network, several records
   at a time. */
#include <string.h>

#include "base/clock.h"
#include "engine/keep_inside.h"

/* Call with the lock held. The errand that was given first; those that fetch come before those that store. */
static mt_errand *next_errand(mt_keep *k, bool far)
{
    mt_errand *best = NULL;
    for (size_t i = 0; i < MT_KEEP_ERRANDS; i++) {
        mt_errand *x = &k->errand[i];
        if (x->state == MT_ERRAND_GIVEN && x->far == far &&
            (!best || x->store < best->store || (x->store == best->store && x->order < best->order)))
            best = x;
    }
    return best;
}

/* Performs one errand, or several of the depot's together; called without the lock. */
static void go(mt_keep *k, mt_errand *const some[], size_t count)
{
    mt_depot_want want[MT_KEEP_ERRANDS];
    mt_errand *x = some[0];
    if (x->asked)
        mt_depot_ask(k->tiers.remote, (const uint8_t(*)[MT_TIER_KEY])x->keys, x->asked);
    else if (x->store)
        mt_tiers_write(&k->tiers, x->key, x->kind, x->part, x->parts);
    else if (!x->far)
        x->ok = mt_tiers_read(&k->tiers, &x->tier, x->key, x->kind, x->part, x->parts);
    if (x->asked || !x->far)
        return;
    for (size_t i = 0; i < count; i++)
        want[i] =
            (mt_depot_want){.key = some[i]->key, .kind = some[i]->kind, .part = some[i]->part, .parts = some[i]->parts};
    mt_depot_read(k->tiers.remote, want, count);
    for (size_t i = 0; i < count; i++)
        some[i]->ok = want[i].ok;
}

/* Call with the lock held. Picks the errands that are performed together, and marks them as under way. */
static size_t take(mt_keep *k, bool far, mt_errand *some[])
{
    size_t count = 0;
    for (mt_errand *x; (count == 0 || (far && !some[0]->asked)) && (x = next_errand(k, far));) {
        if (count > 0 && x->asked)
            break;
        x->state = MT_ERRAND_UNDER_WAY;
        some[count++] = x;
    }
    return count;
}

/* The loop of an errands' thread; far: the one for the depot. */
static void run(mt_keep *k, bool far)
{
    mt_errand *some[MT_KEEP_ERRANDS];
    pthread_mutex_lock(&k->lock);
    for (;;) {
        const size_t count = take(k, far, some);
        if (count == 0 && k->ending)
            break;
        if (count == 0) {
            pthread_cond_wait(&k->given, &k->lock);
            continue;
        }
        pthread_mutex_unlock(&k->lock);
        const uint64_t began = mt_clock_ns();
        go(k, some, count);
        pthread_mutex_lock(&k->lock);
        for (size_t i = 0; i < count; i++) {
            some[i]->took = (mt_clock_ns() - began) / count;
            some[i]->state = MT_ERRAND_DONE;
        }
        k->wake(k->engine);
    }
    pthread_mutex_unlock(&k->lock);
}

static void *run_near(void *arg)
{
    run(arg, false);
    return NULL;
}

static void *run_far(void *arg)
{
    run(arg, true);
    return NULL;
}

bool mt_errands_start(mt_keep *k, mt_error *err)
{
    k->threads = pthread_create(&k->thread[0], NULL, run_near, k) == 0;
    if (k->threads && k->tiers.remote)
        k->threads += pthread_create(&k->thread[1], NULL, run_far, k) == 0;
    if (k->threads == (k->tiers.remote ? 2 : 1))
        return true;
    mt_errands_stop(k);
    return mt_fail(err, MT_E_IO, "a thread for the cache cannot be started; raise the limit (ulimit -u)");
}

void mt_errands_stop(mt_keep *k)
{
    pthread_mutex_lock(&k->lock);
    k->ending = true;
    pthread_cond_broadcast(&k->given);
    pthread_mutex_unlock(&k->lock);
    for (; k->threads > 0; k->threads--)
        pthread_join(k->thread[k->threads - 1], NULL);
}

void mt_errand_give(mt_keep *k, mt_errand *x)
{
    pthread_mutex_lock(&k->lock);
    x->order = k->order++;
    x->state = MT_ERRAND_GIVEN;
    pthread_cond_broadcast(&k->given);
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

/* Whether one that is done has to wait for others of its sequence: a state for its pages, a page for those before it.
   Those of the depot are brought by a thread of their own, later than those behind them that a disk has. */
static bool has_to_wait(const mt_keep *k, const mt_errand *x)
{
    if (x->kind == MT_KEEP_STATE)
        return x->s && x->s->kept.brought;
    for (size_t i = MT_KEEP_STORES; i < MT_KEEP_ERRANDS && x->kind == MT_KEEP_PAGE && x->s; i++) {
        const mt_errand *y = &k->errand[i];
        if (y->s == x->s && y->kind == MT_KEEP_PAGE && y->at < x->at &&
            (y->state == MT_ERRAND_GIVEN || y->state == MT_ERRAND_UNDER_WAY))
            return true;
    }
    return false;
}

/* Looks at all under one lock: otherwise two could end between two looks, and the later be seen before the earlier. */
mt_errand *mt_errand_first(mt_keep *k, mt_errand_state state)
{
    mt_errand *first = NULL;
    pthread_mutex_lock(&k->lock);
    for (size_t i = MT_KEEP_STORES; i < MT_KEEP_ERRANDS; i++) {
        mt_errand *x = &k->errand[i];
        if (x->state == state && (!first || x->order < first->order) && !(state == MT_ERRAND_DONE && has_to_wait(k, x)))
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
        mt_sending_wait(e->dev, x->sending); /* pages that the device still writes must not become another sequence's */
    mt_held_release(e, &x->held);
    x->s = NULL;
    x->view = NULL;
    mt_errand_set(e->keep, x, MT_ERRAND_FREE);
}
