/* Which pictures have features, and in which rows (feature_cache.h). Used by the engine's thread.

   1. A medium is found by its whole digest and salt; the hash bucket only narrows the search.
   2. Features that are not pinned are in a list, least recently used first, and are evicted when rows are needed.
   3. A medium exists as long as a sequence holds it or it has features. */
#include "cache/feature_cache.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

struct mt_medium {
    uint8_t digest[32], salt[32];
    uint32_t held, pinned; /* how often it is held, and its features are pinned */
    uint32_t *features;    /* numbers of its rows, in order; NULL: it has no features */
    size_t rows;
    bool complete;             /* the rows are filled */
    mt_medium *chain;          /* next in its hash bucket */
    mt_medium *before, *after; /* in the list of features that are not pinned */
};

struct mt_feature_cache {
    /* rows in all, and in use */
    size_t total, rows;
    uint32_t *free;             /* [total - rows]: the unused rows */
    mt_medium *oldest, *newest; /* the list of features that are not pinned, by last use */
    mt_medium **bucket;
    size_t buckets; /* a power of two */
    size_t known;   /* media there are */
    uint64_t evictions;
};

mt_feature_cache *mt_feature_cache_new(size_t rows)
{
    mt_feature_cache *g = mt_alloc(sizeof(*g));
    g->total = rows;
    g->free = mt_alloc_array(rows, sizeof(*g->free));
    for (size_t i = 0; i < rows; i++)
        g->free[i] = (uint32_t)(rows - 1 - i); /* the lowest number is handed out first */
    for (g->buckets = 64; g->buckets < rows / 16;)
        g->buckets *= 2;
    g->bucket = mt_alloc_array(g->buckets, sizeof(mt_medium *));
    return g;
}

static void add(mt_feature_cache *g, mt_medium *e)
{
    e->before = g->newest;
    e->after = NULL;
    *(g->newest ? &g->newest->after : &g->oldest) = e;
    g->newest = e;
}

static void unlink_medium(mt_feature_cache *g, mt_medium *e)
{
    *(e->before ? &e->before->after : &g->oldest) = e->after;
    *(e->after ? &e->after->before : &g->newest) = e->before;
}

/* Digests are as good as random, so their first bytes are the hash; a salt is a digest, or zeros. */
static mt_medium **bucket_of(const mt_feature_cache *g, const uint8_t digest[32], const uint8_t salt[32])
{
    uint64_t a, b;
    memcpy(&a, digest, sizeof(a));
    memcpy(&b, salt, sizeof(b));
    return &g->bucket[(a ^ b) & (g->buckets - 1)];
}

static void forget_unused(mt_feature_cache *g, mt_medium *e)
{
    if (e->held > 0 || e->features)
        return;
    mt_medium **at = bucket_of(g, e->digest, e->salt);
    while (*at != e)
        at = &(*at)->chain;
    *at = e->chain;
    g->known--;
    mt_free(e);
}

static void drop_features(mt_feature_cache *g, mt_medium *e)
{
    unlink_medium(g, e);
    while (e->rows > 0)
        g->free[g->total - g->rows--] = e->features[--e->rows];
    mt_free(e->features);
    e->features = NULL;
    e->complete = false;
    forget_unused(g, e);
}

static void evict(mt_feature_cache *g)
{
    drop_features(g, g->oldest);
    g->evictions++;
}

void mt_feature_cache_clear(mt_feature_cache *g)
{
    while (g->oldest)
        evict(g);
}

void mt_feature_cache_free(mt_feature_cache *g)
{
    if (!g)
        return;
    mt_feature_cache_clear(g);
    assert(g->known == 0);
    mt_free(g->bucket);
    mt_free(g->free);
    mt_free(g);
}

static mt_medium *new_medium(mt_feature_cache *g, const uint8_t digest[32], const uint8_t salt[32])
{
    mt_medium *e = mt_alloc(sizeof(*e)), **at = bucket_of(g, digest, salt);
    memcpy(e->digest, digest, sizeof(e->digest));
    memcpy(e->salt, salt, sizeof(e->salt));
    e->chain = *at;
    *at = e;
    g->known++;
    return e;
}

mt_medium *mt_feature_cache_hold(mt_feature_cache *g, const uint8_t digest[32], const uint8_t salt[32])
{
    mt_medium *e = *bucket_of(g, digest, salt);
    while (e && (memcmp(e->digest, digest, sizeof(e->digest)) != 0 || memcmp(e->salt, salt, sizeof(e->salt)) != 0))
        e = e->chain;
    if (!e)
        e = new_medium(g, digest, salt);
    e->held++;
    return e;
}

void mt_medium_hold(mt_medium *e)
{
    assert(e->held > 0);
    e->held++;
}

void mt_feature_cache_release(mt_feature_cache *g, mt_medium *e)
{
    assert(e->held > 0);
    e->held--;
    assert(e->held > 0 || e->pinned == 0);
    forget_unused(g, e);
}

const uint32_t *mt_feature_cache_features(mt_feature_cache *g, mt_medium *e)
{
    if (!e->complete)
        return NULL;
    if (e->pinned == 0) {
        unlink_medium(g, e);
        add(g, e);
    }
    return e->features;
}

const uint32_t *mt_feature_cache_fill(mt_feature_cache *g, mt_medium *e, size_t rows)
{
    assert(e->held > 0 && !e->features && rows > 0);
    while (g->total - g->rows < rows && g->oldest)
        evict(g);
    if (g->total - g->rows < rows)
        return NULL;
    e->features = mt_alloc_array(rows, sizeof(*e->features));
    while (e->rows < rows)
        e->features[e->rows++] = g->free[g->total - ++g->rows];
    e->pinned = 1;
    return e->features;
}

bool mt_medium_filling(const mt_medium *e)
{
    return e->features && !e->complete;
}

void mt_feature_cache_filled(mt_feature_cache *g, mt_medium *e, bool sound)
{
    assert(mt_medium_filling(e) && e->pinned == 1);
    e->complete = true;
    mt_feature_cache_unpin(g, e);
    if (!sound)
        drop_features(g, e);
}

void mt_feature_cache_pin(mt_feature_cache *g, mt_medium *e)
{
    assert(e->held > 0 && e->complete);
    if (e->pinned++ == 0)
        unlink_medium(g, e);
}

void mt_feature_cache_unpin(mt_feature_cache *g, mt_medium *e)
{
    assert(e->pinned > 0);
    if (--e->pinned == 0)
        add(g, e);
}

mt_feature_cache_stats mt_feature_cache_look(const mt_feature_cache *g)
{
    return (mt_feature_cache_stats){.known = g->known, .rows = g->rows, .total = g->total, .evictions = g->evictions};
}
