/* Permissions to wait or run, which bound the queue (places.h). */
#include "engine/places.h"

#include <assert.h>

#include "base/alloc.h"

#define TIMES 3 /* a client may hold so many times the places that are free */

size_t mt_places_all(size_t most)
{
    return most + (most + TIMES - 1) / TIMES;
}

void mt_places_init(mt_places *p, size_t most)
{
    *p = (mt_places){.all = mt_places_all(most)};
    p->of = mt_alloc_array(p->all, sizeof(*p->of));
    pthread_mutex_init(&p->lock, NULL);
}

void mt_places_free(mt_places *p)
{
    if (!p->of)
        return;
    mt_free(p->of);
    pthread_mutex_destroy(&p->lock);
    *p = (mt_places){0};
}

/* Index of the client in p->of; where it has no places, the index at which it would be added. */
static size_t find(const mt_places *p, uint64_t client)
{
    size_t at = 0;
    while (at < p->count && p->of[at].client != client)
        at++;
    return at;
}

/* How many more places a client may take that has `has` already. Each that it takes is no longer free. */
static size_t allowed(const mt_places *p, const mt_client *client, size_t has)
{
    const size_t times = TIMES * (size_t)client->share, part = times * (p->all - p->taken);
    return part > has ? (part - has) / (times + 1) : 0;
}

static void fail(mt_error *err, size_t taken, size_t has)
{
    mt_fail(err, MT_E_BUSY,
            "%zu requests wait or run already, %zu of them yours, and no more of yours may; try again later", taken,
            has);
}

size_t mt_places_take(mt_places *p, const mt_client *client, size_t least, size_t most, mt_error *err)
{
    assert(least > 0 && least <= most);
    pthread_mutex_lock(&p->lock);
    const size_t at = find(p, client->id), has = at < p->count ? p->of[at].taken : 0, taken = p->taken;
    size_t got = allowed(p, client, has);
    if (has == 0 && got < least && least <= p->all - taken)
        got = least;
    got = got < least ? 0 : got < most ? got : most;
    if (got > 0) {
        p->count += at == p->count;
        p->of[at].client = client->id;
        p->of[at].taken = has + got;
        p->taken += got;
    }
    pthread_mutex_unlock(&p->lock);
    if (got == 0)
        fail(err, taken, has);
    return got;
}

bool mt_places_full(mt_places *p, const mt_client *client, mt_error *err)
{
    pthread_mutex_lock(&p->lock);
    const size_t at = find(p, client->id), has = at < p->count ? p->of[at].taken : 0, taken = p->taken;
    const bool full = allowed(p, client, has) == 0 && (has > 0 || taken == p->all);
    pthread_mutex_unlock(&p->lock);
    if (full)
        fail(err, taken, has);
    return full;
}

void mt_places_give(mt_places *p, const mt_client *client, size_t count)
{
    pthread_mutex_lock(&p->lock);
    const size_t at = find(p, client->id);
    assert(at < p->count && p->of[at].taken >= count);
    p->of[at].taken -= count;
    p->taken -= count;
    if (p->of[at].taken == 0)
        p->of[at] = p->of[--p->count];
    pthread_mutex_unlock(&p->lock);
}
