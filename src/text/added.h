/* Added tokens: those that are cut out of a text before anything else looks at it. Some are matched in the text as
   it is, some (normalized) in what the normalizer makes of it. */
#ifndef MT_TEXT_ADDED_H
#define MT_TEXT_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json_reader.h"
#include "text/flow.h"
#include "text/part.h"
#include "text/trie.h"
#include "text/vocab.h"

typedef struct mt_tok_added_token {
    const char *content; /* as the file has it */
    uint32_t content_len;
    uint32_t form_len;
    const char *form; /* what is looked for, and what decoders get: the content, normalized where that is wanted */
    uint32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
} mt_tok_added_token;

typedef struct mt_tok_added {
    mt_tok_added_token *tokens; /* in the file's order; a token that was named again is gone */
    size_t count, cap;
    mt_tok_vocab vocab;      /* contents to ids */
    mt_tok_trie raw, formed; /* values are indices of tokens */
    bool has_formed_special; /* the marks of a text matter */
} mt_tok_added;

void mt_tok_added_free(mt_tok_added *added); /* a zeroed one is fine */

/* Reads the list "added_tokens", which comes next. Texts live in the arena. */
bool mt_tok_added_read(mt_tok_added *added, mt_json_reader *json, mt_arena *arena, mt_error *err) MT_NODISCARD;

/* Gives each token its id: that of its spelling in the model, or the next from model_size up; the ids in the file are
   not looked at, because the tokenizers library does not. Afterwards `form` may be changed, until
   mt_tok_added_finish. */
bool mt_tok_added_number(mt_tok_added *added, const mt_tok_vocab *model, size_t model_size, mt_error *err) MT_NODISCARD;
void mt_tok_added_finish(mt_tok_added *added);

/* A token in a text. */
typedef struct mt_tok_match {
    const mt_tok_added_token *token;
    size_t begin, end; /* with the white space that it takes */
} mt_tok_match;

/* The next match at *at or behind it, leftmost and then longest; false when there is none. No special token is found
   on marked bytes. *at moves to where the search goes on; begin with 0. `after`: where the match before ended. */
bool mt_tok_added_find(const mt_tok_added *added, const mt_tok_trie *trie, const mt_tok_view *text, size_t *at,
                       size_t after, mt_tok_match *match);

#endif
