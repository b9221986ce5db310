/* The unigram model: of all ways to cut a piece into tokens, the one whose scores have the largest sum. */
#ifndef MT_TEXT_UNIGRAM_H
#define MT_TEXT_UNIGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/trie.h"
#include "text/vocab.h"

typedef struct mt_tok_unigram {
    const mt_tok_vocab *vocab;
    double *scores; /* by id */
    size_t count, cap;
    uint32_t unk; /* MT_TOKEN_NONE for none */
    bool byte_fallback;
    /* derived */
    mt_tok_trie trie;
    double unk_score;
    uint32_t fallback[256];
} mt_tok_unigram;

/* The best way to a place in the piece. */
typedef struct mt_tok_unigram_node {
    double score;
    uint32_t begin; /* of the last token on the way; MT_TOKEN_NONE: there is no way yet */
    uint32_t id;
} mt_tok_unigram_node;

/* Room for the work; zeroed at first. */
typedef struct mt_tok_unigram_work {
    mt_tok_unigram_node *nodes;
    size_t cap;
} mt_tok_unigram_work;

void mt_tok_unigram_finish(mt_tok_unigram *unigram); /* derives what is derived, once the rest is there */
void mt_tok_unigram_free(mt_tok_unigram *unigram);
void mt_tok_unigram_work_free(mt_tok_unigram_work *work);

bool mt_tok_unigram_encode(const mt_tok_unigram *unigram, mt_tok_unigram_work *work, const char *piece, size_t len,
                           mt_ids *out, mt_error *err) MT_NODISCARD;

#endif
