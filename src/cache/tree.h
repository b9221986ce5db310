/* The prefix tree: every page whose keys and values are known, by the exact text that leads to it. See tree.c. */
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

/* Why a lookup did not find everything. */
typedef enum mt_miss {
    MT_MISS_NONE,
    MT_MISS_FIRST_SIGHT,
    MT_MISS_EVICTED,
    MT_MISS_SALT,   /* known under another salt only */
    MT_MISS_MEDIA,  /* the same text with another picture */
    MT_MISS_WINDOW, /* known, but the tail of a window is not kept */
    MT_MISS_STATE,  /* known, but no recurrent state is kept there */
    MT_MISS_COUNT
} mt_miss;

const char *mt_miss_name(mt_miss miss); /* "first_sight", ... */

typedef struct mt_tree mt_tree;
typedef struct mt_node mt_node; /* a page's place in the tree, which outlives the page; a root has none */

#define MT_TREE_NODES 4 /* most nodes, for each page of the first group; and one root a sequence */

/* sequences: most that hold on to it at one time. Free with mt_tree_free, after all of them have let go. */
mt_tree *mt_tree_new(const mt_cache_groups *groups, const size_t pages[], size_t sequences);
void mt_tree_free(mt_tree *tree);

const mt_cache_groups *mt_tree_groups(const mt_tree *tree);
mt_anchors *mt_tree_anchors(mt_tree *tree);

/* From now on, watch is told of pages (pool: their group) and of slots for states (pool: MT_KV_GROUPS). */
void mt_tree_watch(mt_tree *tree, mt_pages_watch *watch, void *watcher);
mt_node *mt_node_parent(const mt_node *node); /* NULL for a root */

/* A whole page that is here, as others may be told of it. What it points to is the tree's. */
typedef struct mt_tree_block {
    uint64_t hash, parent; /* hash: of all that leads to it, the salt included; parent: of the page before */
    bool first;            /* there is none before */
    const mt_key *key;     /* MT_PAGE_TOKENS */
    const mt_figure *figure;
    size_t figures;
    const uint8_t *salt;   /* of a first page: 32 bytes; NULL: it has none */
    const char *salt_name; /* what that is called; NULL: nobody said */
} mt_tree_block;

typedef void mt_tree_listener(void *ctx, const mt_tree_block *block, bool here);

/* From now on, when nothing is in it yet, `tell` hears of every whole page that comes and goes. Hashes are the first
   bytes of digests that begin with that of `seed` and the salt, as those do by which pages are kept in a tier. */
void mt_tree_tell(mt_tree *tree, const uint8_t seed[32], mt_tree_listener *tell, void *ctx);
uint64_t mt_tree_block_hash(const uint8_t digest[32]);

/* Every whole page that is here, parents first; for a tree that somebody is told of. */
void mt_tree_each(const mt_tree *tree, void (*each)(void *ctx, const mt_tree_block *block), void *ctx);

/* The whole page of group 0 with this number. False: it is none, or nobody is told of the tree. */
bool mt_tree_block_of(const mt_tree *tree, uint32_t page, mt_tree_block *out) MT_NODISCARD;

/* What the salt of a root is called. The first name stays. */
void mt_tree_name_root(mt_node *root, const char *name);

/* The root of a salt, which is a digest or all zeros; equal digests have equal roots. It stays until it is released
   as often as it was taken and nothing is below it. */
mt_node *mt_tree_root(mt_tree *tree, const uint8_t salt[32]);
void mt_tree_root_release(mt_tree *tree, mt_node *root);

/* What is known of a prompt. */
typedef struct mt_hit {
    size_t positions; /* `pages` whole ones, and the first `tail` of a page more */
    size_t pages, tail;
    mt_node *node;    /* of the last whole page, or the root */
    mt_node *partial; /* whose page holds the tail; NULL when there is none */
    size_t shared;    /* positions whose pages are here; more than `positions` where there is no anchor */
    uint32_t state;   /* of the anchor at `positions`; MT_NO_PAGE where models have none, or none is there */
    mt_miss miss;     /* why it is not all of `count` */
} mt_hit;

/* The longest beginning of the first `count` positions whose pages are here. Counts as a use. */
mt_hit mt_tree_find(mt_tree *tree, mt_node *root, const mt_text *text, size_t count);

/* The node of a whole page of the text below `parent`, all of whose pages are here, or NULL. */
mt_node *mt_tree_child(mt_tree *tree, mt_node *parent, const mt_text *text, size_t page);

/* Takes a reference to a node's page, of each group that has one; MT_NO_PAGE otherwise. */
void mt_tree_ref(mt_tree *tree, mt_node *node, uint32_t page[MT_KV_GROUPS]);

/* Begins a page below a whole one (or a root): its node, with no positions yet. The tree takes a reference of its own
   to each of the pages, which the sequence that begins it fills from the front. */
mt_node *mt_tree_begin(mt_tree *tree, mt_node *parent, const uint32_t page[MT_KV_GROUPS]);

/* Positions [node's count, count) of the node, which is page `at` of the text, have been written. A page that becomes
   whole may be known already: then the known one's node is returned, and the node given is gone. What it has in pages
   is put in place of page[]; what it has not, it takes from there. Else the node itself is returned. */
mt_node *mt_tree_fill(mt_tree *tree, mt_node *node, const mt_text *text, size_t at, size_t count,
                      uint32_t page[MT_KV_GROUPS]) MT_NODISCARD;

/* The slot's state is that after the node's first `offset` positions, of which there are that many: others may
   continue there. It saves `gain` positions. */
void mt_tree_anchor(mt_tree *tree, mt_node *node, size_t offset, size_t gain, uint32_t slot);

/* A page for a sequence to write: a free one, or that of the least recently used leaf. MT_NO_PAGE when all are in
   use. */
uint32_t mt_tree_take(mt_tree *tree, size_t group);

/* Lets go of a page. soon: of a window that has moved on and will hardly be asked for again. */
void mt_tree_release(mt_tree *tree, size_t group, uint32_t page, bool soon);

/* Pages that mt_tree_take could give. */
size_t mt_tree_available(const mt_tree *tree, size_t group);
size_t mt_tree_total(const mt_tree *tree, size_t group);
size_t mt_tree_nodes(const mt_tree *tree); /* whose pages are here */
uint64_t mt_tree_evictions(const mt_tree *tree);

/* Forgets everything that no sequence holds. */
void mt_tree_clear(mt_tree *tree);

#endif
