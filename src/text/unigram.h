/* The unigram model: of all ways to cut a piece into tokens, it chooses the one with the largest sum of scores. */
#ifndef MT_TEXT_UNIGRAM_H
#define MT_TEXT_UNIGRAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/trie.h"
#include "text/vocab.h"

/* Does not change after mt_tok_unigram_finish, so that all threads may share it. */
typedef struct mt_tok_unigram {
    const mt_tok_vocab *vocab;
    double *scores; /* [count] by id */
    size_t count, cap;
    uint32_t unk; /* the unknown token; MT_TOKEN_NONE: none */
    bool byte_fallback;
    /* Set by mt_tok_unigram_finish. */
    mt_tok_trie trie;
    double unk_score;       /* of an unknown character */
    uint32_t fallback[256]; /* ids of the tokens "<0x00>" to "<0xFF>" */
} mt_tok_unigram;

/* The best sequence of tokens that ends at a byte of the piece. */
typedef struct mt_tok_unigram_node {
    double score;
    uint32_t begin; /* of the last token in the sequence; MT_TOKEN_NONE: there is no sequence yet */
    uint32_t id;    /* of the last token */
} mt_tok_unigram_node;

/* Memory that one thread reuses between calls; all zero bytes at first. */
typedef struct mt_tok_unigram_work {
    mt_tok_unigram_node *nodes;
    size_t cap;
    const atomic_bool *stop; /* once it is true, the tokens of a piece are not found any more; may be NULL */
} mt_tok_unigram_work;

/* Computes the derived fields, after all others are set. False: *err. */
bool mt_tok_unigram_finish(mt_tok_unigram *unigram, mt_error *err) MT_NODISCARD;
void mt_tok_unigram_free(mt_tok_unigram *unigram);
void mt_tok_unigram_work_free(mt_tok_unigram_work *work);

/* Appends the tokens of one piece to `out`; none where work->stop is true. False: *err. */
bool mt_tok_unigram_encode(const mt_tok_unigram *unigram, mt_tok_unigram_work *work, const char *piece, size_t len,
                           mt_ids *out, mt_error *err) MT_NODISCARD;

#endif
