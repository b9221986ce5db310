/* Which recurrent states are kept. Owned by the engine's thread.

   A state is large and cannot be cut, so there are few: each is worth the positions it saves whoever continues there,
   times how often that has happened. Its rank is that worth above the age at its last use; age is the rank of what had
   to go last, so what is not used any more sinks. The lowest goes first. What a running sequence holds stays.

   1. A slot that is in the tree is never written; a sequence writes only slots that it alone refers to.
   2. The tree has one reference to each slot of its anchors, sequences have others.

   Rejected: the order of last use alone. One long prompt with many turns would sweep away all others. */
#include "cache/anchors.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"

void mt_anchors_init(mt_anchors *a, size_t slots)
{
    *a = (mt_anchors){0};
    mt_pages_init(&a->slots, slots);
    a->of = mt_alloc_array(slots, sizeof(*a->of));
}

void mt_anchors_free(mt_anchors *a)
{
    mt_pages_free(&a->slots);
    mt_free(a->of);
    memset(a, 0, sizeof(*a));
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

static void take_out(mt_anchors *a, uint32_t anchor)
{
    mt_anchor_list *at = a->of[anchor].list;
    while (*at != anchor)
        at = &a->of[*at].next;
    *at = a->of[anchor].next;
    a->of[anchor].list = NULL;
}

static void forget(mt_anchors *a, uint32_t anchor)
{
    take_out(a, anchor);
    a->count--;
    mt_pages_unref(&a->slots, anchor);
}

/* ---- slots ---- */

static bool may_go(const mt_anchors *a, size_t slot)
{
    return a->of[slot].list && a->slots.refs[slot] == 1;
}

static void evict_lowest(mt_anchors *a, double below)
{
    size_t lowest = a->slots.total;
    for (size_t i = 0; i < a->slots.total; i++)
        if (may_go(a, i) && (lowest == a->slots.total || a->of[i].rank < a->of[lowest].rank))
            lowest = i;
    if (lowest == a->slots.total || a->of[lowest].rank > below)
        return;
    if (a->of[lowest].rank > a->age)
        a->age = a->of[lowest].rank;
    a->evictions++;
    forget(a, (uint32_t)lowest);
}

static uint32_t take(mt_anchors *a, double below)
{
    if (a->slots.free == 0)
        evict_lowest(a, below);
    return mt_pages_take(&a->slots);
}

uint32_t mt_anchors_take(mt_anchors *a)
{
    return take(a, INFINITY);
}

uint32_t mt_anchors_take_for(mt_anchors *a, size_t gain)
{
    return take(a, a->age + (double)gain);
}

void mt_anchors_ref(mt_anchors *a, uint32_t slot)
{
    mt_pages_ref(&a->slots, slot);
}

void mt_anchors_release(mt_anchors *a, uint32_t slot)
{
    mt_pages_unref(&a->slots, slot);
}

size_t mt_anchors_available(const mt_anchors *a)
{
    size_t n = a->slots.free;
    for (size_t i = 0; i < a->slots.total; i++)
        n += may_go(a, i);
    return n;
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
        take_out(a, anchor);
        link_in(a, to, anchor);
    }
}
