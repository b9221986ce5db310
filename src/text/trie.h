/* A set of byte strings, each with a value, to find those that a text begins with. Built once from a sorted list. */
#ifndef MT_TEXT_TRIE_H
#define MT_TEXT_TRIE_H

#include <stddef.h>
#include <stdint.h>

#define MT_TRIE_NONE UINT32_MAX /* no such node; no value */

typedef struct mt_tok_entry {
    const char *str;
    uint32_t len;
    uint32_t value; /* not MT_TRIE_NONE */
} mt_tok_entry;

/* The children of a node stand side by side, ordered by their byte. */
typedef struct mt_tok_trie_node {
    uint32_t children; /* the first of them */
    uint32_t value;
    uint16_t count; /* 0 to 256 */
    unsigned char byte;
} mt_tok_trie_node;

typedef struct mt_tok_trie {
    mt_tok_trie_node *nodes; /* the root first; NULL when the trie is empty */
    size_t count;
    uint32_t first[256]; /* the root's child for each byte */
} mt_tok_trie;

/* Sorts the entries. Of equal strings the one with the largest value counts. Free with mt_tok_trie_free. */
void mt_tok_trie_build(mt_tok_trie *trie, mt_tok_entry *entries, size_t count);
void mt_tok_trie_free(mt_tok_trie *trie);

/* The child for a byte, or MT_TRIE_NONE. mt_tok_trie_enter is the same for the root. */
uint32_t mt_tok_trie_step(const mt_tok_trie *trie, uint32_t node, unsigned char byte);

static inline uint32_t mt_tok_trie_enter(const mt_tok_trie *trie, unsigned char byte)
{
    return trie->nodes ? trie->first[byte] : MT_TRIE_NONE;
}

#endif
