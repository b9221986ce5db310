/* The prefix tree (tree.h): which pages belong to which text. Used by the engine's thread.

   A node is one page: up to MT_PAGE_TOKENS positions that follow those of its parent. A whole page is found by hash,
   and accepted only where its parent, all its tokens and the digests of its pictures are equal. A page that is not
   whole is filled by the one sequence that began it; others use its positions by copying them, so it may grow
   meanwhile. Only whole pages have children. Roots are found by hash, too, and all bytes of their salts are compared.

   1. A node is resident while it has a page of group 0. The parent of a resident node is resident. Lookups count
      resident nodes only.
   2. The tree has one reference of its own to each page of a node; sequences have references of their own.
   3. A sequence that holds a node's page of group 0 holds those of all nodes above. A transfer
      that stores a page in a tier holds that page alone, maybe longer than any sequence.
   4. A page of a node that only the tree refers to is in the group's idle list, least recently used first. What is
      evicted of group 0 is the deepest resident node below the first of the list. No sequence holds that one (3): it is
      idle, or held by a transfer, and then it leaves the tree now and becomes free later.
   5. Evicting a page of group 0 also drops the node's other pages and states. A whole node stays without them: it tells
      why a lookup failed, and takes the pages of a sequence that computes it again. A node that is not whole is
      removed. Evicting a page of another group only leaves a gap there.
   6. Nodes that are not resident are in the list `gone`, longest gone first, so none stands before one of its
      descendants. There are MT_TREE_NODES nodes a page and a root a sequence; where another is needed, the first of
      `gone` is removed. `gone` is not empty then: resident nodes and their roots are at most two a page.
   7. Where the model has recurrent layers, nodes have anchors (anchors.c), whose states are dropped with the node's
      pages. A lookup ends at an anchor.

   Rejected: nodes of variable length (a radix tree). They save little, since pages are small, and need splitting while
   sequences point at them. */
#include "cache/tree_inside.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

mt_tree *mt_tree_new(const mt_cache_groups *groups, const size_t pages[], size_t sequences)
{
    mt_tree *t = mt_alloc(sizeof(*t));
    assert(!groups->states || groups->count == 1); /* no model has both windows and recurrent layers */
    t->groups = *groups;
    for (size_t g = 0; g < groups->count; g++) {
        mt_pages_init(&t->pages[g], pages[g]);
        t->owner[g] = mt_alloc_array(pages[g], sizeof(mt_node *));
    }
    mt_anchors_init(&t->anchors, groups->states, groups->spare);
    t->total = MT_TREE_NODES * pages[0] + sequences;
    t->nodes = mt_alloc_array(t->total, sizeof(*t->nodes));
    for (size_t i = t->total; i-- > 0;) {
        t->nodes[i].chain = t->unused;
        t->unused = &t->nodes[i];
    }
    for (t->buckets = 16; t->buckets < t->total / 2;)
        t->buckets *= 2;
    t->bucket = mt_alloc_array(t->buckets, sizeof(mt_node *));
    return t;
}

void mt_tree_free(mt_tree *t)
{
    if (!t)
        return;
    for (size_t g = 0; g < t->groups.count; g++) {
        mt_pages_free(&t->pages[g]);
        mt_free(t->owner[g]);
    }
    for (size_t i = 0; i < t->total; i++)
        mt_free(t->nodes[i].figure);
    mt_anchors_free(&t->anchors);
    mt_free(t->nodes);
    mt_free(t->digest);
    mt_free(t->bucket);
    mt_free(t);
}

const mt_cache_groups *mt_tree_groups(const mt_tree *t)
{
    return &t->groups;
}

mt_anchors *mt_tree_anchors(mt_tree *t)
{
    return &t->anchors;
}

static void watch_pool(mt_pages *pages, mt_pages_watch *watch, void *watcher, size_t pool)
{
    pages->watch = watch;
    pages->watcher = watcher;
    pages->pool = pool;
}

void mt_tree_watch(mt_tree *t, mt_pages_watch *watch, void *watcher)
{
    for (size_t g = 0; g < t->groups.count; g++)
        watch_pool(&t->pages[g], watch, watcher, g);
    watch_pool(&t->anchors.slots, watch, watcher, MT_KV_GROUPS);
}

mt_node *mt_node_parent(const mt_node *n)
{
    return n->parent;
}

/* Makes n the youngest of its parent's children that are resident, or of those that are not. */
static void add_child(mt_node *n)
{
    mt_node **youngest = &n->parent->child[mt_node_is_here(n)];
    n->younger = NULL;
    n->older = *youngest;
    if (*youngest)
        (*youngest)->younger = n;
    *youngest = n;
}

static void remove_child(mt_node *n)
{
    *(n->younger ? &n->younger->older : &n->parent->child[mt_node_is_here(n)]) = n->older;
    if (n->older)
        n->older->younger = n->younger;
}

static void put_by_hash(mt_tree *t, mt_node *n, uint64_t hash)
{
    n->hash = hash;
    n->chain = *mt_tree_bucket(t, hash);
    *mt_tree_bucket(t, hash) = n;
}

/* ---- nodes that go ---- */

static void forget_page(mt_tree *t, size_t g, mt_node *n)
{
    if (!mt_node_has_page(n, g))
        return;
    if (mt_node_is_idle(t, g, n))
        mt_tree_leave(&t->idle[g], g, n);
    t->owner[g][n->page[g]] = NULL;
    mt_pages_unref(&t->pages[g], n->page[g]);
    n->page[g] = MT_NO_PAGE;
}

/* Evicts a node's pages; those that no sequence holds become free. Nothing below the node is resident. */
static void forget_pages(mt_tree *t, mt_node *n)
{
    mt_tree_tell_gone(t, n);
    remove_child(n);
    mt_anchors_drop(&t->anchors, &n->anchors);
    for (size_t g = 0; g < t->groups.count; g++)
        forget_page(t, g, n);
    t->count--;
    add_child(n);
    mt_tree_join(&t->gone, 0, n, false);
}

static void drop(mt_tree *t, mt_node *n)
{
    assert(!n->child[0] && !n->child[1]);
    if (!n->parent || mt_node_is_whole(n)) {
        mt_node **at = mt_tree_bucket(t, n->hash);
        while (*at != n)
            at = &(*at)->chain;
        *at = n->chain;
    }
    mt_anchors_drop(&t->anchors, &n->anchors);
    mt_free(n->figure);
    n->figure = NULL;
    n->chain = t->unused;
    t->unused = n;
}

static void drop_unused_root(mt_tree *t, mt_node *n)
{
    if (!n->parent && !n->child[0] && !n->child[1] && n->users == 0)
        drop(t, n);
}

static void remove_leaf(mt_tree *t, mt_node *n)
{
    mt_node *parent = n->parent;
    if (mt_node_is_here(n))
        forget_pages(t, n);
    mt_tree_leave(&t->gone, 0, n);
    remove_child(n);
    drop(t, n);
    drop_unused_root(t, parent);
}

/* Evicts one page; of group 0 it may be one that is held, and free later only. */
static void evict(mt_tree *t, size_t g)
{
    mt_node *n = t->idle[g].oldest;
    while (g == 0 && n->child[true])
        n = n->child[true];
    t->evictions++;
    if (g > 0)
        forget_page(t, g, n);
    else if (mt_node_is_whole(n))
        forget_pages(t, n);
    else
        remove_leaf(t, n);
}

static mt_node *new_node(mt_tree *t, mt_node *parent)
{
    if (!t->unused)
        remove_leaf(t, t->gone.oldest);
    mt_node *n = t->unused;
    t->unused = n->chain;
    memset(n, 0, sizeof(*n));
    for (size_t g = 0; g < MT_KV_GROUPS; g++)
        n->page[g] = MT_NO_PAGE;
    n->anchors = MT_NO_PAGE;
    n->parent = parent;
    return n;
}

/* ---- roots ---- */

mt_node *mt_tree_root(mt_tree *t, const uint8_t salt[32])
{
    uint64_t hash; /* the first bytes of the salt, which is a digest or zeros */
    memcpy(&hash, salt, sizeof(hash));
    mt_node *n = *mt_tree_bucket(t, hash);
    for (; n && (n->parent || memcmp(n->salt, salt, sizeof(n->salt)) != 0); n = n->chain)
        t->probes++;
    if (!n) {
        n = new_node(t, NULL);
        memcpy(n->salt, salt, sizeof(n->salt));
        put_by_hash(t, n, hash);
    }
    n->users++;
    return n;
}

void mt_tree_root_release(mt_tree *t, mt_node *root)
{
    assert(!root->parent && root->users > 0);
    root->users--;
    drop_unused_root(t, root);
}

/* ---- pages ---- */

uint32_t mt_tree_take(mt_tree *t, size_t g)
{
    while (t->pages[g].free == 0 && t->idle[g].count > 0)
        evict(t, g);
    return mt_pages_take(&t->pages[g]);
}

void mt_tree_release(mt_tree *t, size_t g, uint32_t page, bool soon)
{
    if (mt_pages_unref(&t->pages[g], page) == 1 && t->owner[g][page])
        mt_tree_join(&t->idle[g], g, t->owner[g][page], soon);
}

size_t mt_tree_available(const mt_tree *t, size_t g)
{
    return t->pages[g].free + t->idle[g].count;
}

size_t mt_tree_total(const mt_tree *t, size_t g)
{
    return t->pages[g].total;
}

size_t mt_tree_filled(const mt_tree *t, size_t g)
{
    return t->pages[g].total - t->pages[g].free;
}

size_t mt_tree_nodes(const mt_tree *t)
{
    return t->count;
}

uint64_t mt_tree_evictions(const mt_tree *t)
{
    return t->evictions;
}

void mt_tree_clear(mt_tree *t)
{
    for (size_t g = t->groups.count; g-- > 0;)
        while (t->idle[g].count > 0)
            evict(t, g);
    while (t->gone.count > 0)
        remove_leaf(t, t->gone.oldest);
}

/* ---- building ---- */

void mt_tree_ref(mt_tree *t, mt_node *n, uint32_t page[MT_KV_GROUPS])
{
    for (size_t g = 0; g < t->groups.count; g++) {
        page[g] = n->page[g];
        if (page[g] == MT_NO_PAGE)
            continue;
        if (mt_node_is_idle(t, g, n))
            mt_tree_leave(&t->idle[g], g, n);
        mt_pages_ref(&t->pages[g], page[g]);
    }
}

void mt_tree_anchor(mt_tree *t, mt_node *n, size_t offset, size_t gain, uint32_t slot)
{
    uint32_t known;
    const mt_page_text p = mt_node_page_text(n);
    assert(n->parent && offset > 0 && offset <= n->count);
    if (mt_tree_find_anchor(t, n->parent, &p, offset, &known) && t->anchors.of[known].offset == offset)
        return;
    mt_anchors_add(&t->anchors, &n->anchors, offset, gain, slot);
}

static void adopt(mt_tree *t, mt_node *n, size_t g, uint32_t page)
{
    n->page[g] = page;
    t->owner[g][page] = n;
    mt_pages_ref(&t->pages[g], page);
}

/* Makes a node resident that was not. */
static void adopt_all(mt_tree *t, mt_node *n, const uint32_t page[MT_KV_GROUPS])
{
    for (size_t g = 0; g < t->groups.count; g++)
        adopt(t, n, g, page[g]);
    t->count++;
    add_child(n);
}

mt_node *mt_tree_begin(mt_tree *t, mt_node *parent, const uint32_t page[MT_KV_GROUPS])
{
    mt_node *n = new_node(t, parent);
    assert(!parent->parent || mt_node_is_whole(parent));
    adopt_all(t, n, page);
    return n;
}

/* Removes unheld nodes that are a beginning of a page that is whole now: no lookup needs them any more. */
static void drop_beginnings(mt_tree *t, mt_node *whole)
{
    const mt_page_text p = mt_node_page_text(whole);
    size_t scanned = 0;
    for (mt_node *n = whole->parent->child[1], *older; n && scanned < MT_TREE_SCAN; n = older, scanned++) {
        older = n->older;
        if (!mt_node_is_whole(n) && mt_node_is_idle(t, 0, n) && mt_node_common(n, &p, n->count) == n->count) {
            mt_anchors_move(&t->anchors, &n->anchors, &whole->anchors);
            remove_leaf(t, n);
        }
    }
}

/* A sequence has computed the pages of a node that was evicted. */
static void come_back(mt_tree *t, mt_node *known, const uint32_t page[MT_KV_GROUPS])
{
    mt_tree_leave(&t->gone, 0, known);
    remove_child(known);
    adopt_all(t, known, page);
    drop_beginnings(t, known);
    mt_tree_tell_here(t, known);
}

/* Replaces the sequence's pages by those of a node with the same text; where the node has none of a group, gives it the
   sequence's. */
static void merge(mt_tree *t, mt_node *known, uint32_t page[MT_KV_GROUPS])
{
    for (size_t g = 0; g < t->groups.count; g++)
        if (!mt_node_has_page(known, g))
            adopt(t, known, g, page[g]);
        else {
            const uint32_t own = page[g];
            if (mt_node_is_idle(t, g, known))
                mt_tree_leave(&t->idle[g], g, known);
            page[g] = known->page[g];
            mt_pages_ref(&t->pages[g], page[g]);
            mt_tree_release(t, g, own, false);
        }
}

/* Copies keys and figures of p to the node, which has `count` positions then. */
static void learn(mt_node *n, const mt_page_text *p, size_t count)
{
    size_t figures = n->figures;
    memcpy(n->key + n->count, p->key + n->count, (count - n->count) * sizeof(*n->key));
    n->count = (uint32_t)count;
    while (figures < p->figures && p->figure[figures].first < p->first + count)
        figures++;
    if (figures > n->figures)
        n->figure = mt_realloc(n->figure, n->figures * sizeof(*n->figure), figures * sizeof(*n->figure));
    for (; n->figures < figures; n->figures++) {
        mt_figure *m = &n->figure[n->figures];
        *m = p->figure[n->figures];
        m->first = m->first > p->first ? m->first - (uint32_t)p->first : 0;
    }
}

mt_node *mt_tree_fill(mt_tree *t, mt_node *n, const mt_text *text, size_t at, size_t count, uint32_t page[MT_KV_GROUPS])
{
    const mt_page_text p = mt_text_page(text, at);
    bool salted;
    assert(!mt_node_is_whole(n) && count <= MT_PAGE_TOKENS && count >= n->count);
    learn(n, &p, count);
    if (!mt_node_is_whole(n))
        return n;
    mt_node *known = mt_tree_find_whole(t, n->parent, text, at, &salted);
    put_by_hash(t, n, text->hash[at]);
    if (!known) {
        drop_beginnings(t, n);
        mt_tree_tell_here(t, n);
        return n;
    }
    mt_anchors_move(&t->anchors, &n->anchors, &known->anchors);
    remove_leaf(t, n);
    (mt_node_is_here(known) ? merge(t, known, page) : come_back(t, known, page));
    return known;
}
