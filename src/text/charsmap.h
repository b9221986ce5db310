/* The table of replacements of SentencePiece ("precompiled_charsmap" in tokenizer.json): strings to look for, as a
   double-array trie, and the strings that replace them. A stage of the normalizer. */
#ifndef MT_TEXT_CHARSMAP_H
#define MT_TEXT_CHARSMAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "text/flow.h"

typedef struct mt_tok_charsmap mt_tok_charsmap;

/* Decodes the table. NULL: *err. Free with mt_tok_charsmap_free. */
mt_tok_charsmap *mt_tok_charsmap_new(const char *base64, size_t len, mt_error *err) MT_NODISCARD;
void mt_tok_charsmap_free(mt_tok_charsmap *map); /* NULL is fine */

/* Replaces in a text. False: nothing was replaced, and `out` is meaningless. */
bool mt_tok_charsmap_apply(const mt_tok_charsmap *map, const mt_tok_view *in, mt_tok_text *out);

#endif
