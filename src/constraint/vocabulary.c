/* The tokens of a vocabulary as tries (vocabulary.h). */
#include "constraint/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/tokenizer.h"
#include "weights/limits.h"

/* A token with its bytes. */
typedef struct entry {
    const char *bytes;
    uint32_t len, id;
} entry;

static int by_bytes(const void *x, const void *y)
{
    const entry *a = x, *b = y;
    const uint32_t len = a->len < b->len ? a->len : b->len;
    const int order = memcmp(a->bytes, b->bytes, len);

    if (order != 0)
        return order;
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static size_t common(const entry *a, const entry *b)
{
    size_t n = 0;

    while (n < a->len && n < b->len && a->bytes[n] == b->bytes[n])
        n++;
    return n;
}

static void trie_alloc(mt_token_trie *t, size_t nodes, size_t tokens)
{
    t->byte = mt_alloc_array(nodes + 1, sizeof(*t->byte));
    t->depth = mt_alloc_array(nodes + 1, sizeof(*t->depth));
    t->skip = mt_alloc_array(nodes + 1, sizeof(*t->skip));
    t->token = mt_alloc_array(nodes + 2, sizeof(*t->token));
    t->ids = mt_alloc_array(tokens + 1, sizeof(*t->ids));
}

static void trie_free(mt_token_trie *t)
{
    mt_free(t->byte);
    mt_free(t->depth);
    mt_free(t->skip);
    mt_free(t->token);
    mt_free(t->ids);
}

/* Builds the trie; sorts the entries. */
static void trie_build(mt_token_trie *t, entry *list, size_t count)
{
    static const entry none = {.bytes = ""};
    size_t nodes = 0, depth = 0;
    /* the nodes on the present path, by depth */
    uint32_t *open = mt_alloc_array(MT_LIMIT_TOKEN_BYTES + 1, sizeof(*open));

    qsort(list, count, sizeof(*list), by_bytes);
    for (size_t i = 0; i < count; i++)
        nodes += list[i].len - common(&list[i], i ? &list[i - 1] : &none);
    trie_alloc(t, nodes, count);
    for (size_t i = 0; i < count; i++) {
        const size_t shared = common(&list[i], i ? &list[i - 1] : &none);

        while (depth > shared)
            t->skip[open[--depth]] = (uint32_t)t->count;
        for (; depth < list[i].len; depth++) {
            open[depth] = (uint32_t)t->count;
            t->byte[t->count] = (uint8_t)list[i].bytes[depth];
            t->depth[t->count] = (uint16_t)depth;
            t->token[t->count++] = (uint32_t)i;
        }
        t->ids[i] = list[i].id;
    }
    while (depth > 0)
        t->skip[open[--depth]] = (uint32_t)t->count;
    t->token[t->count] = (uint32_t)count;
    mt_free(open);
}

/* Whether the bytes are U+2028 or U+2029. */
static bool separates(const char *bytes, size_t len)
{
    return len == 3 && memcmp(bytes, "\xe2\x80", 2) == 0 && (bytes[2] & ~1) == (char)0xa8;
}

/* The number of characters of a token that has only plain ones; else 0. */
static size_t plain_length(const char *bytes, size_t len)
{
    size_t characters = 0;

    for (size_t at = 0, size; at < len; at += size, characters++) {
        size = mt_utf8_length(bytes + at, len - at);
        if (size == 0 || !mt_plain_byte((unsigned char)bytes[at]) || separates(bytes + at, size))
            return 0;
    }
    return characters;
}

/* Reads the bytes of all tokens. A token that is longer than MT_LIMIT_TOKEN_BYTES is left out. */
static void read_tokens(mt_vocabulary *v, const mt_tokenizer *tokenizer)
{
    const size_t known = mt_tokenizer_size(tokenizer);
    mt_buf all;

    v->tokens = known < v->size ? known : v->size;
    v->begin = mt_alloc_array(v->tokens + 1, sizeof(*v->begin));
    mt_buf_init(&all, UINT32_MAX);
    for (uint32_t id = 0; id < v->tokens; id++) {
        const size_t begin = all.len;

        v->begin[id] = (uint32_t)begin;
        if (mt_tokenizer_special(tokenizer, id) || mt_vocabulary_ends(v, id))
            continue;
        if (!mt_tokenizer_bytes(tokenizer, id, &all) || all.len - begin > MT_LIMIT_TOKEN_BYTES - 1)
            all.len = begin;
        if (all.len - begin > v->longest)
            v->longest = (uint32_t)(all.len - begin);
    }
    v->begin[v->tokens] = (uint32_t)all.len;
    v->bytes = all.data;
}

/* Divides the tokens into the two tries. */
static void build_tries(mt_vocabulary *v)
{
    entry *plain = mt_alloc_array(v->tokens + 1, sizeof(*plain)), *rest = mt_alloc_array(v->tokens + 1, sizeof(*rest));
    size_t plain_count = 0, rest_count = 0;

    for (uint32_t id = 0; id < v->tokens; id++) {
        size_t len, characters;
        const char *bytes = mt_vocabulary_bytes(v, id, &len);

        if (len == 0)
            continue;
        if (len == 1)
            mt_byteset_add(&v->covered, (unsigned char)bytes[0], (unsigned char)bytes[0]);
        characters = plain_length(bytes, len);
        if (characters > v->upto_count)
            v->upto_count = characters;
        if (characters > 0)
            plain[plain_count++] = (entry){bytes, (uint32_t)len, id};
        else
            rest[rest_count++] = (entry){bytes, (uint32_t)len, id};
    }
    trie_build(&v->plain, plain, plain_count);
    trie_build(&v->rest, rest, rest_count);
    mt_free(plain);
    mt_free(rest);
}

static void build_masks(mt_vocabulary *v)
{
    v->upto = mt_alloc_array((v->upto_count + 1) * v->words, sizeof(*v->upto));
    for (size_t i = 0; i < v->plain.token[v->plain.count]; i++) {
        const uint32_t id = v->plain.ids[i];
        size_t len;
        const char *bytes = mt_vocabulary_bytes(v, id, &len);

        for (size_t n = plain_length(bytes, len); n <= v->upto_count; n++)
            v->upto[(n - 1) * v->words + id / 32] |= UINT32_C(1) << id % 32;
    }
}

mt_vocabulary *mt_vocabulary_new(const mt_tokenizer *tokenizer, size_t size, const uint32_t *ends, size_t end_count)
{
    mt_vocabulary *v = mt_alloc(sizeof(*v));

    v->size = size;
    v->words = (size + 31) / 32;
    v->ends = mt_alloc_array(end_count + 1, sizeof(*v->ends));
    for (size_t i = 0; i < end_count; i++)
        if (ends[i] < size)
            v->ends[v->end_count++] = ends[i];
    for (unsigned b = 0; b < 256; b++)
        if (mt_plain_byte((unsigned char)b) && (b < 0x80 || b >= 0xc0))
            mt_byteset_add(&v->plain_first, b, b);
    read_tokens(v, tokenizer);
    build_tries(v);
    build_masks(v);
    return v;
}

void mt_vocabulary_free(mt_vocabulary *v)
{
    if (!v)
        return;
    trie_free(&v->plain);
    trie_free(&v->rest);
    mt_free(v->upto);
    mt_free(v->bytes);
    mt_free(v->begin);
    mt_free(v->ends);
    mt_free(v);
}

const char *mt_vocabulary_bytes(const mt_vocabulary *v, uint32_t id, size_t *len)
{
    *len = id < v->tokens ? v->begin[id + 1] - v->begin[id] : 0;
    return *len ? v->bytes + v->begin[id] : "";
}

static size_t trie_memory(const mt_token_trie *t)
{
    return t->count * (sizeof(*t->byte) + sizeof(*t->depth) + sizeof(*t->skip) + sizeof(*t->token)) +
           t->token[t->count] * sizeof(*t->ids);
}

size_t mt_vocabulary_memory(const mt_vocabulary *v)
{
    return sizeof(*v) + trie_memory(&v->plain) + trie_memory(&v->rest) +
           (v->upto_count + 1) * v->words * sizeof(*v->upto) + v->begin[v->tokens] +
           (v->tokens + 1) * sizeof(*v->begin) + v->end_count * sizeof(*v->ends);
}

bool mt_vocabulary_ends(const mt_vocabulary *v, uint32_t id)
{
    for (size_t i = 0; i < v->end_count; i++)
        if (v->ends[i] == id)
            return true;
    return false;
}
