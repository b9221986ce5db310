/* Merging with a heap: n symbols take n log n, whatever they are.

   The heap holds a key for every pair that can be merged, its rank above the index of its left symbol, so that the
   smallest is the earliest merge and the leftmost of those. Keys are not taken out when their pair changes: a key is
   stale when its rank is no longer that of the symbol's merge, and is dropped when it comes to the top. A pair has one
   rank and a symbol only grows, so no stale key can come true again. */
#include "base/alloc.h"
#include "text/bpe.h"

enum { BRANCHES = 4, LOOK_EVERY = 1 << 20 }; /* more rounds than any word has that is a token */

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

/* Puts key at `at` or below it. */
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

/* Looks up the merge of a symbol with its next; returns whether there is one. */
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
    if (w->heap_cap < w->count * 3) { /* a merge takes away one symbol and adds at most two keys */
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

/* Looked at now and then: a word may have a hundred million symbols. */
static bool goes_on(const mt_tok_bpe_work *w, size_t round)
{
    /* relaxed: it is looked at again and again, and no data hangs on it */
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
