/* The model of a tokenizer: turns pieces of text into tokens. There are four kinds, which share the vocabulary. */
#ifndef MT_TEXT_WORDS_H
#define MT_TEXT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json_reader.h"
#include "text/bpe.h"
#include "text/unigram.h"
#include "text/vocab.h"
#include "text/wordpiece.h"

typedef enum mt_tok_kind { MT_TOK_BPE, MT_TOK_UNIGRAM, MT_TOK_WORDPIECE, MT_TOK_WORDLEVEL } mt_tok_kind;

/* The field of the kind is used; wordpiece also for WordLevel. */
typedef struct mt_tok_words {
    mt_tok_kind kind;
    mt_tok_vocab vocab;
    size_t size; /* number of tokens in the file */
    mt_tok_bpe bpe;
    mt_tok_unigram unigram;
    mt_tok_wordpiece wordpiece;
} mt_tok_words;

/* Memory that one thread reuses between calls; all zero bytes at first. */
typedef struct mt_tok_words_work {
    mt_tok_bpe_work bpe;
    mt_tok_unigram_work unigram;
    const atomic_bool *stop; /* for WordPiece; may be NULL */
} mt_tok_words_work;

/* Reads the object "model" from the reader; strings are copied to the arena. Merges that come before the vocabulary
   cannot be read yet: then *again is set, and mt_tok_words_read_merges must be called with a second reader at the
   merges. False: *err. */
bool mt_tok_words_read(mt_tok_words *words, mt_json_reader *json, mt_arena *arena, bool *again,
                       mt_error *err) MT_NODISCARD;
bool mt_tok_words_read_merges(mt_tok_words *words, mt_json_reader *json, mt_error *err) MT_NODISCARD;

/* Computes the derived fields. byte_level: pieces will be bytes. False: *err. */
bool mt_tok_words_finish(mt_tok_words *words, bool byte_level, mt_error *err) MT_NODISCARD;
void mt_tok_words_free(mt_tok_words *words); /* a struct of zero bytes is fine */
void mt_tok_words_work_free(mt_tok_words_work *work);

/* A lower bound for the number of tokens of a piece of `len` bytes, without reading it. */
size_t mt_tok_words_least(const mt_tok_words *words, size_t len);

/* Appends the tokens of one piece to `out`. False: *err. */
bool mt_tok_words_encode(const mt_tok_words *words, mt_tok_words_work *work, const char *piece, size_t len, mt_ids *out,
                         mt_error *err) MT_NODISCARD;

#endif
