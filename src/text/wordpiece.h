/* WordPiece: the longest token that a word begins with, then the longest that the rest begins with, and so on.
   WordLevel: a word is one token or unknown. */
#ifndef MT_TEXT_WORDPIECE_H
#define MT_TEXT_WORDPIECE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

/* Borrows all pointers. */
typedef struct mt_tok_wordpiece {
    const mt_tok_vocab *vocab;
    bool whole_words;               /* WordLevel */
    const char *unk_token, *prefix; /* prefix: what the vocabulary has before tokens that do not begin a word */
    size_t unk_len, prefix_len;
    size_t most_chars; /* longer words become the unknown token */
} mt_tok_wordpiece;

/* Appends the tokens of one word to `out`; an unknown one where *stop, which may be NULL, is true. False: *err. */
bool mt_tok_wordpiece_encode(const mt_tok_wordpiece *model, const char *word, size_t len, const atomic_bool *stop,
                             mt_ids *out, mt_error *err) MT_NODISCARD;

#endif
