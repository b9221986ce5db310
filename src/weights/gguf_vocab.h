/* The vocabulary in the keys "tokenizer.ggml.*" of a GGUF file, with tokens spelled as tokenizer.json spells them. */
#ifndef MT_WEIGHTS_GGUF_VOCAB_H
#define MT_WEIGHTS_GGUF_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "weights/gguf.h"
#include "weights/gguf_pre.h"

#define MT_GGUF_NO_TOKEN UINT32_MAX

/* The kinds of tokenizers that "tokenizer.ggml.model" names. */
typedef enum mt_gguf_kind {
    MT_GGUF_BYTE_LEVEL, /* "gpt2": BPE over bytes, with merges */
    MT_GGUF_MARKED,     /* "gemma4": BPE over characters with U+2581 for blanks, with merges */
    MT_GGUF_SCORED,     /* "llama": the same with scores instead of merges (SentencePiece) */
    MT_GGUF_WORDPIECE,  /* "bert" */
    MT_GGUF_UNIGRAM     /* "t5" */
} mt_gguf_kind;

/* The kinds of tokens in "tokenizer.ggml.token_type". */
typedef enum mt_gguf_token_type {
    MT_GGUF_UNDEFINED,
    MT_GGUF_NORMAL,
    MT_GGUF_UNKNOWN,
    MT_GGUF_CONTROL,
    MT_GGUF_USER_DEFINED,
    MT_GGUF_UNUSED,
    MT_GGUF_BYTE
} mt_gguf_token_type;

typedef struct mt_gguf_token {
    const char *text; /* not terminated; valid as long as file and vocabulary */
    uint32_t len;     /* 0: there is no token of this id */
    uint8_t type;     /* mt_gguf_token_type */
    bool special;     /* it is left out of decoded text and is not recognised in what users write */
    float score;      /* 0 where the file has none */
} mt_gguf_token;

typedef struct mt_gguf_vocab {
    mt_gguf_kind kind;
    const mt_gguf_pre *pre; /* of byte-level BPE; else NULL */
    mt_gguf_token *tokens;  /* by id */
    size_t count;
    uint32_t *slots; /* a hash table of 1 + id; 0: empty */
    size_t mask;
    mt_arena *arena; /* texts that are not as in the file */
} mt_gguf_vocab;

/* Borrows g until mt_gguf_vocab_free, which has to be called in any case. False with a sentence. */
bool mt_gguf_vocab_read(mt_gguf_vocab *v, const mt_gguf *g, mt_error *err) MT_NODISCARD;
void mt_gguf_vocab_free(mt_gguf_vocab *v);

/* The id of a token, or MT_GGUF_NO_TOKEN. */
uint32_t mt_gguf_vocab_find(const mt_gguf_vocab *v, const char *text, size_t len);

/* The token that a key such as "tokenizer.ggml.bos_token_id" names; *id is MT_GGUF_NO_TOKEN where the file has no such
   key. False with a sentence: the vocabulary has no such id. */
bool mt_gguf_vocab_id(const mt_gguf_vocab *v, const mt_gguf *g, const char *key, uint32_t *id, mt_error *err);

/* Appends the members "normalizer", "pre_tokenizer" and "decoder" of tokenizer.json. */
void mt_gguf_stages_write(const mt_gguf_vocab *v, const mt_gguf *g, mt_buf *out);

/* Appends the member "merges" of tokenizer.json, made of the scores: pieces merge to others from the highest score to
   the lowest. */
bool mt_gguf_merges_derive(const mt_gguf_vocab *v, mt_buf *out, mt_error *err) MT_NODISCARD;

#endif
