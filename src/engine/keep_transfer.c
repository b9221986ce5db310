/* The threads that perform transfers, in the order in which they were given, but those that fetch before those that
   store. One thread is for host store and disk; where there is a remote store, a second one waits for the network,
   several records at a time. */
#include <string.h>

#include "base/clock.h"
#include "engine/keep_inside.h"

/* Call with the lock held. The transfer that was given first; those that fetch come before those that store. */
static mt_keep_transfer *next_transfer(mt_keep *k, bool far)
{
    mt_keep_transfer *best = NULL;
    for (size_t i = 0; i < MT_KEEP_TRANSFERS; i++) {
        mt_keep_transfer *x = &k->transfer[i];
        if (x->state == MT_KEEP_TRANSFER_GIVEN && x->far == far &&
            (!best || x->store < best->store || (x->store == best->store && x->order < best->order)))
            best = x;
    }
    return best;
}

/* Performs one transfer, or several of the remote store's together; called without the lock. */
static void go(mt_keep *k, mt_keep_transfer *const some[], size_t count)
{
    mt_remote_store_want want[MT_KEEP_TRANSFERS];
    mt_keep_transfer *x = some[0];
    if (x->asked)
        mt_remote_store_ask(k->tiers.remote, (const uint8_t(*)[MT_TIER_KEY])x->keys, x->asked);
    else if (x->store)
        mt_tiers_write(&k->tiers, x->key, x->kind, x->part, x->parts);
    else if (!x->far)
        x->ok = mt_tiers_read(&k->tiers, &x->tier, x->key, x->kind, x->part, x->parts);
    if (x->asked || !x->far)
        return;
    for (size_t i = 0; i < count; i++)
        want[i] = (mt_remote_store_want){
            .key = some[i]->key, .kind = some[i]->kind, .part = some[i]->part, .parts = some[i]->parts};
    mt_remote_store_read(k->tiers.remote, want, count);
    for (size_t i = 0; i < count; i++)
        some[i]->ok = want[i].ok;
}

/* Call with the lock held. Picks the transfers that are performed together, and marks them as under way. */
static size_t take(mt_keep *k, bool far, mt_keep_transfer *some[])
{
    size_t count = 0;
    for (mt_keep_transfer *x; (count == 0 || (far && !some[0]->asked)) && (x = next_transfer(k, far));) {
        if (count > 0 && x->asked)
            break;
        x->state = MT_KEEP_TRANSFER_UNDER_WAY;
        some[count++] = x;
    }
    return count;
}

/* The loop of the transfers' threads; far: the one for the remote store. */
static void run(mt_keep *k, bool far)
{
    mt_keep_transfer *some[MT_KEEP_TRANSFERS];
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
            some[i]->state = MT_KEEP_TRANSFER_DONE;
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

bool mt_transfers_start(mt_keep *k, mt_error *err)
{
    k->threads = pthread_create(&k->thread[0], NULL, run_near, k) == 0;
    if (k->threads && k->tiers.remote)
        k->threads += pthread_create(&k->thread[1], NULL, run_far, k) == 0;
    if (k->threads == (k->tiers.remote ? 2 : 1))
        return true;
    mt_transfers_stop(k);
    return mt_fail(err, MT_E_IO, "a thread for the cache cannot be started; raise the limit (ulimit -u)");
}

void mt_transfers_stop(mt_keep *k)
{
    pthread_mutex_lock(&k->lock);
    k->ending = true;
    pthread_cond_broadcast(&k->given);
    pthread_mutex_unlock(&k->lock);
    for (; k->threads > 0; k->threads--)
        pthread_join(k->thread[k->threads - 1], NULL);
}

void mt_keep_transfer_give(mt_keep *k, mt_keep_transfer *x)
{
    pthread_mutex_lock(&k->lock);
    x->order = k->order++;
    x->state = MT_KEEP_TRANSFER_GIVEN;
    pthread_cond_broadcast(&k->given);
    pthread_mutex_unlock(&k->lock);
}

mt_keep_transfer_state mt_keep_transfer_look(mt_keep *k, const mt_keep_transfer *x)
{
    pthread_mutex_lock(&k->lock);
    const mt_keep_transfer_state state = x->state;
    pthread_mutex_unlock(&k->lock);
    return state;
}

mt_keep_transfer *mt_keep_transfer_free(mt_keep *k, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        if (mt_keep_transfer_look(k, &k->transfer[i]) == MT_KEEP_TRANSFER_FREE)
            return &k->transfer[i];
    return NULL;
}

/* Whether one that is done has to wait for others of its sequence: a state for its pages, a page for those before it.
   Those of the remote store are brought by a thread of their own, later than those behind them that a disk has. */
static bool has_to_wait(const mt_keep *k, const mt_keep_transfer *x)
{
    if (x->kind == MT_KEEP_STATE)
        return x->s && x->s->kept.brought;
    for (size_t i = MT_KEEP_STORES; i < MT_KEEP_TRANSFERS && x->kind == MT_KEEP_PAGE && x->s; i++) {
        const mt_keep_transfer *y = &k->transfer[i];
        if (y->s == x->s && y->kind == MT_KEEP_PAGE && y->at < x->at &&
            (y->state == MT_KEEP_TRANSFER_GIVEN || y->state == MT_KEEP_TRANSFER_UNDER_WAY))
            return true;
    }
    return false;
}

/* Looks at all under one lock: otherwise two could end between two looks, and the later be seen before the earlier. */
mt_keep_transfer *mt_keep_transfer_first(mt_keep *k, mt_keep_transfer_state state)
{
    mt_keep_transfer *first = NULL;
    pthread_mutex_lock(&k->lock);
    for (size_t i = MT_KEEP_STORES; i < MT_KEEP_TRANSFERS; i++) {
        mt_keep_transfer *x = &k->transfer[i];
        if (x->state == state && (!first || x->order < first->order) &&
            !(state == MT_KEEP_TRANSFER_DONE && has_to_wait(k, x)))
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
        mt_feature_cache_unpin(e->feature_cache, h->medium);
        mt_feature_cache_release(e->feature_cache, h->medium);
    }
    mt_held_init(h);
}

void mt_keep_transfer_set(mt_keep *k, mt_keep_transfer *x, mt_keep_transfer_state state)
{
    pthread_mutex_lock(&k->lock);
    x->state = state;
    pthread_mutex_unlock(&k->lock);
}

void mt_keep_transfer_end(mt_engine *e, mt_keep_transfer *x)
{
    if (x->sending)
        mt_sending_wait(e->dev, x->sending); /* pages that the device still writes must not become another sequence's */
    mt_held_release(e, &x->held);
    x->s = NULL;
    x->view = NULL;
    mt_keep_transfer_set(e->keep, x, MT_KEEP_TRANSFER_FREE);
}
