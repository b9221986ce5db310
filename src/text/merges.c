/* See merges.h. */
#include "text/merges.h"

#include "base/alloc.h"

enum { FIRST_CAP = 1024 };

/* The slot of a pair, or the empty slot where it belongs. An empty slot holds a pair of all ones, which no two ids
   are. */
static mt_tok_merge_slot *find_slot(const mt_tok_merges *merges, uint64_t pair)
{
    size_t at = mt_tok_merge_hash(merges, pair);

    while (merges->slots[at].pair != pair && merges->slots[at].merge.rank != MT_MERGE_NONE)
        at = (at + 1) & merges->mask;
    return &merges->slots[at];
}

static void grow(mt_tok_merges *merges)
{
    mt_tok_merge_slot *old = merges->slots;
    size_t old_slots = 2 * merges->cap;

    if (!old)
        merges->key = mt_hash_key_draw();
    merges->cap = merges->cap ? merges->cap * 2 : FIRST_CAP;
    merges->slots = mt_alloc_array(2 * merges->cap, sizeof(*merges->slots));
    merges->mask = 2 * merges->cap - 1;
    for (size_t i = 0; i < 2 * merges->cap; i++)
        merges->slots[i] = (mt_tok_merge_slot){UINT64_MAX, {MT_MERGE_NONE, 0}};
    for (size_t i = 0; i < old_slots; i++)
        if (old[i].merge.rank != MT_MERGE_NONE)
            *find_slot(merges, old[i].pair) = old[i];
    mt_free(old);
}

void mt_tok_merges_add(mt_tok_merges *merges, uint32_t left, uint32_t right, mt_tok_merge merge)
{
    uint64_t pair = (uint64_t)left << 32 | right;
    mt_tok_merge_slot *slot;

    if (merges->count == merges->cap)
        grow(merges);
    slot = find_slot(merges, pair);
    if (slot->merge.rank == MT_MERGE_NONE)
        merges->count++;
    *slot = (mt_tok_merge_slot){pair, merge};
}

void mt_tok_merges_free(mt_tok_merges *merges)
{
    mt_free(merges->slots);
    *merges = (mt_tok_merges){0};
}
