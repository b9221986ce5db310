/* The merges of a BPE model: a hash table from two token ids to the token that they become and the rank of that merge.
   Lookup is inline because it is the inner loop of bpe_merge.c. */
#ifndef MT_TEXT_MERGES_H
#define MT_TEXT_MERGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash_key.h"

#define MT_MERGE_NONE UINT32_MAX

typedef struct mt_tok_merge {
    uint32_t rank; /* a lower rank is merged first; MT_MERGE_NONE: the two do not merge */
    uint32_t id;   /* the token that the two become */
} mt_tok_merge;

/* An entry of the hash table. */
typedef struct mt_tok_merge_slot {
    uint64_t pair;      /* left << 32 | right */
    mt_tok_merge merge; /* rank MT_MERGE_NONE: the slot is empty */
} mt_tok_merge_slot;

/* All zero bytes is an empty table. */
typedef struct mt_tok_merges {
    mt_tok_merge_slot *slots; /* at most half of them are used; NULL: no merges */
    size_t count, cap;        /* merges; how many there may be before the table grows */
    size_t mask;              /* number of slots, which is 2 * cap and a power of two, minus 1 */
    mt_hash_key key;          /* as files choose the pairs */
} mt_tok_merges;

/* Adds a merge, whose rank is not MT_MERGE_NONE, or replaces the one of the same pair. */
void mt_tok_merges_add(mt_tok_merges *merges, uint32_t left, uint32_t right, mt_tok_merge merge);
void mt_tok_merges_free(mt_tok_merges *merges);

static inline size_t mt_tok_merge_hash(const mt_tok_merges *merges, uint64_t pair)
{
    return (size_t)(mt_hash_number(merges->key, pair) >> 32) & merges->mask;
}

static inline mt_tok_merge mt_tok_merges_find(const mt_tok_merges *merges, uint32_t left, uint32_t right)
{
    uint64_t pair = (uint64_t)left << 32 | right;

    if (!merges->slots)
        return (mt_tok_merge){MT_MERGE_NONE, 0};
    for (size_t at = mt_tok_merge_hash(merges, pair);; at = (at + 1) & merges->mask) {
        const mt_tok_merge_slot *slot = &merges->slots[at];

        if (slot->pair == pair || slot->merge.rank == MT_MERGE_NONE)
            return slot->merge;
    }
}

#endif
