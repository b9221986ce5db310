/* Lookups in the prefix tree: how much of a text it has. */
#include "cache/tree_inside.h"

const char *mt_miss_name(mt_miss miss)
{
    static const char *const names[MT_MISS_COUNT] = {"none",  "first_sight", "evicted", "salt",
                                                     "media", "window",      "state"};
    return names[miss];
}

mt_node *mt_tree_find_whole(mt_tree *t, const mt_node *parent, const mt_text *text, size_t page, bool *salted)
{
    const mt_page_text p = mt_text_page(text, page);
    for (mt_node *n = *mt_tree_bucket(t, text->hash[page]); n; n = n->chain) {
        t->probes++;
        if (n->hash != text->hash[page] || !n->parent || mt_node_common(n, &p, MT_PAGE_TOKENS) < MT_PAGE_TOKENS)
            continue;
        if (n->parent == parent)
            return n;
        if (mt_node_is_here(n))
            *salted = true;
    }
    return NULL;
}

static bool has_gap(const mt_tree *t, const mt_node *n)
{
    for (size_t g = 0; g < t->groups.count; g++)
        if (!mt_node_has_page(n, g))
            return true;
    return false;
}

mt_node *mt_tree_child(mt_tree *t, mt_node *parent, const mt_text *text, size_t page)
{
    bool salted;
    mt_node *n = mt_tree_find_whole(t, parent, text, page, &salted);
    return n && !has_gap(t, n) ? n : NULL;
}

/* The child that has the most positions in common with p. *media: set where a child has the same token with another
   picture at the first difference. */
static mt_node *find_longest(const mt_node *parent, const mt_page_text *p, size_t count, size_t *longest, bool *media)
{
    mt_node *best = NULL;
    size_t scanned = 0;
    *longest = 0;
    for (mt_node *n = parent->child[1]; n && scanned < MT_TREE_SCAN; n = n->older, scanned++) {
        const size_t most = count < n->count ? count : n->count, same = mt_node_common(n, p, count);
        if (same > *longest) {
            best = n;
            *longest = same;
        }
        *media |= same < most && mt_key_token(n->key[same]) == mt_key_token(p->key[same]);
    }
    return best;
}

/* Marks a node and all above it as just used; those nearest to the root become the newest (invariant 4 of tree.c). */
static void touch(mt_tree *t, mt_node *n)
{
    for (; n->parent; n = n->parent)
        for (size_t g = 0; g < t->groups.count; g++)
            if (mt_node_is_idle(t, g, n)) {
                mt_tree_leave(&t->idle[g], g, n);
                mt_tree_join(&t->idle[g], g, n, false);
            }
}

/* Whether all pages exist that windows need, where the last node is `n` and the next position is `positions`. */
static bool has_tails(const mt_tree *t, const mt_node *n, size_t positions)
{
    for (size_t g = 1; g < t->groups.count; g++) {
        const size_t begin = mt_window_begin(positions, t->groups.window[g]) / MT_PAGE_TOKENS;
        size_t page = (positions + MT_PAGE_TOKENS - 1) / MT_PAGE_TOKENS;
        for (const mt_node *p = n; page > begin; page--, p = p->parent)
            if (!mt_node_has_page(p, g))
                return false;
    }
    return true;
}

/* Shortens the hit until all pages that windows need exist. Where many pages in a row are missing, each of them is
   looked at again for each page given up. */
static void retreat(const mt_tree *t, mt_hit *hit)
{
    if (hit->partial && has_tails(t, hit->partial, hit->positions))
        return;
    if (hit->partial)
        hit->miss = MT_MISS_WINDOW;
    hit->partial = NULL;
    hit->tail = 0;
    for (; hit->pages > 0; hit->pages--, hit->node = hit->node->parent) {
        if (has_tails(t, hit->node, hit->pages * MT_PAGE_TOKENS))
            break;
        hit->miss = MT_MISS_WINDOW;
    }
    hit->positions = hit->pages * MT_PAGE_TOKENS;
}

mt_node *mt_tree_find_anchor(const mt_tree *t, const mt_node *parent, const mt_page_text *p, size_t count,
                             uint32_t *slot)
{
    mt_node *best = NULL;
    size_t deepest = 0, scanned = 0;
    for (mt_node *n = parent->child[1]; n && scanned < MT_TREE_SCAN; n = n->older, scanned++) {
        if (n->anchors == MT_NO_PAGE)
            continue;
        const uint32_t s = mt_anchors_find(&t->anchors, &n->anchors, mt_node_common(n, p, count));
        if (s == MT_NO_PAGE || t->anchors.of[s].offset <= deepest)
            continue;
        best = n;
        *slot = s;
        deepest = t->anchors.of[s].offset;
    }
    return best;
}

/* Shortens the hit to the last anchor before its end; to nothing where there is none. */
static void retreat_to_anchor(const mt_tree *t, mt_hit *hit, const mt_text *text, size_t count)
{
    mt_node *n, *parent = hit->node;
    uint32_t slot;
    for (size_t page = hit->pages;; page--, parent = parent->parent) {
        const mt_page_text p = mt_text_page(text, page);
        const size_t left = count - page * MT_PAGE_TOKENS;
        n = mt_tree_find_anchor(t, parent, &p, left < MT_PAGE_TOKENS ? left : MT_PAGE_TOKENS, &slot);
        hit->pages = page;
        if (n || page == 0)
            break;
    }
    hit->node = parent;
    hit->partial = NULL;
    hit->tail = 0;
    if (n) {
        hit->state = slot;
        hit->tail = t->anchors.of[slot].offset;
        hit->partial = n;
    }
    if (hit->tail == MT_PAGE_TOKENS) {
        hit->node = n;
        hit->partial = NULL;
        hit->tail = 0;
        hit->pages++;
    }
    hit->positions = hit->pages * MT_PAGE_TOKENS + hit->tail;
    if (hit->positions + MT_PAGE_TOKENS < hit->shared || (hit->positions < hit->shared && hit->miss == MT_MISS_NONE))
        hit->miss = MT_MISS_STATE;
}

mt_hit mt_tree_find(mt_tree *t, mt_node *root, const mt_text *text, size_t count)
{
    mt_hit hit = {.node = root, .state = MT_NO_PAGE};
    mt_node *next = NULL;
    bool salted = false, media = false;
    const size_t whole = count / MT_PAGE_TOKENS;
    for (; hit.pages < whole; hit.pages++, hit.node = next) {
        next = mt_tree_find_whole(t, hit.node, text, hit.pages, &salted);
        if (!next || !mt_node_is_here(next))
            break;
    }
    const mt_page_text p = mt_text_page(text, hit.pages);
    const size_t at = hit.pages * MT_PAGE_TOKENS, left = count - at;
    const bool gone = hit.pages < whole && next;
    if (left > 0)
        hit.partial = find_longest(hit.node, &p, left < MT_PAGE_TOKENS ? left : MT_PAGE_TOKENS, &hit.tail, &media);
    hit.positions = at + hit.tail;
    if (hit.positions < count)
        hit.miss = gone                       ? MT_MISS_EVICTED
                   : salted && hit.pages == 0 ? MT_MISS_SALT
                   : media                    ? MT_MISS_MEDIA
                                              : MT_MISS_FIRST_SIGHT;
    retreat(t, &hit);
    hit.shared = hit.positions;
    if (t->groups.states)
        retreat_to_anchor(t, &hit, text, count);
    touch(t, hit.partial ? hit.partial : hit.node);
    return hit;
}
