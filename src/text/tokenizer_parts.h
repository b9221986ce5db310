/* The inside of a tokenizer; only for files of this folder. */
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

/* A token as decoding needs it. */
typedef struct mt_tok_token {
    const char *text; /* NULL: the id is unused; in the arena or the vocabulary */
    uint32_t len;
    bool special;
} mt_tok_token;

struct mt_tokenizer {
    mt_arena *arena; /* the sections of the file, and the strings of added tokens */
    mt_tok_words words;
    mt_tok_added added;
    mt_tok_normalizer normalizer;
    mt_tok_pretokenizer pre;
    mt_tok_post post;
    mt_tok_decoder decoder;
    mt_tok_token *tokens; /* [size] by id */
    size_t size;
};

/* Reads tokenizer.json into *t, which is zero but for the arena. In tokenizer_read.c. False: *err. */
bool mt_tokenizer_read(mt_tokenizer *t, const char *json, size_t len, mt_error *err) MT_NODISCARD;

#endif
