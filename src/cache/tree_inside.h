/* The tree's data structures, shared by the files tree*.c. The invariants are in tree.c. */
#ifndef MT_CACHE_TREE_INSIDE_H
#define MT_CACHE_TREE_INSIDE_H

#include "cache/tree.h"

#define MT_TREE_SCAN 1024 /* most children that are compared to find the longest common beginning */

typedef struct mt_tree_link {
    struct mt_node *before, *after;
} mt_tree_link;

struct mt_node {
    mt_node *parent;
    mt_node *child[2]; /* the youngest child that is not resident [0], and the youngest that is [1]; roots included */
    mt_node *younger, *older;    /* siblings in the same of these two lists */
    mt_node *chain;              /* the next node in its hash bucket, or in the list of unused nodes */
    uint64_t hash;               /* of a whole page: of its text and all before it; of a root: of its salt */
    uint32_t page[MT_KV_GROUPS]; /* page of each group; MT_NO_PAGE: evicted */
    /* links in mt_tree.idle[g]; [0] also in mt_tree.gone, for a node that is not resident */
    mt_tree_link idle[MT_KV_GROUPS];
    union {
        mt_figure *figure; /* the pictures in its page; positions count from the page's first */
        char *name;        /* of a root: name of its salt; NULL: none */
    };
    mt_anchor_list anchors; /* recurrent states kept in its page */
    uint32_t figures;       /* number of its pictures */
    uint32_t count;         /* positions it has; MT_PAGE_TOKENS: it is whole */
    uint32_t users;         /* of a root: sequences attached to it */
    bool told;              /* the listener knows that it is resident */
    union {
        mt_key key[MT_PAGE_TOKENS];
        uint8_t salt[32]; /* of a root */
    };
};

/* A list of nodes in the order of their last use. */
typedef struct mt_tree_list {
    mt_node *oldest, *newest;
    size_t count;
} mt_tree_list;

struct mt_tree {
    mt_cache_groups groups;
    mt_pages pages[MT_KV_GROUPS];  /* pool of each group */
    mt_anchors anchors;            /* states of all nodes */
    mt_node **owner[MT_KV_GROUPS]; /* [group][page]: the node that has the page; NULL: not in the tree */
    /* idle: per group, nodes whose page no sequence holds; gone: nodes that are not resident */
    mt_tree_list idle[MT_KV_GROUPS], gone;
    mt_node *nodes, *unused;    /* all nodes; the unused ones, linked by chain */
    size_t total;               /* nodes in `nodes` */
    mt_node **bucket;           /* hash table of whole pages and roots */
    size_t buckets;             /* a power of two */
    size_t count;               /* resident nodes */
    uint64_t evictions, probes; /* probes: nodes compared in lookups */
    mt_tree_listener *tell;     /* NULL: no listener */
    void *told;                 /* the ctx of tell */
    uint8_t seed[32];
    uint8_t (*digest)[32]; /* [total]: digest of the text up to each node that was told */
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

static inline mt_page_text mt_node_page_text(const mt_node *n)
{
    return (mt_page_text){.key = n->key, .figure = n->figure, .figures = n->figures};
}

/* How many positions the node and the first `count` positions of p have in common from the beginning. */
static inline size_t mt_node_common(const mt_node *n, const mt_page_text *p, size_t count)
{
    const mt_page_text own = mt_node_page_text(n);
    return mt_page_text_common(&own, p, count < n->count ? count : n->count);
}

/* Take a node out of a list, or add it at the newest end (or at the oldest). l is idle[g], or with g = 0 `gone`. */
void mt_tree_leave(mt_tree_list *l, size_t g, mt_node *n);
void mt_tree_join(mt_tree_list *l, size_t g, mt_node *n, bool oldest);

/* Tell the listener that a whole node is resident, or no longer is. See tree_tell.c. */
void mt_tree_tell_here(mt_tree *tree, mt_node *n);
void mt_tree_tell_gone(mt_tree *tree, mt_node *n);

/* The node of page `page` of the text, a whole page below `parent`, resident or not; NULL: there is none. Sets *salted
   where a resident node has the same text under another salt. */
mt_node *mt_tree_find_whole(mt_tree *tree, const mt_node *parent, const mt_text *text, size_t page, bool *salted);

/* The child of `parent` that has the anchor with the largest offset at which its page agrees with the first `count`
   positions of p; *slot: the anchor. NULL: there is none. */
mt_node *mt_tree_find_anchor(const mt_tree *tree, const mt_node *parent, const mt_page_text *p, size_t count,
                             uint32_t *slot);

#endif
