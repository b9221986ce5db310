/* The merges of a BPE model: which two neighbours become one token, and how early. */
#ifndef MT_TEXT_MERGES_H
#define MT_TEXT_MERGES_H

#include <stddef.h>
#include <stdint.h>

#define MT_MERGE_NONE UINT32_MAX

typedef struct mt_tok_merge {
    uint32_t rank; /* lower is earlier; MT_MERGE_NONE: the two stay apart */
    uint32_t id;   /* what they become */
} mt_tok_merge;

typedef struct mt_tok_merge_slot {
    uint64_t pair;
    mt_tok_merge merge; /* rank MT_MERGE_NONE: the slot is empty */
} mt_tok_merge_slot;

typedef struct mt_tok_merges {
    mt_tok_merge_slot *slots; /* at most half full; NULL when there are no merges */
    size_t count, cap, mask;
} mt_tok_merges;

void mt_tok_merges_add(mt_tok_merges *merges, uint32_t left, uint32_t right, mt_tok_merge merge); /* or replaces */
void mt_tok_merges_free(mt_tok_merges *merges);

static inline size_t mt_tok_merge_hash(const mt_tok_merges *merges, uint64_t pair)
{
    return (size_t)((pair * 0x9E3779B97F4A7C15u) >> 32) & merges->mask;
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
