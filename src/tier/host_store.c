/* The host store (host_store.h). One piece of memory is divided into grains of equal size. A record is a chain of
   grains, so that records of all sizes share the memory without gaps.

   1. Every grain is free or belongs to one record. Grains that were freed are chained; those from `fresh` on were never
      used.
   2. Records are in a hash table by key, and in a list by last use. A new record replaces the least recently used.
   3. Nothing is copied while the lock is held. A record that is being written is not in the table yet, and one that is
      being read is not in the list, so its grains cannot be evicted.
   4. A record of an earlier era than the store's is not found. The thread that read or wrote it while the store was
      cleared evicts it. */
#include "tier/host_store.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"

#define NONE UINT32_MAX
/* A usual record has at most GRAINS_A_RECORD grains, unless these would be larger than GRAIN_MOST bytes. Where there is
   no room for LEAST_RECORDS usual records, there is no host store. */
enum { LEAST_RECORDS = 16, GRAIN_LEAST = 4096, GRAIN_MOST = 256 << 10, GRAINS_A_RECORD = 8 };
enum { MOST_GRAINS = 1 << 20, MOST_RECORDS = 1 << 17 };

/* A record of the host store; its bytes are in a chain of grains. */
typedef struct record {
    uint8_t key[MT_TIER_KEY];
    uint32_t kind, parts;
    uint64_t size[MT_TIER_PARTS];
    uint32_t first;         /* its first grain */
    uint32_t chain;         /* next record in the same hash bucket, or in the list of freed records */
    uint32_t before, after; /* neighbours in the list by last use */
    uint32_t era;           /* that of the store when writing began */
    uint32_t readers;       /* threads that read it now; the record is in the list while this is 0 */
    bool marked;            /* the listener is called when it is evicted */
} record;

struct mt_host_store {
    pthread_mutex_t lock;
    uint8_t *memory;
    size_t grain, grains, free_grains; /* bytes of a grain; number of grains; those that are free */
    uint32_t *next;                    /* [grains]: the next grain of the same record, or of the list of freed grains */
    uint32_t freed, fresh;             /* first freed grain; first grain that was never used */
    record *records;                   /* [most] */
    size_t most, fresh_record;         /* fresh_record: the first that was never used */
    uint32_t unused;                   /* first freed record */
    uint32_t *bucket;                  /* hash table */
    size_t buckets;                    /* a power of two */
    uint32_t oldest, newest;           /* ends of the list by last use */
    uint32_t era;                      /* how often the store was cleared */
    mt_host_store_listener *tell;      /* called when a marked record is evicted; NULL: none */
    void *ctx;
    mt_host_store_stats stats;
};

static uint32_t *bucket_of(mt_host_store *s, const uint8_t key[MT_TIER_KEY])
{
    uint64_t hash; /* keys are digests, so any bytes of one will do */
    memcpy(&hash, key, sizeof(hash));
    return &s->bucket[hash & (s->buckets - 1)];
}

static uint32_t find(mt_host_store *s, const uint8_t key[MT_TIER_KEY])
{
    uint32_t i = *bucket_of(s, key);
    while (i != NONE && (s->records[i].era != s->era || memcmp(s->records[i].key, key, MT_TIER_KEY) != 0))
        i = s->records[i].chain;
    return i;
}

static void leave(mt_host_store *s, record *r)
{
    *(r->before != NONE ? &s->records[r->before].after : &s->oldest) = r->after;
    *(r->after != NONE ? &s->records[r->after].before : &s->newest) = r->before;
}

static void join(mt_host_store *s, uint32_t i)
{
    record *r = &s->records[i];
    r->before = s->newest;
    r->after = NONE;
    *(s->newest != NONE ? &s->records[s->newest].after : &s->oldest) = i;
    s->newest = i;
}

/* Evicts a record that is in the table and in the list. */
static void evict(mt_host_store *s, uint32_t i)
{
    record *r = &s->records[i];
    uint32_t *at = bucket_of(s, r->key);
    while (*at != i)
        at = &s->records[*at].chain;
    *at = r->chain;
    leave(s, r);
    for (uint32_t g = r->first, next; g != NONE; g = next) {
        next = s->next[g];
        s->next[g] = s->freed;
        s->freed = g;
        s->free_grains++;
    }
    if (r->marked)
        s->tell(s->ctx, r->key, r->kind);
    r->chain = s->unused;
    s->unused = i;
    s->stats.records--;
    s->stats.evicted++;
}

/* Copies parts to a chain of grains (writes) or from it. */
static void transfer(mt_host_store *s, uint32_t grain, const mt_tier_part part[], size_t parts, bool writes)
{
    size_t at = 0;
    for (size_t i = 0; i < parts; i++)
        for (size_t done = 0; done < part[i].size;) {
            const size_t left = part[i].size - done, n = left < s->grain - at ? left : s->grain - at;
            uint8_t *here = s->memory + grain * s->grain + at, *there = (uint8_t *)part[i].data + done;
            memcpy(writes ? here : there, writes ? there : here, n);
            done += n;
            at += n;
            if (at == s->grain) {
                grain = s->next[grain];
                at = 0;
            }
        }
}

/* Takes `grains` free grains, chains them, and returns the first. */
static uint32_t take_grains(mt_host_store *s, size_t grains)
{
    uint32_t chain = NONE;
    for (size_t i = 0; i < grains; i++) {
        const uint32_t g = s->freed != NONE ? s->freed : s->fresh++;
        if (g == s->freed)
            s->freed = s->next[g];
        s->next[g] = chain;
        chain = g;
    }
    s->free_grains -= grains;
    return chain;
}

static uint32_t take_record(mt_host_store *s)
{
    const uint32_t i = s->unused != NONE ? s->unused : (uint32_t)s->fresh_record++;
    if (i == s->unused)
        s->unused = s->records[i].chain;
    return i;
}

/* Evicts until there is a free record and `grains` free grains; false where threads are reading or writing too many. */
static bool make_room(mt_host_store *s, size_t grains)
{
    while ((s->free_grains < grains || (s->unused == NONE && s->fresh_record == s->most)) && s->oldest != NONE)
        evict(s, s->oldest);
    return s->free_grains >= grains && (s->unused != NONE || s->fresh_record < s->most);
}

/* Adds a written record to the table, unless another thread has added one with the same key, or the store was cleared;
   call with the lock held. */
static void settle(mt_host_store *s, uint32_t i)
{
    record *r = &s->records[i];
    const bool known = find(s, r->key) != NONE;
    r->chain = *bucket_of(s, r->key);
    *bucket_of(s, r->key) = i;
    join(s, i);
    s->stats.records++;
    s->stats.written++;
    if (known || r->era != s->era)
        evict(s, i);
}

void mt_host_store_write(mt_host_store *s, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                         size_t parts)
{
    size_t size = 0;
    for (size_t i = 0; i < parts; i++)
        size += part[i].size;
    const size_t grains = (size + s->grain - 1) / s->grain;
    pthread_mutex_lock(&s->lock);
    const bool takes = grains > 0 && grains <= s->grains && find(s, key) == NONE && make_room(s, grains);
    const uint32_t i = takes ? take_record(s) : NONE;
    if (takes) {
        record *r = &s->records[i];
        *r = (record){.kind = kind, .parts = (uint32_t)parts, .first = take_grains(s, grains), .era = s->era};
        memcpy(r->key, key, MT_TIER_KEY);
        for (size_t p = 0; p < parts; p++)
            r->size[p] = part[p].size;
        pthread_mutex_unlock(&s->lock);
        transfer(s, r->first, part, parts, true);
        pthread_mutex_lock(&s->lock);
        settle(s, i);
    }
    pthread_mutex_unlock(&s->lock);
}

bool mt_host_store_has(mt_host_store *s, const uint8_t key[MT_TIER_KEY])
{
    pthread_mutex_lock(&s->lock);
    const bool there = find(s, key) != NONE;
    pthread_mutex_unlock(&s->lock);
    return there;
}

void mt_host_store_clear(mt_host_store *s)
{
    pthread_mutex_lock(&s->lock);
    s->era++;
    while (s->oldest != NONE)
        evict(s, s->oldest);
    pthread_mutex_unlock(&s->lock);
}

void mt_host_store_watch(mt_host_store *s, mt_host_store_listener *tell, void *ctx)
{
    s->tell = tell;
    s->ctx = ctx;
}

bool mt_host_store_is_new(mt_host_store *s, const uint8_t key[MT_TIER_KEY])
{
    pthread_mutex_lock(&s->lock);
    const uint32_t i = find(s, key);
    const bool is_new = i != NONE && !s->records[i].marked;
    pthread_mutex_unlock(&s->lock);
    return is_new;
}

bool mt_host_store_mark(mt_host_store *s, const uint8_t key[MT_TIER_KEY])
{
    pthread_mutex_lock(&s->lock);
    const uint32_t i = find(s, key);
    if (i != NONE)
        s->records[i].marked = true;
    pthread_mutex_unlock(&s->lock);
    return i != NONE;
}

bool mt_host_store_read(mt_host_store *s, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                        size_t parts)
{
    pthread_mutex_lock(&s->lock);
    const uint32_t i = find(s, key);
    record *r = i == NONE ? NULL : &s->records[i];
    bool ok = r && r->kind == kind && r->parts == parts;
    for (size_t p = 0; ok && p < parts; p++)
        ok = r->size[p] == part[p].size;
    if (ok) {
        if (r->readers++ == 0)
            leave(s, r);
        pthread_mutex_unlock(&s->lock);
        transfer(s, r->first, part, parts, false);
        pthread_mutex_lock(&s->lock);
        if (--r->readers == 0) {
            join(s, i);
            if (r->era != s->era)
                evict(s, i);
        }
        s->stats.read++;
    }
    pthread_mutex_unlock(&s->lock);
    return ok;
}

static void fill(mt_host_store *s)
{
    s->next = mt_alloc_array(s->grains, sizeof(*s->next));
    s->records = mt_alloc_array(s->most, sizeof(*s->records));
    for (s->buckets = 64; s->buckets < s->most;)
        s->buckets *= 2;
    s->bucket = mt_alloc_array(s->buckets, sizeof(*s->bucket));
    memset(s->bucket, 0xff, s->buckets * sizeof(*s->bucket));
    s->free_grains = s->grains;
    s->oldest = s->newest = s->freed = s->unused = NONE;
}

mt_host_store *mt_host_store_new(uint64_t bytes, size_t usual)
{
    size_t grain = GRAIN_LEAST;
    while ((grain < GRAIN_MOST && grain * GRAINS_A_RECORD < usual) || bytes / grain > MOST_GRAINS)
        grain *= 2;
    const uint64_t records = usual ? 2 * (bytes / usual) : 0, most = records < MOST_RECORDS ? records : MOST_RECORDS;
    const uint64_t index = most * (sizeof(record) + 2 * sizeof(uint32_t));
    const uint64_t grains = bytes > index ? (bytes - index) / (grain + sizeof(uint32_t)) : 0;
    if (usual == 0 || grains * grain < LEAST_RECORDS * (uint64_t)usual)
        return NULL;
    void *memory =
        mmap(NULL, grains * grain, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
#if defined(MADV_HUGEPAGE)
    madvise(memory, grains * grain, MADV_HUGEPAGE); /* with small pages, the first access takes longer than the copy */
#endif
    mt_host_store *s = mt_alloc(sizeof(*s));
    s->memory = memory;
    s->grain = grain;
    s->grains = (size_t)grains;
    s->most = (size_t)most;
    s->stats.limit = grains * grain;
    pthread_mutex_init(&s->lock, NULL);
    fill(s);
    return s;
}

void mt_host_store_free(mt_host_store *s)
{
    if (!s)
        return;
    munmap(s->memory, s->grains * s->grain);
    mt_free(s->next);
    mt_free(s->records);
    mt_free(s->bucket);
    pthread_mutex_destroy(&s->lock);
    mt_free(s);
}

mt_host_store_stats mt_host_store_look(mt_host_store *s)
{
    pthread_mutex_lock(&s->lock);
    s->stats.bytes = (s->grains - s->free_grains) * s->grain;
    const mt_host_store_stats stats = s->stats;
    pthread_mutex_unlock(&s->lock);
    return stats;
}
