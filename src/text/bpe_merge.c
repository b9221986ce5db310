/* Merges the symbols of a word with a heap, in O(n log n) whatever the word is.
   The heap has a key for every pair that can be merged: the rank above the index of the left symbol, so that the
   smallest key is the merge with the lowest rank, and of those the leftmost. Keys stay in the heap when their pair
   changes. A key is stale if its rank is not that of its symbol's merge any more; stale keys are dropped when they come
   to the top. A symbol only grows and a pair has only one rank, so a stale key never becomes valid again. */
#include "base/alloc.h"
#include "text/bpe.h"

/* Children of a heap node; rounds between two looks at `stop`, more than any word that is a token has */
enum { BRANCHES = 4, LOOK_EVERY = 1 << 20 };

static void push(mt_tok_bpe_work *w, uint64_t key)
{
    size_t at = w->heap_count++;

    while (at > 0) {
        size_t parent = (at - 1) / BRANCHES;

        if (w->heap[parent] <= key)
            break;
        w->heap[at] = w->heap[parent];
        at = parent;
    }
    w->heap[at] = key;
}

/* Places the key at `at` or below. */
static void sift(mt_tok_bpe_work *w, size_t at, uint64_t key)
{
    for (;;) {
        size_t child = at * BRANCHES + 1, least = child, end = child + BRANCHES;

        if (child >= w->heap_count)
            break;
        end = end < w->heap_count ? end : w->heap_count;
        while (++child < end)
            least = w->heap[child] < w->heap[least] ? child : least;
        if (w->heap[least] >= key)
            break;
        w->heap[at] = w->heap[least];
        at = least;
    }
    w->heap[at] = key;
}

static uint64_t pop(mt_tok_bpe_work *w)
{
    uint64_t top = w->heap[0], last = w->heap[--w->heap_count];

    if (w->heap_count > 0)
        sift(w, 0, last);
    return top;
}

/* Looks up the merge of a symbol with the next one. False: there is none. */
static bool find_merge(const mt_tok_merges *merges, mt_tok_symbol *symbols, uint32_t at)
{
    mt_tok_symbol *s = &symbols[at];

    s->merge.rank = MT_MERGE_NONE;
    if (s->after != MT_MERGE_NONE)
        s->merge = mt_tok_merges_find(merges, s->id, symbols[s->after].id);
    return s->merge.rank != MT_MERGE_NONE;
}

static uint64_t key_of(const mt_tok_symbol *symbols, uint32_t at)
{
    return (uint64_t)symbols[at].merge.rank << 32 | at;
}

static void fill_heap(const mt_tok_merges *merges, mt_tok_bpe_work *w)
{
    if (w->heap_cap < w->count * 3) { /* a merge removes one symbol and adds at most two keys */
        mt_free(w->heap);
        w->heap_cap = w->count * 3;
        w->heap = mt_alloc_array(w->heap_cap, sizeof(*w->heap));
    }
    w->heap_count = 0;
    for (uint32_t i = 0; i < w->count; i++)
        if (find_merge(merges, w->symbols, i))
            w->heap[w->heap_count++] = key_of(w->symbols, i);
    for (size_t i = w->heap_count / BRANCHES + 1; i-- > 0;)
        if (i < w->heap_count)
            sift(w, i, w->heap[i]);
}

/* Whether to continue. Asked rarely enough to cost nothing: a word may have a hundred million symbols. */
static bool goes_on(const mt_tok_bpe_work *w, size_t round)
{
    /* relaxed: the flag is read again and again, and no data depends on it */
    return round % LOOK_EVERY || !w->stop || !atomic_load_explicit(w->stop, memory_order_relaxed);
}

void mt_tok_bpe_merge(const mt_tok_merges *merges, mt_tok_bpe_work *w)
{
    mt_tok_symbol *symbols = w->symbols;

    fill_heap(merges, w);
    for (size_t round = 1; w->heap_count > 0 && goes_on(w, round); round++) {
        uint64_t key = pop(w);
        uint32_t at = (uint32_t)key, gone;
        mt_tok_symbol *s = &symbols[at];

        if (s->merge.rank != (uint32_t)(key >> 32))
            continue;
        gone = s->after;
        s->id = s->merge.id;
        s->after = symbols[gone].after;
        symbols[gone].merge.rank = MT_MERGE_NONE;
        if (s->after != MT_MERGE_NONE)
            symbols[s->after].before = at;
        if (s->before != MT_MERGE_NONE && find_merge(merges, symbols, s->before))
            push(w, key_of(symbols, s->before));
        if (find_merge(merges, symbols, at))
            push(w, key_of(symbols, at));
    }
}
