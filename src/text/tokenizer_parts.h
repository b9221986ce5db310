/* What a tokenizer is made of; for the files of this folder only. */
#ifndef MT_TEXT_TOKENIZER_PARTS_H
#define MT_TEXT_TOKENIZER_PARTS_H

#include "base/arena.h"
#include "text/added.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/postprocessor.h"
#include "text/pretokenizer.h"
#include "text/tokenizer.h"
#include "text/words.h"

/* A token by its id: what decoders get. */
typedef struct mt_tok_token {
    const char *text; /* NULL: no token has this id */
    uint32_t len;
    bool special;
} mt_tok_token;

struct mt_tokenizer {
    mt_arena *arena; /* settings, texts of added tokens */
    mt_tok_words words;
    mt_tok_added added;
    mt_tok_normalizer normalizer;
    mt_tok_pretokenizer pre;
    mt_tok_post post;
    mt_tok_decoder decoder;
    mt_tok_token *tokens;
    size_t size;
};

/* Reads tokenizer.json into a zeroed tokenizer with an arena; in tokenizer_read.c. */
bool mt_tokenizer_read(mt_tokenizer *t, const char *json, size_t len, mt_error *err) MT_NODISCARD;

#endif
