/* A vocabulary: spellings and their ids, found either way.

   Spellings stand one behind another in one block, in the order in which they were added; a table of slots, at most
   half full, finds them by hash. */
#ifndef MT_TEXT_VOCAB_H
#define MT_TEXT_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

#define MT_TOK_NOT_THERE SIZE_MAX

typedef struct mt_tok_vocab {
    char *bytes;
    size_t used, room; /* of bytes */
    uint32_t *begins;  /* count + 1 */
    uint32_t *ids;
    size_t count, cap;
    uint64_t *slots; /* the upper half of a hash, and the index + 1 */
    size_t mask;
    size_t longest;    /* bytes of the longest spelling */
    uint32_t id_limit; /* one more than the largest id */
} mt_tok_vocab;

void mt_tok_vocab_free(mt_tok_vocab *vocab); /* of a zeroed one or one that was filled */

/* A spelling that is there already gets the new id. */
bool mt_tok_vocab_add(mt_tok_vocab *vocab, const char *s, size_t len, uint32_t id, mt_error *err) MT_NODISCARD;

/* The index of a spelling, below count, or MT_TOK_NOT_THERE. */
size_t mt_tok_vocab_index(const mt_tok_vocab *vocab, const char *s, size_t len);
uint32_t mt_tok_vocab_id(const mt_tok_vocab *vocab, const char *s, size_t len); /* or MT_TOKEN_NONE */

static inline const char *mt_tok_vocab_text(const mt_tok_vocab *vocab, size_t index, size_t *len)
{
    *len = vocab->begins[index + 1] - vocab->begins[index];
    return *len ? vocab->bytes + vocab->begins[index] : ""; /* there may be no bytes at all */
}

#endif
