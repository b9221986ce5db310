/* The prefix tree: every page whose keys and values are computed, found by the exact text that leads to it. Used by the
   engine's thread. See tree.c. */
#ifndef MT_CACHE_TREE_H
#define MT_CACHE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "cache/anchors.h"
#include "cache/group.h"
#include "cache/pages.h"
#include "cache/text.h"

/* Why a lookup found less than all. */
typedef enum mt_miss {
    MT_MISS_NONE,        /* it found all */
    MT_MISS_FIRST_SIGHT, /* this text was not seen before */
    MT_MISS_EVICTED,     /* it was computed, and its page was evicted */
    MT_MISS_SALT,        /* cached under another salt only */
    MT_MISS_MEDIA,       /* the same tokens are cached with another picture */
    MT_MISS_WINDOW,      /* cached, but some pages that a window needs are not */
    MT_MISS_STATE,       /* cached, but no recurrent state is kept there */
    MT_MISS_COUNT
} mt_miss;

const char *mt_miss_name(mt_miss miss); /* "first_sight", ... */

typedef struct mt_tree mt_tree;
/* A page's place in the tree; the node may outlive the page. A root has no page. A node is called resident while it has
   its page of group 0. */
typedef struct mt_node mt_node;

#define MT_TREE_NODES 4 /* most nodes for each page of group 0; besides, each sequence has a root */

/* pages: how many of each group. sequences: most that are attached at one time. Free with mt_tree_free, after all
   sequences were freed. */
mt_tree *mt_tree_new(const mt_cache_groups *groups, const size_t pages[], size_t sequences);
void mt_tree_free(mt_tree *tree);

const mt_cache_groups *mt_tree_groups(const mt_tree *tree);
mt_anchors *mt_tree_anchors(mt_tree *tree);

/* Debugging: from now on, watch is called for every page (pool: its group) and every slot for states (pool:
   MT_KV_GROUPS) that is taken or becomes free. */
void mt_tree_watch(mt_tree *tree, mt_pages_watch *watch, void *watcher);
mt_node *mt_node_parent(const mt_node *node); /* NULL for a root */

/* A whole resident page, described for others (src/events). What it points to belongs to the tree. */
typedef struct mt_tree_block {
    /* hash: of the salt and all text up to the page's end; parent: the same of the page before */
    uint64_t hash, parent;
    bool first;        /* the page is the first of its text: it has no parent */
    const mt_key *key; /* MT_PAGE_TOKENS */
    const mt_figure *figure;
    size_t figures;
    const uint8_t *salt;   /* of a first page: 32 bytes; NULL: no salt */
    const char *salt_name; /* name of the salt (mt_tree_name_root); NULL: unknown */
} mt_tree_block;

/* here: the page became resident; else it was evicted. */
typedef void mt_tree_listener(void *ctx, const mt_tree_block *block, bool here);

/* From now on `tell` is called for every whole page that becomes resident or is evicted; call while the tree is empty.
   Hashes are the first bytes of digests over `seed`, the salt and the text, as in the keys of tiers
   (engine/keep_key.c). */
void mt_tree_tell(mt_tree *tree, const uint8_t seed[32], mt_tree_listener *tell, void *ctx);
uint64_t mt_tree_block_hash(const uint8_t digest[32]);

/* Calls `each` for every whole resident page, parents first. Only after mt_tree_tell. */
void mt_tree_each(const mt_tree *tree, void (*each)(void *ctx, const mt_tree_block *block), void *ctx);

/* Describes the whole page with this number in group 0. False: it is not whole or not in the tree, or mt_tree_tell was
   not called. */
bool mt_tree_block_of(const mt_tree *tree, uint32_t page, mt_tree_block *out) MT_NODISCARD;

/* Names the salt of a root; a second name is ignored. */
void mt_tree_name_root(mt_node *root, const char *name);

/* The root for a salt (a digest, or all zeros); equal salts have one root. It lives until it is released as often as it
   was got here and nothing is below it. */
mt_node *mt_tree_root(mt_tree *tree, const uint8_t salt[32]);
void mt_tree_root_release(mt_tree *tree, mt_node *root);

/* The part of a prompt that the tree has. */
typedef struct mt_hit {
    size_t positions; /* positions found: those of `pages` whole pages, and the first `tail` of one more */
    size_t pages, tail;
    mt_node *node;    /* of the last whole page, or the root */
    mt_node *partial; /* the node whose page holds the tail; NULL: there is no tail */
    /* positions whose pages are resident; more than `positions` where the model needs a state and none is kept there */
    size_t shared;
    uint32_t state; /* slot of the anchor at `positions`; MT_NO_PAGE: none, or the model has no recurrent layers */
    mt_miss miss;   /* why it is less than was looked for */
} mt_hit;

/* Finds the longest beginning of the text's first `count` positions that can be continued from. Counts as a use of its
   pages. */
mt_hit mt_tree_find(mt_tree *tree, mt_node *root, const mt_text *text, size_t count);

/* The node of page `page` of the text, a whole page below `parent`, where its pages of all groups are there; else
   NULL. */
mt_node *mt_tree_child(mt_tree *tree, mt_node *parent, const mt_text *text, size_t page);

/* Takes a reference to the node's page of each group; MT_NO_PAGE where it has none. */
void mt_tree_ref(mt_tree *tree, mt_node *node, uint32_t page[MT_KV_GROUPS]);

/* Makes a node without positions below a whole page or a root. The tree takes a reference of its own to each of the
   pages, which the calling sequence fills from the front. */
mt_node *mt_tree_begin(mt_tree *tree, mt_node *parent, const uint32_t page[MT_KV_GROUPS]);

/* The node, page `at` of the text, now has `count` positions. Where it becomes whole and the tree has a node of the
   same text, the two are merged: the node passed is freed and the other returned. page[] are the sequence's pages: each
   is replaced by the other node's, or given to it where it has none. Otherwise the node itself is returned. */
mt_node *mt_tree_fill(mt_tree *tree, mt_node *node, const mt_text *text, size_t at, size_t count,
                      uint32_t page[MT_KV_GROUPS]) MT_NODISCARD;

/* The slot holds the state after the node's first `offset` positions: it becomes an anchor, where the node has none
   there. gain: positions that continuing there saves. */
void mt_tree_anchor(mt_tree *tree, mt_node *node, size_t offset, size_t gain, uint32_t slot);

/* A page for a sequence to write: a free one, or that of the least recently used leaf. MT_NO_PAGE when sequences hold
   all. */
uint32_t mt_tree_take(mt_tree *tree, size_t group);

/* Drops a sequence's reference to a page. soon: to be evicted before others, as the page of a window that has moved on
   is hardly needed again. */
void mt_tree_release(mt_tree *tree, size_t group, uint32_t page, bool soon);

/* How many pages mt_tree_take could give; and how many there are. */
size_t mt_tree_available(const mt_tree *tree, size_t group);
size_t mt_tree_total(const mt_tree *tree, size_t group);
size_t mt_tree_filled(const mt_tree *tree, size_t group); /* pages that are not free: held, or kept for later */
size_t mt_tree_nodes(const mt_tree *tree);                /* resident ones */
uint64_t mt_tree_evictions(const mt_tree *tree);

/* Forgets everything that no sequence holds. */
void mt_tree_clear(mt_tree *tree);

#endif
