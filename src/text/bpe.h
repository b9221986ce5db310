/* Byte-pair encoding (BPE): a piece of text is split into characters; then, again and again, the pair of neighbours
   with the lowest rank in the list of merges becomes one token. */
#ifndef MT_TEXT_BPE_H
#define MT_TEXT_BPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "text/merges.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

/* A BPE model. Does not change after mt_tok_bpe_finish, so that all threads may share it. */
typedef struct mt_tok_bpe {
    const mt_tok_vocab *vocab;
    mt_tok_merges merges;
    /* Pieces are bytes, while the vocabulary has the characters of the byte-level alphabet (bytelevel.h) */
    bool byte_level;
    bool byte_fallback, fuse_unk, ignore_merges;
    /* NULL: none; borrowed; the prefix is of every character of a word but the first, the suffix of the last */
    const char *unk_token, *prefix, *suffix;
    size_t unk_len, prefix_len, suffix_len;
    /* Set by mt_tok_bpe_finish. */
    uint32_t singles[256];  /* ids of the ASCII characters; of all bytes if byte_level */
    uint32_t fallback[256]; /* ids of the tokens "<0x00>" to "<0xFF>" */
    uint32_t unk;           /* id of unk_token, or MT_TOKEN_NONE */
    bool shortcut;          /* a word may be looked up as a whole before it is split, see bpe.c */
    /* Every byte of a piece is part of some token: none is dropped, and unknown characters are not fused */
    bool covers;
    atomic_uchar *whole; /* [vocab->count] what bpe.c has found out about each token, see there */
    /* Bits of pairs of ASCII characters that are neighbours in some token, see bpe_borders.c */
    uint64_t ascii_joints[128][2];
    uint64_t *joints; /* hash table of all other such pairs; NULL: borders are not used */
    size_t joint_count, joint_cap;
} mt_tok_bpe;

/* A part of the word that is being merged. The symbols of a word form a doubly linked list. */
typedef struct mt_tok_symbol {
    uint32_t id;
    uint32_t before, after; /* indices of the neighbours; MT_MERGE_NONE at the ends */
    /* Of this symbol with the next; rank MT_MERGE_NONE: they do not merge, or this symbol was merged away */
    mt_tok_merge merge;
} mt_tok_symbol;

/* Memory that one thread reuses between calls; all zero bytes at first. Free with mt_tok_bpe_work_free. */
typedef struct mt_tok_bpe_work {
    mt_tok_symbol *symbols;
    size_t count, cap;
    /* Pairs that may be merged, as rank << 32 | index of the left symbol; the smallest first */
    uint64_t *heap;
    size_t heap_count, heap_cap;
    char *spelling; /* the current word in the byte-level alphabet */
    size_t spelling_cap;
    /* May be NULL; where another thread sets it, merging stops early and the symbols are meaningless */
    const atomic_bool *stop;
} mt_tok_bpe_work;

void mt_tok_bpe_finish(mt_tok_bpe *bpe); /* computes the derived fields, after all others are set */
void mt_tok_bpe_free(mt_tok_bpe *bpe);
void mt_tok_bpe_work_free(mt_tok_bpe_work *work);

/* Appends the tokens of one piece to `out`. False: *err, the vocabulary lacks unk_token. */
bool mt_tok_bpe_encode(const mt_tok_bpe *bpe, mt_tok_bpe_work *work, const char *piece, size_t len, mt_ids *out,
                       mt_error *err) MT_NODISCARD;

/* Merges work->symbols until no pair can be merged. In bpe_merge.c. */
void mt_tok_bpe_merge(const mt_tok_merges *merges, mt_tok_bpe_work *work);

/* Fills the tables of neighbours, if the model allows borders. In bpe_borders.c. */
void mt_tok_bpe_find_joints(mt_tok_bpe *bpe);
/* Whether a text may be cut between these two characters without a change of its tokens. */
bool mt_tok_bpe_is_border(const mt_tok_bpe *bpe, uint32_t left, uint32_t right);

#endif
