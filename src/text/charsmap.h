/* SentencePiece's table of replacements ("precompiled_charsmap"): a double array over UTF-8, and the texts that come
   instead. */
#ifndef MT_TEXT_CHARSMAP_H
#define MT_TEXT_CHARSMAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "text/flow.h"

typedef struct mt_tok_charsmap mt_tok_charsmap;

mt_tok_charsmap *mt_tok_charsmap_new(const char *base64, size_t len, mt_error *err) MT_NODISCARD;
void mt_tok_charsmap_free(mt_tok_charsmap *map); /* NULL is fine */

/* Returns false when the text stays as it is; then out is not to be looked at. */
bool mt_tok_charsmap_apply(const mt_tok_charsmap *map, const mt_tok_view *in, mt_tok_text *out);

#endif
