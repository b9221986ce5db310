/* Tells a listener (src/events) which whole pages are resident. A node that was told has a digest of all text up to its
   end, whose first bytes are its hash: the same text has the same hash in every process with the same seed. Pages that
   are not whole are not told, since they change with every step. */
#include <string.h>

#include "base/alloc.h"
#include "cache/tree_inside.h"
#include "media/digest.h"

void mt_tree_tell(mt_tree *t, const uint8_t seed[32], mt_tree_listener *tell, void *ctx)
{
    t->tell = tell;
    t->told = ctx;
    memcpy(t->seed, seed, sizeof(t->seed));
    if (!t->digest)
        t->digest = mt_alloc_array(t->total, sizeof(*t->digest));
}

uint64_t mt_tree_block_hash(const uint8_t digest[32])
{
    uint64_t hash = 0;
    for (size_t i = 0; i < 8; i++)
        hash = hash << 8 | digest[i];
    return hash;
}

void mt_tree_name_root(mt_node *root, const char *name)
{
    if (!root->name)
        root->name = mt_strdup(name);
}

static uint8_t *digest_of(const mt_tree *t, const mt_node *n)
{
    return t->digest[n - t->nodes];
}

static mt_tree_block describe(const mt_tree *t, const mt_node *n)
{
    static const uint8_t none[32];
    const bool first = !n->parent->parent, salted = first && memcmp(n->parent->salt, none, sizeof(none)) != 0;
    return (mt_tree_block){.hash = mt_tree_block_hash(digest_of(t, n)),
                           .parent = first ? 0 : mt_tree_block_hash(digest_of(t, n->parent)),
                           .first = first,
                           .key = n->key,
                           .figure = n->figure,
                           .figures = n->figures,
                           .salt = salted ? n->parent->salt : NULL,
                           .salt_name = salted ? n->parent->name : NULL};
}

void mt_tree_tell_here(mt_tree *t, mt_node *n)
{
    const mt_page_text p = mt_node_page_text(n);
    uint8_t root[32];
    if (!t->tell)
        return;
    if (!n->parent->parent)
        mt_digest(root, (mt_digest_part[]){{t->seed, sizeof(t->seed)}, {n->parent->salt, sizeof(n->parent->salt)}}, 2);
    mt_page_text_digest(&p, MT_PAGE_TOKENS, n->parent->parent ? digest_of(t, n->parent) : root, digest_of(t, n));
    n->told = true;
    const mt_tree_block b = describe(t, n);
    t->tell(t->told, &b, true);
}

void mt_tree_tell_gone(mt_tree *t, mt_node *n)
{
    if (!n->told)
        return;
    n->told = false;
    const mt_tree_block b = describe(t, n);
    t->tell(t->told, &b, false);
}

bool mt_tree_block_of(const mt_tree *t, uint32_t page, mt_tree_block *out)
{
    const mt_node *n = t->owner[0][page];
    if (!n || !n->told)
        return false;
    *out = describe(t, n);
    return true;
}

/* The next resident node in a walk through all that are below a root; NULL at the end. */
static const mt_node *walk(const mt_node *n)
{
    if (n->child[1])
        return n->child[1];
    for (; n->parent; n = n->parent)
        if (n->older)
            return n->older;
    return NULL;
}

void mt_tree_each(const mt_tree *t, void (*each)(void *ctx, const mt_tree_block *block), void *ctx)
{
    for (size_t i = 0; i < t->buckets; i++)
        for (const mt_node *root = t->bucket[i]; root; root = root->chain)
            for (const mt_node *n = root->parent ? NULL : walk(root); n; n = walk(n))
                if (n->told) {
                    const mt_tree_block b = describe(t, n);
                    each(ctx, &b);
                }
}
