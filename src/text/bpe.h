/* Byte-pair encoding: a piece is spelled in single characters, then neighbours are merged, the earliest merge first. */
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

typedef struct mt_tok_bpe {
    const mt_tok_vocab *vocab;
    mt_tok_merges merges;
    bool byte_level; /* pieces are bytes; the vocabulary spells them in the byte-level alphabet */
    bool byte_fallback, fuse_unk, ignore_merges;
    const char *unk_token, *prefix, *suffix; /* NULL for none; prefix of all but a word's first character */
    size_t unk_len, prefix_len, suffix_len;
    /* derived */
    uint32_t singles[256];  /* ids of ASCII characters, or of all bytes when byte_level */
    uint32_t fallback[256]; /* ids of <0x00> to <0xFF> */
    uint32_t unk;
    bool shortcut; /* a piece may be looked up as a whole: see bpe.c */
    bool covers;   /* each byte of a piece comes to be in a token: none is dropped, and no two unknown ones are fused */
    atomic_uchar *whole;
    uint64_t ascii_joints[128][2]; /* characters that occur together in a token; NULL joints: no borders are known */
    uint64_t *joints;
    size_t joint_count, joint_cap;
} mt_tok_bpe;

/* A symbol of the word being merged; they are a list. */
typedef struct mt_tok_symbol {
    uint32_t id;
    uint32_t before, after; /* indices; MT_MERGE_NONE at the ends */
    mt_tok_merge merge;     /* with the next one; rank MT_MERGE_NONE also when this one is gone */
} mt_tok_symbol;

/* Room for the work; zeroed at first. */
typedef struct mt_tok_bpe_work {
    mt_tok_symbol *symbols;
    size_t count, cap;
    uint64_t *heap; /* rank, then index: what may be merged, the first on top */
    size_t heap_count, heap_cap;
    char *spelling; /* of a piece in the byte-level alphabet */
    size_t spelling_cap;
    const atomic_bool *stop; /* may be NULL: once it is set, merging ends early and the symbols mean nothing */
} mt_tok_bpe_work;

void mt_tok_bpe_finish(mt_tok_bpe *bpe); /* derives what is derived, once the rest is there */
void mt_tok_bpe_free(mt_tok_bpe *bpe);
void mt_tok_bpe_work_free(mt_tok_bpe_work *work);

bool mt_tok_bpe_encode(const mt_tok_bpe *bpe, mt_tok_bpe_work *work, const char *piece, size_t len, mt_ids *out,
                       mt_error *err) MT_NODISCARD;

/* Merges the symbols of the work until nothing is left to merge; in bpe_merge.c. */
void mt_tok_bpe_merge(const mt_tok_merges *merges, mt_tok_bpe_work *work);

/* Collects the joints, where borders can be known; in bpe_borders.c. */
void mt_tok_bpe_find_joints(mt_tok_bpe *bpe);
bool mt_tok_bpe_is_border(const mt_tok_bpe *bpe, uint32_t left, uint32_t right);

#endif
