/* The added tokens of a tokenizer: strings such as "<|im_start|>" that become one token wherever they occur in a text,
   before any other stage sees it. Most are matched in the original text; those with the flag `normalized` are matched
   in the normalized text. Used by encode.c and tokenizer_read.c. */
#ifndef MT_TEXT_ADDED_H
#define MT_TEXT_ADDED_H

#include <stdatomic.h>
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

/* One added token. The flags are those of tokenizer.json. */
typedef struct mt_tok_added_token {
    const char *content; /* the string in the file; in the arena */
    uint32_t content_len;
    uint32_t form_len;
    /* The string that is matched, and the text of the decoded token: the content, normalized if the flag says so */
    const char *form;
    uint32_t id;
    /* matches only as a whole word; includes white space before it; includes white space after it; is matched in the
       normalized text; may be forbidden in marked text and left out of decoded text */
    bool single_word, lstrip, rstrip, normalized, special;
} mt_tok_added_token;

/* All zero bytes is an empty list. */
typedef struct mt_tok_added {
    mt_tok_added_token *tokens; /* in the order of the file; of tokens with the same id only the last */
    size_t count, cap;
    mt_tok_vocab vocab; /* contents to ids */
    /* To match tokens in the original text, and in the normalized text; values are indices of `tokens` */
    mt_tok_trie raw, formed;
    /* A special token is matched in the normalized text, so the normalizer must carry the marks of the text */
    bool has_formed_special;
} mt_tok_added;

void mt_tok_added_free(mt_tok_added *added); /* a struct of zero bytes is fine */

/* Reads the list "added_tokens" from the reader. Strings are copied to the arena. False: *err. */
bool mt_tok_added_read(mt_tok_added *added, mt_json_reader *json, mt_arena *arena, mt_error *err) MT_NODISCARD;

/* Gives each token its id: the id that the model has for its content, or else the next free one from model_size on. The
   ids in the file are ignored, as in the tokenizers library. Between this call and mt_tok_added_finish the caller may
   change `form`. */
bool mt_tok_added_number(mt_tok_added *added, const mt_tok_vocab *model, size_t model_size, mt_error *err) MT_NODISCARD;
/* Builds the tries. False: *err. */
bool mt_tok_added_finish(mt_tok_added *added, mt_error *err) MT_NODISCARD;

/* An occurrence of a token in a text. */
typedef struct mt_tok_match {
    const mt_tok_added_token *token;
    size_t begin, end; /* bytes of the text, including the white space of lstrip and rstrip */
} mt_tok_match;

/* Finds the next occurrence from *at on: the leftmost, and of those the longest. False: there is none. A special token
   is not found where it would touch a marked byte. *at is 0 at first and moves to where the next search begins; `after`
   is the end of the occurrence before. Once *stop is true, which may be NULL, it finds none. */
bool mt_tok_added_find(const mt_tok_added *added, const mt_tok_trie *trie, const mt_tok_view *text, size_t *at,
                       size_t after, const atomic_bool *stop, mt_tok_match *match);

#endif
