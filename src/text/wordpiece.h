/* WordPiece: the longest token a word begins with, then the longest its rest begins with, and so on. WordLevel: the
   word is a token or unknown. */
#ifndef MT_TEXT_WORDPIECE_H
#define MT_TEXT_WORDPIECE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

typedef struct mt_tok_wordpiece {
    const mt_tok_vocab *vocab;
    bool whole_words;               /* WordLevel */
    const char *unk_token, *prefix; /* prefix: of a token that goes on with a word */
    size_t unk_len, prefix_len;
    size_t most_chars; /* of a word that is looked at */
} mt_tok_wordpiece;

bool mt_tok_wordpiece_encode(const mt_tok_wordpiece *model, const char *word, size_t len, mt_ids *out,
                             mt_error *err) MT_NODISCARD;

#endif
