/* See vocab.h. */
#include "text/vocab.h"

#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer.h"
#include "weights/limits.h"

enum { FIRST_CAP = 256 };

void mt_tok_vocab_free(mt_tok_vocab *vocab)
{
    mt_free(vocab->bytes);
    mt_free(vocab->begins);
    mt_free(vocab->ids);
    mt_free(vocab->slots);
    *vocab = (mt_tok_vocab){0};
}

static uint64_t slot_of(uint64_t hash, size_t index)
{
    return (hash & 0xFFFFFFFF00000000u) | (uint64_t)(index + 1);
}

/* The slot of the string, or the empty slot where it belongs. */
static size_t find_slot(const mt_tok_vocab *vocab, uint64_t hash, const char *s, size_t len)
{
    size_t at = (size_t)hash & vocab->mask;

    for (; vocab->slots[at]; at = (at + 1) & vocab->mask) {
        size_t index = (size_t)(uint32_t)vocab->slots[at] - 1, there;
        const char *text;

        if ((vocab->slots[at] ^ hash) >> 32)
            continue;
        text = mt_tok_vocab_text(vocab, index, &there);
        if (there == len && memcmp(text, s, len) == 0)
            break;
    }
    return at;
}

/* Doubles the arrays and the hash table. */
static void grow(mt_tok_vocab *vocab)
{
    size_t cap = vocab->cap ? vocab->cap * 2 : FIRST_CAP;

    if (vocab->cap == 0)
        vocab->key = mt_hash_key_draw();
    vocab->begins = mt_realloc(vocab->begins, vocab->cap ? (vocab->cap + 1) * sizeof(*vocab->begins) : 0,
                               (cap + 1) * sizeof(*vocab->begins));
    vocab->ids = mt_realloc(vocab->ids, vocab->cap * sizeof(*vocab->ids), cap * sizeof(*vocab->ids));
    mt_free(vocab->slots);
    vocab->slots = mt_alloc_array(2 * cap, sizeof(*vocab->slots));
    vocab->mask = 2 * cap - 1;
    vocab->cap = cap;
    for (size_t i = 0; i < vocab->count; i++) {
        size_t len;
        const char *text = mt_tok_vocab_text(vocab, i, &len);
        uint64_t hash = mt_hash_bytes(vocab->key, text, len);
        size_t at = (size_t)hash & vocab->mask;

        while (vocab->slots[at])
            at = (at + 1) & vocab->mask;
        vocab->slots[at] = slot_of(hash, i);
    }
}

static void keep_text(mt_tok_vocab *vocab, const char *s, size_t len)
{
    vocab->bytes = mt_grow(vocab->bytes, &vocab->room, vocab->used + len, 1);
    if (len > 0)
        memcpy(vocab->bytes + vocab->used, s, len);
    vocab->used += len;
}

bool mt_tok_vocab_add(mt_tok_vocab *vocab, const char *s, size_t len, uint32_t id, mt_error *err)
{
    uint64_t hash;
    size_t at, index = vocab->count;

    if (len > MT_LIMIT_TOKEN_BYTES)
        return mt_fail(err, MT_E_TOO_LARGE, "it has a token of %zu bytes; at most %d are read", len,
                       MT_LIMIT_TOKEN_BYTES);
    if (id >= MT_LIMIT_VOCAB)
        return mt_fail(err, MT_E_TOO_LARGE, "it has a token with the id %u; ids must be below %u", id, MT_LIMIT_VOCAB);
    if (vocab->count == vocab->cap)
        grow(vocab);
    hash = mt_hash_bytes(vocab->key, s, len);
    at = find_slot(vocab, hash, s, len);
    if (vocab->slots[at]) {
        index = (size_t)(uint32_t)vocab->slots[at] - 1;
    } else {
        if (vocab->count == MT_LIMIT_VOCAB)
            return mt_fail(err, MT_E_TOO_LARGE, "it has more than %u tokens", MT_LIMIT_VOCAB);
        keep_text(vocab, s, len);
        vocab->begins[++vocab->count] = (uint32_t)vocab->used;
        vocab->slots[at] = slot_of(hash, index);
    }
    vocab->ids[index] = id;
    vocab->longest = len > vocab->longest ? len : vocab->longest;
    vocab->id_limit = id >= vocab->id_limit ? id + 1 : vocab->id_limit;
    return true;
}

size_t mt_tok_vocab_index(const mt_tok_vocab *vocab, const char *s, size_t len)
{
    size_t at;

    if (len > vocab->longest || vocab->count == 0)
        return MT_TOK_NOT_THERE;
    at = find_slot(vocab, mt_hash_bytes(vocab->key, s, len), s, len);
    return vocab->slots[at] ? (size_t)(uint32_t)vocab->slots[at] - 1 : MT_TOK_NOT_THERE;
}

uint32_t mt_tok_vocab_id(const mt_tok_vocab *vocab, const char *s, size_t len)
{
    size_t index = mt_tok_vocab_index(vocab, s, len);

    return index == MT_TOK_NOT_THERE ? MT_TOKEN_NONE : vocab->ids[index];
}
