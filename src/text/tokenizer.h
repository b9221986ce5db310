/* The tokenizer of a checkpoint: text to tokens and back, with the same ids as Hugging Face's tokenizers library for
   the same tokenizer.json. docs/tokenizers.md lists what is supported; all else is an error that names it.
   A tokenizer does not change after it was loaded: all threads may share it. */
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

/* A growing list of token ids; all zero bytes is an empty list. */
typedef struct mt_ids {
    uint32_t *data;
    size_t count, cap;
} mt_ids;

void mt_ids_add(mt_ids *ids, uint32_t id);
void mt_ids_free(mt_ids *ids); /* leaves it empty */

/* All zero bytes is the default. */
typedef struct mt_encode_options {
    bool add_special; /* add the tokens of the post-processor, such as begin-of-text */
    /* Byte ranges of the text, ascending and disjoint, that a user wrote. A special token is not recognised where it
       would touch one of them: its characters are then ordinary text. */
    const mt_range *plain;
    size_t plain_count;
    /* Byte offsets in the text, ascending; the text must be valid UTF-8. Each is replaced by the number of this call's
       tokens before it. An offset inside of a token counts as before that token. In text that the normalizer changes,
       the result may be wrong by a few tokens. */
    size_t *places;
    size_t place_count;
    const atomic_bool *stop; /* may be NULL; where another thread sets it, encoding fails early */
    size_t most;             /* most tokens; 0: no limit. Longer texts fail early with MT_E_TOO_LONG */
} mt_encode_options;

/* path: a tokenizer.json or its folder. NULL: *err. Free with mt_tokenizer_free. */
mt_tokenizer *mt_tokenizer_load(const char *path, mt_error *err) MT_NODISCARD;
/* Borrows json for the call only. */
mt_tokenizer *mt_tokenizer_parse(const char *json, size_t len, mt_error *err) MT_NODISCARD;
void mt_tokenizer_free(mt_tokenizer *tokenizer); /* NULL is fine */

/* Appends the tokens of the text to `out`. Bytes that are not UTF-8 are read as U+FFFD. options may be NULL. False:
   *err. */
bool mt_tokenizer_encode(const mt_tokenizer *tokenizer, const char *text, size_t len, const mt_encode_options *options,
                         mt_ids *out, mt_error *err) MT_NODISCARD;

/* Appends the text of tokens, the same as a detokenizer would. False: out is full. */
bool mt_tokenizer_decode(const mt_tokenizer *tokenizer, const uint32_t *ids, size_t count, bool skip_special,
                         mt_buf *out) MT_NODISCARD;

/* One more than the largest id. Ids below it may be unused. */
size_t mt_tokenizer_size(const mt_tokenizer *tokenizer);

/* The string of a token in the file; NULL: the id is unused. Valid as long as the tokenizer. */
const char *mt_tokenizer_token(const mt_tokenizer *tokenizer, uint32_t id, size_t *len);

/* The id of a string, or MT_TOKEN_NONE. */
uint32_t mt_tokenizer_find(const mt_tokenizer *tokenizer, const char *token, size_t len);

/* Appends the bytes that a token adds to a text where it is not the first. They may be a part of a character. An unused
   id adds nothing. False: out is full. */
bool mt_tokenizer_bytes(const mt_tokenizer *tokenizer, uint32_t id, mt_buf *out);

bool mt_tokenizer_special(const mt_tokenizer *tokenizer, uint32_t id); /* skip_special leaves it out of decoded text */

#endif
