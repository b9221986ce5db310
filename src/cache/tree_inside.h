/* What a tree is made of; for tree.c and tree_find.c alone. */
#ifndef MT_CACHE_TREE_INSIDE_H
#define MT_CACHE_TREE_INSIDE_H

#include "cache/tree.h"

#define MT_TREE_SCAN 1024 /* children looked at for the longest common beginning */

typedef struct mt_tree_link {
    struct mt_node *before, *after;
} mt_tree_link;

struct mt_node {
    mt_node *parent;
    mt_node *child[2];               /* the youngest of those that are here [1], and of those that are not [0] */
    mt_node *younger, *older;        /* siblings of the same kind */
    mt_node *chain;                  /* next of the same bucket, or of the free list */
    uint64_t hash;                   /* of a whole page: with all before it; of a root: of its salt */
    uint32_t page[MT_KV_GROUPS];     /* MT_NO_PAGE: it is not here */
    mt_tree_link idle[MT_KV_GROUPS]; /* [0]: in the list of those that are gone, if it is not here */
    union {
        mt_figure *figure; /* its pictures; positions are counted from the page's first */
        char *name;        /* of a root: what its salt is called; NULL: nobody said */
    };
    mt_anchor_list anchors;
    uint32_t figures;
    uint32_t count; /* keys */
    uint32_t users; /* of a root */
    bool told;      /* that it is here */
    union {
        mt_key key[MT_PAGE_TOKENS];
        uint8_t salt[32]; /* of a root */
    };
};

typedef struct mt_tree_list {
    mt_node *oldest, *newest;
    size_t count;
} mt_tree_list;

struct mt_tree {
    mt_cache_groups groups;
    mt_pages pages[MT_KV_GROUPS];
    mt_anchors anchors;
    mt_node **owner[MT_KV_GROUPS]; /* of each page; NULL: not in the tree */
    mt_tree_list idle[MT_KV_GROUPS], gone;
    mt_node *nodes, *unused;
    size_t total; /* of nodes */
    mt_node **bucket;
    size_t buckets; /* a power of two */
    size_t count;   /* of nodes that are here */
    uint64_t evictions, probes;
    mt_tree_listener *tell; /* NULL: nobody is told */
    void *told;
    uint8_t seed[32];
    uint8_t (*digest)[32]; /* of each node that was told of */
};

static inline bool mt_node_has_page(const mt_node *n, size_t g)
{
    return n->page[g] != MT_NO_PAGE;
}

static inline bool mt_node_is_here(const mt_node *n)
{
    return mt_node_has_page(n, 0);
}

static inline bool mt_node_is_idle(const mt_tree *t, size_t g, const mt_node *n)
{
    return mt_node_has_page(n, g) && t->pages[g].refs[n->page[g]] == 1;
}

static inline bool mt_node_is_whole(const mt_node *n)
{
    return n->count == MT_PAGE_TOKENS;
}

static inline mt_node **mt_tree_bucket(mt_tree *t, uint64_t hash)
{
    return &t->bucket[hash & (t->buckets - 1)];
}

static inline mt_passage mt_node_passage(const mt_node *n)
{
    return (mt_passage){.key = n->key, .figure = n->figure, .figures = n->figures};
}

/* How many positions of the node stand at the beginning of p, which has `count`. */
static inline size_t mt_node_common(const mt_node *n, const mt_passage *p, size_t count)
{
    const mt_passage own = mt_node_passage(n);
    return mt_passage_common(&own, p, count < n->count ? count : n->count);
}

/* The idle list of group g, or with g = 0 the list of those that are gone. */
void mt_tree_leave(mt_tree_list *l, size_t g, mt_node *n);
void mt_tree_join(mt_tree_list *l, size_t g, mt_node *n, bool oldest);

/* Tells that the node, a whole one, is here, or that it is here no more; see tree_tell.c. */
void mt_tree_tell_here(mt_tree *tree, mt_node *n);
void mt_tree_tell_gone(mt_tree *tree, mt_node *n);

/* The node of a whole page, be it here or not; NULL when there is none. Sets *salted when the page is here below
   another parent with the same hash: under another salt. */
mt_node *mt_tree_find_whole(mt_tree *tree, const mt_node *parent, const mt_text *text, size_t page, bool *salted);

/* The child of `parent` with the deepest anchor whose page begins as p does, and the anchor's slot. */
mt_node *mt_tree_find_anchor(const mt_tree *tree, const mt_node *parent, const mt_passage *p, size_t count,
                             uint32_t *slot);

#endif
