/* The bytes of a vocabulary's tokens, laid out for computing masks. Made once for a tokenizer; it does not change,
   and any thread may read it. */
#ifndef MT_SAMPLE_CONSTRAINT_VOCABULARY_H
#define MT_SAMPLE_CONSTRAINT_VOCABULARY_H

#include "sample/constraint/grammar.h"
#include "text/tokenizer.h"

/* Tokens by their bytes, depth first: a walk goes from front to back and jumps over what begins with a byte that may
   not come. */
typedef struct mt_token_trie {
    size_t count; /* nodes */
    uint8_t *byte;
    uint16_t *depth; /* the number of bytes before this one */
    uint32_t *skip;  /* the next node that is not below */
    uint32_t *token; /* [count + 1] where in ids the tokens that end here begin */
    uint32_t *ids;
} mt_token_trie;

typedef struct mt_vocabulary {
    size_t size;               /* of the model: masks have so many bits */
    size_t words;              /* of a mask */
    mt_token_trie plain, rest; /* tokens made of plain characters alone, and the others; special ones are in neither */
    uint32_t longest;          /* bytes of the longest token */
    uint32_t *upto;            /* [upto_count][words]: plain tokens of at most i + 1 characters */
    size_t upto_count;
    mt_byteset plain_first; /* bytes that plain characters begin with */
    mt_byteset covered;     /* bytes that are a token */
    char *bytes;            /* of token id: from begin[id] to begin[id + 1]; special ones have none */
    uint32_t *begin;        /* [tokens + 1] */
    size_t tokens;
    uint32_t *ends; /* tokens that end an answer */
    size_t end_count;
} mt_vocabulary;

/* size: of the model's vocabulary. Free with mt_vocabulary_free. */
mt_vocabulary *mt_vocabulary_new(const mt_tokenizer *tokenizer, size_t size, const uint32_t *ends, size_t end_count);
void mt_vocabulary_free(mt_vocabulary *v); /* NULL is fine */

/* The bytes of a token; none for special ones and those beyond. */
const char *mt_vocabulary_bytes(const mt_vocabulary *v, uint32_t id, size_t *len);
size_t mt_vocabulary_memory(const mt_vocabulary *v); /* bytes that it takes */
bool mt_vocabulary_ends(const mt_vocabulary *v, uint32_t id);

#endif
