/* Which pages are known by which tokens. Owned by the engine's thread.

   A node is one page: up to MT_PAGE_TOKENS keys below its parent's. A whole page is found by hash, and equality of all
   its keys and of its parent decides. A page that is not whole yet is filled by the one sequence that began it; others
   take what is there of it by copying, so it may grow under them. Only whole pages have children.

   1. The tree has one reference of its own to each page of a node; sequences have others.
   2. A sequence that holds a node's page of group 0 holds those of all nodes above it. So a node that nobody holds
      has no descendant that somebody holds.
   3. A page of a node that only the tree refers to is in the group's list of idle pages, oldest use first. In that of
      group 0 a node never comes before one of its descendants, so the first is always a leaf.
   4. Evicting a page of group 0 removes the node; of another group, the node stays and has a gap there.
   5. Where models have recurrent layers, a node has anchors (anchors.c), which go with it. A lookup ends at one.

   Rejected: nodes of variable length (radix). They save little here, since pages are small and many, and cost
   splitting nodes under sequences that point at them. */
#include "cache/tree.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

#define GHOSTS_PER_PAGE 4 /* evicted pages that are remembered, to tell why a lookup failed */
#define SCAN 1024         /* children looked at for the longest common beginning */

typedef struct link {
    struct mt_node *before, *after;
} link;

struct mt_node {
    mt_node *parent, *child;  /* child: the youngest */
    mt_node *younger, *older; /* siblings */
    mt_node *chain;           /* next of the same bucket, or of the free list */
    uint64_t hash;            /* of a whole page: with all before it */
    uint32_t page[MT_KV_GROUPS];
    link idle[MT_KV_GROUPS];
    mt_anchor_list anchors;
    uint32_t count; /* keys */
    uint32_t users; /* of a root */
    union {
        mt_key key[MT_PAGE_TOKENS];
        uint8_t salt[32]; /* of a root */
    };
};

typedef struct idle_list {
    mt_node *oldest, *newest;
    size_t count;
} idle_list;

struct mt_tree {
    mt_cache_groups groups;
    mt_pages pages[MT_KV_GROUPS];
    mt_anchors anchors;
    mt_node **owner[MT_KV_GROUPS]; /* of each page; NULL: not in the tree */
    idle_list idle[MT_KV_GROUPS];
    mt_node *nodes, *unused, *roots; /* roots: linked by older/younger */
    mt_node **bucket;
    size_t buckets; /* a power of two */
    uint64_t *ghost;
    size_t ghosts; /* a power of two */
    size_t count;
    uint64_t evictions;
};

const char *mt_miss_name(mt_miss miss)
{
    static const char *const names[MT_MISS_COUNT] = {"none",  "first_sight", "evicted", "salt",
                                                     "media", "window",      "state"};
    return names[miss];
}

static size_t power_of_two(size_t least)
{
    size_t n = 16;
    while (n < least)
        n *= 2;
    return n;
}

mt_tree *mt_tree_new(const mt_cache_groups *groups, const size_t pages[], size_t sequences)
{
    mt_tree *t = mt_alloc(sizeof *t);
    assert(!groups->states || groups->count == 1); /* no model has windows and recurrent layers */
    /* a root is there for a page below it or for a sequence, besides a node for each page */
    const size_t nodes = 2 * pages[0] + sequences;
    t->groups = *groups;
    for (size_t g = 0; g < groups->count; g++) {
        mt_pages_init(&t->pages[g], pages[g]);
        t->owner[g] = mt_alloc_array(pages[g], sizeof(mt_node *));
    }
    mt_anchors_init(&t->anchors, groups->states);
    t->nodes = mt_alloc_array(nodes, sizeof *t->nodes);
    for (size_t i = nodes; i-- > 0;) {
        t->nodes[i].chain = t->unused;
        t->unused = &t->nodes[i];
    }
    t->buckets = power_of_two(2 * pages[0]);
    t->bucket = mt_alloc_array(t->buckets, sizeof(mt_node *));
    t->ghosts = power_of_two(GHOSTS_PER_PAGE * pages[0]);
    t->ghost = mt_alloc_array(t->ghosts, sizeof *t->ghost);
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
    mt_anchors_free(&t->anchors);
    mt_free(t->nodes);
    mt_free(t->bucket);
    mt_free(t->ghost);
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

/* ---- lists ---- */

static void idle_remove(mt_tree *t, size_t g, mt_node *n)
{
    link *l = &n->idle[g];
    *(l->before ? &l->before->idle[g].after : &t->idle[g].oldest) = l->after;
    *(l->after ? &l->after->idle[g].before : &t->idle[g].newest) = l->before;
    *l = (link){0};
    t->idle[g].count--;
}

static void idle_add(mt_tree *t, size_t g, mt_node *n, bool oldest)
{
    idle_list *list = &t->idle[g];
    link *l = &n->idle[g];
    *l = oldest ? (link){.after = list->oldest} : (link){.before = list->newest};
    *(l->before ? &l->before->idle[g].after : &list->oldest) = n;
    *(l->after ? &l->after->idle[g].before : &list->newest) = n;
    list->count++;
}

static bool is_idle(const mt_tree *t, size_t g, const mt_node *n)
{
    return n->page[g] != MT_NO_PAGE && t->pages[g].refs[n->page[g]] == 1;
}

static mt_node *new_node(mt_tree *t, mt_node *parent)
{
    mt_node *n = t->unused;
    assert(n);
    t->unused = n->chain;
    memset(n, 0, sizeof *n);
    for (size_t g = 0; g < MT_KV_GROUPS; g++)
        n->page[g] = MT_NO_PAGE;
    n->anchors = MT_NO_PAGE;
    n->parent = parent;
    mt_node **first = parent ? &parent->child : &t->roots;
    n->older = *first;
    if (*first)
        (*first)->younger = n;
    *first = n;
    return n;
}

static void drop_node(mt_tree *t, mt_node *n)
{
    assert(!n->child);
    mt_node **first = n->parent ? &n->parent->child : &t->roots;
    *(n->younger ? &n->younger->older : first) = n->older;
    if (n->older)
        n->older->younger = n->younger;
    n->chain = t->unused;
    t->unused = n;
}

static mt_node **bucket_of(mt_tree *t, uint64_t hash)
{
    return &t->bucket[hash & (t->buckets - 1)];
}

static void unhash(mt_tree *t, mt_node *n)
{
    mt_node **at = bucket_of(t, n->hash);
    while (*at != n)
        at = &(*at)->chain;
    *at = n->chain;
}

static bool is_whole(const mt_node *n)
{
    return n->count == MT_PAGE_TOKENS;
}

/* ---- roots ---- */

static void drop_unused_root(mt_tree *t, mt_node *n)
{
    if (!n->parent && !n->child && n->users == 0)
        drop_node(t, n);
}

mt_node *mt_tree_root(mt_tree *t, const uint8_t salt[32])
{
    mt_node *n = t->roots;
    while (n && memcmp(n->salt, salt, sizeof n->salt) != 0)
        n = n->older;
    if (!n) {
        n = new_node(t, NULL);
        memcpy(n->salt, salt, sizeof n->salt);
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

/* ---- eviction ---- */

static void forget_page(mt_tree *t, size_t g, mt_node *n)
{
    if (n->page[g] == MT_NO_PAGE)
        return;
    if (is_idle(t, g, n))
        idle_remove(t, g, n);
    t->owner[g][n->page[g]] = NULL;
    mt_pages_unref(&t->pages[g], n->page[g]);
    n->page[g] = MT_NO_PAGE;
}

/* Removes a leaf; its pages that nobody else holds become free. */
static void remove_leaf(mt_tree *t, mt_node *n)
{
    mt_node *parent = n->parent;
    mt_anchors_drop(&t->anchors, &n->anchors);
    for (size_t g = 0; g < t->groups.count; g++)
        forget_page(t, g, n);
    if (is_whole(n))
        unhash(t, n);
    drop_node(t, n);
    t->count--;
    drop_unused_root(t, parent);
}

static void evict(mt_tree *t, size_t g)
{
    mt_node *n = t->idle[g].oldest;
    if (is_whole(n))
        t->ghost[n->hash & (t->ghosts - 1)] = n->hash;
    t->evictions++;
    if (g == 0)
        remove_leaf(t, n);
    else
        forget_page(t, g, n);
}

uint32_t mt_tree_take(mt_tree *t, size_t g)
{
    if (t->pages[g].free == 0 && t->idle[g].count > 0)
        evict(t, g);
    return mt_pages_take(&t->pages[g]);
}

void mt_tree_release(mt_tree *t, size_t g, uint32_t page, bool soon)
{
    if (mt_pages_unref(&t->pages[g], page) == 1 && t->owner[g][page])
        idle_add(t, g, t->owner[g][page], soon);
}

size_t mt_tree_available(const mt_tree *t, size_t g)
{
    return t->pages[g].free + t->idle[g].count;
}

size_t mt_tree_total(const mt_tree *t, size_t g)
{
    return t->pages[g].total;
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
}

/* ---- lookup ---- */

uint64_t mt_tree_hash(uint64_t hash, const mt_key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ keys[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

static size_t common(const mt_key *a, const mt_key *b, size_t most)
{
    size_t n = 0;
    while (n < most && a[n] == b[n])
        n++;
    return n;
}

/* Sets *elsewhere when the page is known below another parent with the same hash: under another salt. */
static mt_node *find_whole(mt_tree *t, const mt_node *parent, const mt_key *keys, uint64_t hash, bool *elsewhere)
{
    for (mt_node *n = *bucket_of(t, hash); n; n = n->chain)
        if (n->hash == hash && common(n->key, keys, MT_PAGE_TOKENS) == MT_PAGE_TOKENS) {
            if (n->parent == parent)
                return n;
            *elsewhere = true;
        }
    return NULL;
}

static bool has_gap(const mt_tree *t, const mt_node *n)
{
    for (size_t g = 1; g < t->groups.count; g++)
        if (n->page[g] == MT_NO_PAGE)
            return true;
    return false;
}

mt_node *mt_tree_child(mt_tree *t, mt_node *parent, const mt_key *keys, uint64_t hash)
{
    bool elsewhere;
    mt_node *n = find_whole(t, parent, keys, hash, &elsewhere);
    return n && !has_gap(t, n) ? n : NULL;
}

/* The child that shares most of keys[0..count); *media when one differs first in what picture stands there. */
static mt_node *find_longest(const mt_node *parent, const mt_key *keys, size_t count, size_t *longest, bool *media)
{
    mt_node *best = NULL;
    size_t scanned = 0;
    *longest = 0;
    for (mt_node *n = parent->child; n && scanned < SCAN; n = n->older, scanned++) {
        const size_t most = count < n->count ? count : n->count, same = common(n->key, keys, most);
        if (same > *longest) {
            best = n;
            *longest = same;
        }
        *media |= same < most && mt_key_token(n->key[same]) == mt_key_token(keys[same]);
    }
    return best;
}

/* Moves a node and all above it to the young end, the root's side youngest. */
static void touch(mt_tree *t, mt_node *n)
{
    for (; n->parent; n = n->parent)
        for (size_t g = 0; g < t->groups.count; g++)
            if (is_idle(t, g, n)) {
                idle_remove(t, g, n);
                idle_add(t, g, n, false);
            }
}

/* Whether pages of every window's tail exist when the last node is `n` and the next position is `positions`. */
static bool has_tails(const mt_tree *t, const mt_node *n, size_t positions)
{
    for (size_t g = 1; g < t->groups.count; g++) {
        const size_t begin = mt_window_begin(positions, t->groups.window[g]) / MT_PAGE_TOKENS;
        size_t page = (positions + MT_PAGE_TOKENS - 1) / MT_PAGE_TOKENS;
        for (const mt_node *p = n; page > begin; page--, p = p->parent)
            if (p->page[g] == MT_NO_PAGE)
                return false;
    }
    return true;
}

/* hash: of the whole page that was not found; NULL when the end of the prompt was reached before one. */
static mt_miss why(const mt_tree *t, const uint64_t *hash, bool salt, bool media)
{
    if (salt)
        return MT_MISS_SALT;
    if (media)
        return MT_MISS_MEDIA;
    return hash && t->ghost[*hash & (t->ghosts - 1)] == *hash ? MT_MISS_EVICTED : MT_MISS_FIRST_SIGHT;
}

/* Goes back to where all that windows need is there. A long run of gaps is walked over once for each page of it. */
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

/* The deepest anchor of the children of `parent`, whose pages would begin with keys[0..count). */
static mt_node *find_anchor(const mt_tree *t, const mt_node *parent, const mt_key *keys, size_t count, uint32_t *slot)
{
    mt_node *best = NULL;
    size_t deepest = 0, scanned = 0;
    for (mt_node *n = parent->child; n && scanned < SCAN; n = n->older, scanned++) {
        if (n->anchors == MT_NO_PAGE)
            continue;
        const uint32_t s =
            mt_anchors_find(&t->anchors, &n->anchors, common(n->key, keys, count < n->count ? count : n->count));
        if (s == MT_NO_PAGE || t->anchors.of[s].offset <= deepest)
            continue;
        best = n;
        *slot = s;
        deepest = t->anchors.of[s].offset;
    }
    return best;
}

/* Goes back to the deepest anchor; to nothing where there is none. */
static void retreat_to_anchor(const mt_tree *t, mt_hit *hit, const mt_key *keys, size_t count)
{
    mt_node *n, *parent = hit->node;
    uint32_t slot;
    for (size_t page = hit->pages;; page--, parent = parent->parent) {
        const size_t at = page * MT_PAGE_TOKENS, left = count - at;
        n = find_anchor(t, parent, keys + at, left < MT_PAGE_TOKENS ? left : MT_PAGE_TOKENS, &slot);
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

mt_hit mt_tree_find(mt_tree *t, mt_node *root, const mt_key *keys, const uint64_t *hash, size_t count)
{
    mt_hit hit = {.node = root, .state = MT_NO_PAGE};
    bool salt = false, media = false;
    const size_t whole = count / MT_PAGE_TOKENS;
    for (mt_node *n; hit.pages < whole; hit.pages++, hit.node = n) {
        n = find_whole(t, hit.node, keys + hit.pages * MT_PAGE_TOKENS, hash[hit.pages], &salt);
        if (!n)
            break;
    }
    const size_t at = hit.pages * MT_PAGE_TOKENS, left = count - at;
    const size_t most = left < MT_PAGE_TOKENS ? left : MT_PAGE_TOKENS;
    if (most > 0)
        hit.partial = find_longest(hit.node, keys + at, most, &hit.tail, &media);
    hit.positions = at + hit.tail;
    if (hit.positions < count)
        hit.miss = why(t, hit.pages < whole ? &hash[hit.pages] : NULL, salt && hit.pages == 0, media);
    retreat(t, &hit);
    hit.shared = hit.positions;
    if (t->groups.states)
        retreat_to_anchor(t, &hit, keys, count);
    touch(t, hit.partial ? hit.partial : hit.node);
    return hit;
}

/* ---- building ---- */

void mt_tree_ref(mt_tree *t, mt_node *n, uint32_t page[MT_KV_GROUPS])
{
    for (size_t g = 0; g < t->groups.count; g++) {
        page[g] = n->page[g];
        if (page[g] == MT_NO_PAGE)
            continue;
        if (is_idle(t, g, n))
            idle_remove(t, g, n);
        mt_pages_ref(&t->pages[g], page[g]);
    }
}

void mt_tree_anchor(mt_tree *t, mt_node *n, size_t offset, size_t gain, uint32_t slot)
{
    uint32_t known;
    assert(n->parent && offset > 0 && offset <= n->count);
    if (find_anchor(t, n->parent, n->key, offset, &known) && t->anchors.of[known].offset == offset)
        return;
    mt_anchors_add(&t->anchors, &n->anchors, offset, gain, slot);
}

static void adopt(mt_tree *t, mt_node *n, size_t g, uint32_t page)
{
    n->page[g] = page;
    t->owner[g][page] = n;
    mt_pages_ref(&t->pages[g], page);
}

mt_node *mt_tree_begin(mt_tree *t, mt_node *parent, const uint32_t page[MT_KV_GROUPS])
{
    mt_node *n = new_node(t, parent);
    assert(!parent->parent || is_whole(parent));
    for (size_t g = 0; g < t->groups.count; g++)
        adopt(t, n, g, page[g]);
    t->count++;
    return n;
}

/* Beginnings of a whole page that nobody holds are of no use any more. */
static void drop_beginnings(mt_tree *t, mt_node *whole)
{
    size_t scanned = 0;
    for (mt_node *n = whole->parent->child, *older; n && scanned < SCAN; n = older, scanned++) {
        older = n->older;
        if (!is_whole(n) && is_idle(t, 0, n) && common(n->key, whole->key, n->count) == n->count) {
            mt_anchors_move(&t->anchors, &n->anchors, &whole->anchors);
            remove_leaf(t, n);
        }
    }
}

/* The sequence's pages give way to those of a node that is the same; where that has a gap, it takes them. */
static void merge(mt_tree *t, mt_node *known, mt_node *n, uint32_t page[MT_KV_GROUPS])
{
    uint32_t own[MT_KV_GROUPS];
    memcpy(own, page, sizeof own);
    mt_anchors_move(&t->anchors, &n->anchors, &known->anchors);
    remove_leaf(t, n);
    for (size_t g = 0; g < t->groups.count; g++)
        if (known->page[g] == MT_NO_PAGE)
            adopt(t, known, g, own[g]);
        else {
            if (is_idle(t, g, known))
                idle_remove(t, g, known);
            page[g] = known->page[g];
            mt_pages_ref(&t->pages[g], page[g]);
            mt_tree_release(t, g, own[g], false);
        }
}

mt_node *mt_tree_fill(mt_tree *t, mt_node *n, const mt_key *keys, size_t count, uint64_t hash,
                      uint32_t page[MT_KV_GROUPS])
{
    assert(!is_whole(n) && count <= MT_PAGE_TOKENS && count >= n->count);
    memcpy(n->key + n->count, keys + n->count, (count - n->count) * sizeof *keys);
    n->count = (uint32_t)count;
    if (!is_whole(n))
        return n;
    bool elsewhere;
    mt_node *known = find_whole(t, n->parent, keys, hash, &elsewhere);
    n->hash = hash;
    n->chain = *bucket_of(t, hash);
    *bucket_of(t, hash) = n;
    if (known)
        merge(t, known, n, page);
    else
        drop_beginnings(t, n);
    return known ? known : n;
}
