/* Decides which recurrent states are kept. Used by the engine's thread.

   A state is large and serves only at its exact position, so few can be kept. An anchor's worth is the positions it
   saves a request that continues there, times how often that has happened (mt_anchor.gain and uses). Its rank is its
   worth plus `age` at its last use. `age` is the rank of the last anchor evicted and so only grows: anchors that are no
   longer used sink in comparison. The lowest rank is evicted first; a slot that a running sequence refers to stays.

   1. The slot of an anchor is never written; a sequence writes only slots to which it has the only reference.
   2. The tree has one reference to each anchor's slot; sequences have references of their own.
   3. Of the free slots, as many as spare ones are not lent are left free; so anchors, however many, never keep a
      sequence from borrowing.
   4. `idle` is a heap, lowest rank first, of exactly those anchors that no sequence refers to. Of small states there
      may be hundreds of thousands.

   Rejected: evicting by last use alone. One long prompt with many turns would evict all others. */
#include "cache/anchors.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"

void mt_anchors_init(mt_anchors *a, size_t slots, size_t spare)
{
    *a = (mt_anchors){.spare = spare};
    mt_pages_init(&a->slots, slots + spare);
    a->of = mt_alloc_array(slots + spare, sizeof(*a->of));
    a->idle = mt_alloc_array(slots + spare, sizeof(*a->idle));
}

void mt_anchors_free(mt_anchors *a)
{
    mt_pages_free(&a->slots);
    mt_free(a->of);
    mt_free(a->idle);
    memset(a, 0, sizeof(*a));
}

/* ---- the heap ---- */

static bool goes_before(const mt_anchors *a, uint32_t x, uint32_t y)
{
    return a->of[x].rank < a->of[y].rank || (a->of[x].rank <= a->of[y].rank && x < y);
}

static void place(mt_anchors *a, size_t at, uint32_t anchor)
{
    a->idle[at] = anchor;
    a->of[anchor].at = (uint32_t)at;
}

/* Moves an anchor from place `at` of the heap towards its top, then towards its bottom, to where its rank belongs. */
static void settle(mt_anchors *a, size_t at)
{
    const uint32_t anchor = a->idle[at];
    for (; at > 0 && goes_before(a, anchor, a->idle[(at - 1) / 2]); at = (at - 1) / 2)
        place(a, at, a->idle[(at - 1) / 2]);
    for (size_t below; (below = 2 * at + 1) < a->idle_count; at = below) {
        if (below + 1 < a->idle_count && goes_before(a, a->idle[below + 1], a->idle[below]))
            below++;
        if (!goes_before(a, a->idle[below], anchor))
            break;
        place(a, at, a->idle[below]);
    }
    place(a, at, anchor);
}

static bool is_idle(const mt_anchors *a, uint32_t slot)
{
    return a->of[slot].list && a->slots.refs[slot] == 1;
}

static void heap_add(mt_anchors *a, uint32_t anchor)
{
    a->idle[a->idle_count] = anchor;
    settle(a, a->idle_count++);
}

static void heap_remove(mt_anchors *a, uint32_t anchor)
{
    const size_t at = a->of[anchor].at;
    const uint32_t last = a->idle[--a->idle_count];
    if (last == anchor)
        return;
    a->idle[at] = last;
    settle(a, at);
}

/* ---- lists ---- */

static uint32_t at_offset(const mt_anchors *a, const mt_anchor_list *list, size_t offset)
{
    uint32_t i = *list;
    while (i != MT_NO_PAGE && a->of[i].offset != offset)
        i = a->of[i].next;
    return i;
}

static void link_in(mt_anchors *a, mt_anchor_list *list, uint32_t anchor)
{
    a->of[anchor].list = list;
    a->of[anchor].next = *list;
    *list = anchor;
}

static void unlink_anchor(mt_anchors *a, uint32_t anchor)
{
    mt_anchor_list *at = a->of[anchor].list;
    while (*at != anchor)
        at = &a->of[*at].next;
    *at = a->of[anchor].next;
    a->of[anchor].list = NULL;
}

static void forget(mt_anchors *a, uint32_t anchor)
{
    if (is_idle(a, anchor))
        heap_remove(a, anchor);
    unlink_anchor(a, anchor);
    a->count--;
    mt_pages_unref(&a->slots, anchor);
}

/* ---- slots ---- */

/* Evicts the anchor of the lowest rank, unless its rank is above `below`. False where none goes. */
static bool evict_lowest(mt_anchors *a, double below)
{
    if (a->idle_count == 0 || a->of[a->idle[0]].rank > below)
        return false;
    const uint32_t lowest = a->idle[0];
    if (a->of[lowest].rank > a->age)
        a->age = a->of[lowest].rank;
    a->evictions++;
    forget(a, lowest);
    return true;
}

/* Whether a slot is free beside the spare ones. */
static bool has_free(const mt_anchors *a)
{
    return a->slots.free + a->lent > a->spare;
}

static uint32_t take_slot(mt_anchors *a, double below)
{
    while (!has_free(a) && evict_lowest(a, below))
        ;
    return has_free(a) ? mt_pages_take(&a->slots) : MT_NO_PAGE;
}

uint32_t mt_anchors_take(mt_anchors *a)
{
    return take_slot(a, INFINITY);
}

uint32_t mt_anchors_take_for(mt_anchors *a, size_t gain)
{
    return take_slot(a, a->age + (double)gain);
}

uint32_t mt_anchors_borrow(mt_anchors *a)
{
    const uint32_t slot = a->lent < a->spare ? mt_pages_take(&a->slots) : MT_NO_PAGE;
    a->lent += slot != MT_NO_PAGE;
    return slot;
}

void mt_anchors_repay(mt_anchors *a)
{
    assert(a->lent > 0);
    a->lent--;
}

void mt_anchors_ref(mt_anchors *a, uint32_t slot)
{
    if (is_idle(a, slot))
        heap_remove(a, slot);
    mt_pages_ref(&a->slots, slot);
}

void mt_anchors_release(mt_anchors *a, uint32_t slot)
{
    mt_pages_unref(&a->slots, slot);
    if (is_idle(a, slot))
        heap_add(a, slot);
}

size_t mt_anchors_held(const mt_anchors *a)
{
    return a->slots.total - a->slots.free - a->idle_count;
}

bool mt_anchors_own(const mt_anchors *a, uint32_t slot)
{
    return a->slots.refs[slot] == 1 && !a->of[slot].list;
}

static void raise(mt_anchors *a, mt_anchor *anchor)
{
    anchor->rank = a->age + (double)anchor->gain * (1 + anchor->uses);
}

void mt_anchors_add(mt_anchors *a, mt_anchor_list *list, size_t offset, size_t gain, uint32_t slot)
{
    assert(!a->of[slot].list);
    if (at_offset(a, list, offset) != MT_NO_PAGE)
        return;
    a->of[slot] = (mt_anchor){.offset = (uint32_t)offset, .gain = (uint32_t)gain};
    link_in(a, list, slot);
    a->count++;
    mt_pages_ref(&a->slots, slot);
    raise(a, &a->of[slot]);
}

uint32_t mt_anchors_find(const mt_anchors *a, const mt_anchor_list *list, size_t most)
{
    uint32_t best = MT_NO_PAGE;
    for (uint32_t s = *list; s != MT_NO_PAGE; s = a->of[s].next)
        if (a->of[s].offset <= most && (best == MT_NO_PAGE || a->of[s].offset > a->of[best].offset))
            best = s;
    return best;
}

void mt_anchors_use(mt_anchors *a, uint32_t slot)
{
    assert(a->of[slot].list);
    a->of[slot].uses++;
    raise(a, &a->of[slot]);
    if (is_idle(a, slot))
        settle(a, a->of[slot].at);
}

void mt_anchors_drop(mt_anchors *a, mt_anchor_list *list)
{
    while (*list != MT_NO_PAGE)
        forget(a, *list);
}

void mt_anchors_move(mt_anchors *a, mt_anchor_list *from, mt_anchor_list *to)
{
    while (*from != MT_NO_PAGE) {
        const uint32_t anchor = *from;
        if (at_offset(a, to, a->of[anchor].offset) != MT_NO_PAGE) {
            forget(a, anchor);
            continue;
        }
        unlink_anchor(a, anchor);
        link_in(a, to, anchor);
    }
}
