/* The cache of token masks (masks.h). */
#include "constraint/masks.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/clock.h"

/* A cached mask. */
typedef struct slot {
    mt_mask_key key;       /* constraint 0: the slot is free */
    uint32_t newer, older; /* ring in the order of use; it begins at slot 0, which holds no mask */
    uint32_t same;         /* next slot with the same hash, or 0 */
    uint64_t round;        /* when it was last asked for */
} slot;

struct mt_masks {
    size_t words, count; /* count: slots, of which the first is only the ring's head */
    slot *slots;
    uint32_t *heads; /* [count]: first slot of each hash, or 0 */
    uint32_t *bits;  /* [count][words] */
    uint64_t round;
    mt_masks_stats stats;
};

static void link_newest(mt_masks *m, uint32_t i)
{
    slot *s = m->slots;

    s[i].older = s[0].older;
    s[i].newer = 0;
    s[s[0].older].newer = i;
    s[0].older = i;
}

static void unlink_slot(mt_masks *m, uint32_t i)
{
    slot *s = m->slots;

    s[s[i].older].newer = s[i].newer;
    s[s[i].newer].older = s[i].older;
}

mt_masks *mt_masks_new(size_t words, size_t least, size_t bytes)
{
    mt_masks *m = mt_alloc(sizeof(*m));
    const size_t fit = bytes / (words * sizeof(*m->bits) + 1);

    m->words = words;
    m->count = 1 + (fit > least ? fit : least);
    m->slots = mt_alloc_array(m->count, sizeof(*m->slots));
    m->heads = mt_alloc_array(m->count, sizeof(*m->heads));
    m->bits = mt_alloc_array(m->count * words, sizeof(*m->bits));
    for (uint32_t i = 1; i < m->count; i++)
        link_newest(m, i);
    m->round = 1;
    return m;
}

void mt_masks_free(mt_masks *m)
{
    if (!m)
        return;
    mt_free(m->slots);
    mt_free(m->heads);
    mt_free(m->bits);
    mt_free(m);
}

static uint32_t *head_of(const mt_masks *m, const mt_mask_key *key)
{
    const uint64_t hash = (key->constraint * UINT64_C(0x9e3779b97f4a7c15) ^ key->epoch) * 31 + key->state;

    return &m->heads[(hash * UINT64_C(0x9e3779b97f4a7c15) >> 32) % m->count];
}

static bool same_key(const mt_mask_key *a, const mt_mask_key *b)
{
    return a->constraint == b->constraint && a->epoch == b->epoch && a->state == b->state;
}

static uint32_t find(const mt_masks *m, const mt_mask_key *key)
{
    for (uint32_t i = *head_of(m, key); i; i = m->slots[i].same)
        if (same_key(&m->slots[i].key, key))
            return i;
    return 0;
}

static void forget(mt_masks *m, uint32_t i)
{
    uint32_t *at;

    if (m->slots[i].key.constraint == 0)
        return;
    for (at = head_of(m, &m->slots[i].key); *at != i; at = &m->slots[*at].same)
        ;
    *at = m->slots[i].same;
    m->slots[i].key.constraint = 0;
}

/* Computes the run's mask into the least recently used slot and returns it; 0 where the run has failed. */
static uint32_t compute(mt_masks *m, mt_run *run)
{
    const uint32_t i = m->slots[0].newer;
    const uint64_t begin = mt_clock_ns();
    bool ok;

    assert(m->slots[i].round != m->round);
    forget(m, i);
    ok = mt_run_mask(run, m->bits + i * m->words);
    m->stats.computed++;
    m->stats.computing_ns += mt_clock_ns() - begin;
    if (!ok)
        return 0;
    m->slots[i].key = mt_run_mask_key(run); /* set only now, as computing may collect states and so change the key */
    m->slots[i].same = *head_of(m, &m->slots[i].key);
    *head_of(m, &m->slots[i].key) = i;
    return i;
}

const uint32_t *mt_masks_get(mt_masks *m, mt_run *run)
{
    const mt_mask_key key = mt_run_mask_key(run);
    uint32_t i = find(m, &key);

    m->stats.asked++;
    if (i == 0)
        i = compute(m, run);
    if (i == 0)
        return NULL;
    unlink_slot(m, i);
    link_newest(m, i);
    m->slots[i].round = m->round;
    return m->bits + i * m->words;
}

void mt_masks_round(mt_masks *m)
{
    m->round++;
}

bool mt_masks_room(const mt_masks *m)
{
    return m->slots[m->slots[0].newer].round != m->round;
}

const mt_masks_stats *mt_masks_stats_of(const mt_masks *m)
{
    return &m->stats;
}
