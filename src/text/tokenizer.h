/* Text to tokens and back, as a checkpoint's tokenizer.json says: what Hugging Face's tokenizers library makes of the
   same file, id for id. docs/tokenizers.md lists what a file may hold; anything else is an error that names it.

   A tokenizer does not change once it is loaded: any number of threads may use it at once. */
#ifndef MT_TEXT_TOKENIZER_H
#define MT_TEXT_TOKENIZER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/range.h"

#define MT_TOKEN_NONE UINT32_MAX

typedef struct mt_tokenizer mt_tokenizer;

/* A growing list of token ids. Start with a zeroed one. */
typedef struct mt_ids {
    uint32_t *data;
    size_t count, cap;
} mt_ids;

void mt_ids_add(mt_ids *ids, uint32_t id);
void mt_ids_free(mt_ids *ids); /* leaves it empty */

typedef struct mt_encode_options {
    bool add_special; /* what the post-processor puts around the text: a begin-of-text token and the like */
    /* Ranges of the text, ascending and apart, that a user wrote. No special token is recognised where it would touch
       one: there its characters are ordinary text. */
    const mt_range *plain;
    size_t plain_count;
    /* Places in the text, as ascending byte offsets; the text must be UTF-8 then. Each becomes the count of the tokens
       of this call before it. A place that is not between two tokens becomes the one before the token it lies in;
       within text that the normalizer changed, it may be off by a few. */
    size_t *places;
    size_t place_count;
    const atomic_bool *stop; /* may be NULL: where another thread sets it, the rest of the text is left, which fails */
    size_t most; /* tokens; 0: any number. What has more fails with MT_E_TOO_LONG, and its rest is not looked at */
} mt_encode_options;

/* path: a tokenizer.json, or the folder it is in. NULL on failure. Free with mt_tokenizer_free. */
mt_tokenizer *mt_tokenizer_load(const char *path, mt_error *err) MT_NODISCARD;
mt_tokenizer *mt_tokenizer_parse(const char *json, size_t len,
                                 mt_error *err) MT_NODISCARD; /* borrows json for the call */
void mt_tokenizer_free(mt_tokenizer *tokenizer);              /* NULL is fine */

/* Appends the tokens of text to out. What is not UTF-8 in it is read as U+FFFD. options may be NULL. */
bool mt_tokenizer_encode(const mt_tokenizer *tokenizer, const char *text, size_t len, const mt_encode_options *options,
                         mt_ids *out, mt_error *err) MT_NODISCARD;

/* Appends the text of tokens to out: the same as feeding them to a detokenizer. False when out is full. */
bool mt_tokenizer_decode(const mt_tokenizer *tokenizer, const uint32_t *ids, size_t count, bool skip_special,
                         mt_buf *out) MT_NODISCARD;

/* One more than the largest id. Ids below it may be unused. */
size_t mt_tokenizer_size(const mt_tokenizer *tokenizer);

/* How the file spells a token, with its length; NULL for an unused id. Lives as long as the tokenizer. */
const char *mt_tokenizer_token(const mt_tokenizer *tokenizer, uint32_t id, size_t *len);

/* The id of a spelling, or MT_TOKEN_NONE. */
uint32_t mt_tokenizer_find(const mt_tokenizer *tokenizer, const char *token, size_t len);

/* Appends the bytes that a token adds to a text when it is not the first: they may be a part of a character. */
bool mt_tokenizer_bytes(const mt_tokenizer *tokenizer, uint32_t id, mt_buf *out);

bool mt_tokenizer_special(const mt_tokenizer *tokenizer, uint32_t id); /* left out by skip_special */

#endif
