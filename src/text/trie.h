/* A trie: a set of byte strings with values, to find those that a text begins with. It does not change after
   mt_tok_trie_build. */
#ifndef MT_TEXT_TRIE_H
#define MT_TEXT_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MT_TRIE_NONE UINT32_MAX /* as a node: none; as a value: the node is not the end of a string */

typedef struct mt_tok_entry {
    const char *str;
    uint32_t len;
    uint32_t value; /* not MT_TRIE_NONE */
} mt_tok_entry;

/* The children of a node are consecutive, sorted by byte. */
typedef struct mt_tok_trie_node {
    uint32_t children; /* index of the first child */
    uint32_t value;
    uint16_t count; /* 0 to 256 */
    unsigned char byte;
} mt_tok_trie_node;

typedef struct mt_tok_trie {
    mt_tok_trie_node *nodes; /* the first is the root; NULL: the trie is empty */
    size_t count;
    uint32_t first[256]; /* by byte: the index of the root's child, or MT_TRIE_NONE */
} mt_tok_trie;

/* Sorts the entries. Of equal strings the largest value counts. False: *err. Free with mt_tok_trie_free also then. */
bool mt_tok_trie_build(mt_tok_trie *trie, mt_tok_entry *entries, size_t count, mt_error *err) MT_NODISCARD;
void mt_tok_trie_free(mt_tok_trie *trie);

/* The child of a node for a byte, or MT_TRIE_NONE. mt_tok_trie_enter does the same for the root. */
uint32_t mt_tok_trie_step(const mt_tok_trie *trie, uint32_t node, unsigned char byte);

static inline uint32_t mt_tok_trie_enter(const mt_tok_trie *trie, unsigned char byte)
{
    return trie->nodes ? trie->first[byte] : MT_TRIE_NONE;
}

#endif
