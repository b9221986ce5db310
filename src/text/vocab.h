/* A vocabulary: maps the strings of tokens to ids.
   The strings are in one block of memory, in the order in which they were added; a hash table, at most half full, finds
   them. */
#ifndef MT_TEXT_VOCAB_H
#define MT_TEXT_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/hash_key.h"

#define MT_TOK_NOT_THERE SIZE_MAX

typedef struct mt_tok_vocab {
    char *bytes;
    size_t used, room; /* bytes of the block that are used, and its size */
    uint32_t *begins;  /* [count + 1] offset of each string in the block */
    uint32_t *ids;     /* [count] */
    size_t count, cap;
    uint64_t *slots; /* hash table: the upper half of a hash, and 1 + the index of the string; 0: empty */
    size_t mask;
    mt_hash_key key;   /* as files choose the strings */
    size_t longest;    /* bytes of the longest spelling */
    uint32_t id_limit; /* 1 + the largest id */
} mt_tok_vocab;

void mt_tok_vocab_free(mt_tok_vocab *vocab); /* a struct of zero bytes is fine */

/* Adds a string, or gives a string that is present the new id. False: *err; the string, the id or the number of strings
   exceeds its limit. */
bool mt_tok_vocab_add(mt_tok_vocab *vocab, const char *s, size_t len, uint32_t id, mt_error *err) MT_NODISCARD;

/* The index of a string, less than count; MT_TOK_NOT_THERE: it is not present. */
size_t mt_tok_vocab_index(const mt_tok_vocab *vocab, const char *s, size_t len);
uint32_t mt_tok_vocab_id(const mt_tok_vocab *vocab, const char *s, size_t len); /* or MT_TOKEN_NONE */

/* The string at an index; not NUL-terminated. */
static inline const char *mt_tok_vocab_text(const mt_tok_vocab *vocab, size_t index, size_t *len)
{
    *len = vocab->begins[index + 1] - vocab->begins[index];
    return *len ? vocab->bytes + vocab->begins[index] : ""; /* the block is NULL while all strings are empty */
}

#endif
