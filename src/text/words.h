/* The model of a tokenizer: it makes tokens of a piece. Four kinds, one vocabulary. */
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

typedef struct mt_tok_words {
    mt_tok_kind kind;
    mt_tok_vocab vocab;
    size_t size; /* tokens, as the file counts them */
    mt_tok_bpe bpe;
    mt_tok_unigram unigram;
    mt_tok_wordpiece wordpiece;
} mt_tok_words;

/* Room for the work; zeroed at first. */
typedef struct mt_tok_words_work {
    mt_tok_bpe_work bpe;
    mt_tok_unigram_work unigram;
} mt_tok_words_work;

/* Reads the object "model", which comes next. Merges that stand before what they need cannot be read yet: then *again
   is set, and mt_tok_words_read_merges must be called with a second reader. Strings live in the arena. */
bool mt_tok_words_read(mt_tok_words *words, mt_json_reader *json, mt_arena *arena, bool *again,
                       mt_error *err) MT_NODISCARD;
bool mt_tok_words_read_merges(mt_tok_words *words, mt_json_reader *json, mt_error *err) MT_NODISCARD;

/* Derives what is derived. byte_level: pieces will be bytes. */
void mt_tok_words_finish(mt_tok_words *words, bool byte_level);
void mt_tok_words_free(mt_tok_words *words); /* a zeroed one is fine */
void mt_tok_words_work_free(mt_tok_words_work *work);

/* Tokens that a piece of so many bytes has at least, as far as that is known without looking at it. */
size_t mt_tok_words_least(const mt_tok_words *words, size_t len);

bool mt_tok_words_encode(const mt_tok_words *words, mt_tok_words_work *work, const char *piece, size_t len, mt_ids *out,
                         mt_error *err) MT_NODISCARD;

#endif
