/* See trie.h. */
#include "text/trie.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/limits.h"

static int by_string(const void *a, const void *b)
{
    const mt_tok_entry *x = a, *y = b;
    size_t len = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->str, y->str, len);

    if (order)
        return order;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* The entries below a node whose children are not made yet: entries[begin, end), which share `depth` bytes. */
typedef struct span {
    size_t begin, end;
    uint32_t depth;
} span;

typedef struct builder {
    mt_tok_trie *trie;
    const mt_tok_entry *entries;
    span *spans; /* one for each node */
    size_t cap;
} builder;

static void add_node(builder *b, unsigned char byte, span s)
{
    mt_tok_trie *trie = b->trie;
    size_t cap = b->cap; /* of both lists */

    trie->nodes = mt_grow(trie->nodes, &cap, trie->count + 1, sizeof(*trie->nodes));
    b->spans = mt_grow(b->spans, &b->cap, trie->count + 1, sizeof(*b->spans));
    trie->nodes[trie->count] = (mt_tok_trie_node){.byte = byte, .value = MT_TRIE_NONE};
    b->spans[trie->count++] = s;
}

static void add_children(builder *b, size_t node)
{
    span s = b->spans[node];
    size_t first = b->trie->count;

    while (s.begin < s.end && b->entries[s.begin].len == s.depth)
        b->trie->nodes[node].value = b->entries[s.begin++].value;
    while (s.begin < s.end) {
        unsigned char byte = (unsigned char)b->entries[s.begin].str[s.depth];
        size_t end = s.begin + 1;

        while (end < s.end && (unsigned char)b->entries[end].str[s.depth] == byte)
            end++;
        add_node(b, byte, (span){s.begin, end, s.depth + 1});
        s.begin = end;
    }
    b->trie->nodes[node].children = (uint32_t)first;
    b->trie->nodes[node].count = (uint16_t)(b->trie->count - first);
}

bool mt_tok_trie_build(mt_tok_trie *trie, mt_tok_entry *entries, size_t count, mt_error *err)
{
    builder b = {.trie = trie, .entries = entries};

    *trie = (mt_tok_trie){0};
    if (count == 0)
        return true;
    qsort(entries, count, sizeof(*entries), by_string);
    add_node(&b, 0, (span){0, count, 0});
    for (size_t node = 0; node < trie->count && trie->count <= MT_LIMIT_TRIE_NODES; node++)
        add_children(&b, node);
    mt_free(b.spans);
    if (trie->count > MT_LIMIT_TRIE_NODES)
        return mt_fail(
            err, MT_E_TOO_LARGE,
            "its tokens have more than %u different beginnings, which no real tokenizer has; download the file "
            "again",
            MT_LIMIT_TRIE_NODES);
    memset(trie->first, 0xFF, sizeof(trie->first));
    for (uint32_t i = 0; i < trie->nodes[0].count; i++)
        trie->first[trie->nodes[trie->nodes[0].children + i].byte] = trie->nodes[0].children + i;
    return true;
}

void mt_tok_trie_free(mt_tok_trie *trie)
{
    mt_free(trie->nodes);
    *trie = (mt_tok_trie){0};
}

uint32_t mt_tok_trie_step(const mt_tok_trie *trie, uint32_t node, unsigned char byte)
{
    uint32_t begin = trie->nodes[node].children, end = begin + trie->nodes[node].count;

    while (end - begin > 8) {
        uint32_t middle = begin + (end - begin) / 2;

        if (trie->nodes[middle].byte <= byte)
            begin = middle;
        else
            end = middle;
    }
    for (; begin < end; begin++)
        if (trie->nodes[begin].byte == byte)
            return begin;
    return MT_TRIE_NONE;
}
