/* The bytes of a vocabulary's tokens, arranged for computing token masks. Made once for a tokenizer; constant, so any
   thread may read it. */
#ifndef MT_CONSTRAINT_VOCABULARY_H
#define MT_CONSTRAINT_VOCABULARY_H

#include "constraint/grammar.h"

typedef struct mt_tokenizer mt_tokenizer; /* text/tokenizer.h */

/* Tokens as a trie in depth-first order: a walk goes from front to back, and skips the nodes below a byte that may not
   follow. */
typedef struct mt_token_trie {
    size_t count; /* number of nodes */
    uint8_t *byte;
    uint16_t *depth; /* number of bytes before this node's */
    uint32_t *skip;  /* next node that is not below this one */
    uint32_t *token; /* [count + 1]: index in ids of the first token that ends at a node */
    uint32_t *ids;
} mt_token_trie;

typedef struct mt_vocabulary {
    size_t size;  /* size of the model's vocabulary: bits of a mask */
    size_t words; /* of a mask */
    /* tokens of plain characters only (grammar.h), and the others; special tokens are in neither */
    mt_token_trie plain, rest;
    uint32_t longest; /* bytes of the longest token */
    uint32_t *upto;   /* [upto_count][words]: masks of plain tokens with at most i + 1 characters */
    size_t upto_count;
    mt_byteset plain_first; /* first bytes of plain characters */
    mt_byteset covered;     /* bytes that are tokens by themselves */
    char *bytes;            /* of token id: bytes begin[id] to begin[id + 1]; special tokens have none */
    uint32_t *begin;        /* [tokens + 1] */
    size_t tokens;
    uint32_t *ends; /* tokens that end an answer */
    size_t end_count;
} mt_vocabulary;

/* size: of the model's vocabulary. Free with mt_vocabulary_free. */
mt_vocabulary *mt_vocabulary_new(const mt_tokenizer *tokenizer, size_t size, const uint32_t *ends, size_t end_count);
void mt_vocabulary_free(mt_vocabulary *v); /* NULL is fine */

/* The bytes of a token; none for special tokens and for ids outside the tokenizer. */
const char *mt_vocabulary_bytes(const mt_vocabulary *v, uint32_t id, size_t *len);
size_t mt_vocabulary_memory(const mt_vocabulary *v); /* bytes of memory */
bool mt_vocabulary_ends(const mt_vocabulary *v, uint32_t id);

#endif
