/* The normalizer: stages that change a text before it is cut. A Sequence and the parts of a BertNormalizer are just
   more stages, so a normalizer is a flat list. */
#ifndef MT_TEXT_NORMALIZER_H
#define MT_TEXT_NORMALIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/limits.h"
#include "text/charsmap.h"
#include "text/flow.h"
#include "text/part.h"
#include "text/regex.h"

typedef enum mt_tok_change {
    MT_TOK_NFC,
    MT_TOK_NFD,
    MT_TOK_NFKC,
    MT_TOK_NFKD,
    MT_TOK_LOWERCASE,
    MT_TOK_STRIP,          /* white space at the ends: left, right */
    MT_TOK_STRIP_MARKS,    /* M* */
    MT_TOK_STRIP_OVERLAYS, /* Mn */
    MT_TOK_CLEAN,          /* Bert: control characters go, white space becomes blanks */
    MT_TOK_SET_APART,      /* Bert: blanks around ideographs */
    MT_TOK_NMT,            /* SentencePiece's rules: some controls go, some characters become blanks */
    MT_TOK_REPLACE,        /* a string, or a match of regex, by another string */
    MT_TOK_PREPEND,        /* a string, to what is not empty */
    MT_TOK_CHARSMAP,       /* SentencePiece's table of replacements */
    MT_TOK_BYTE_CHARS      /* the byte-level alphabet */
} mt_tok_change;

typedef struct mt_tok_stage {
    mt_tok_change change;
    bool left, right;
    const char *from, *to;
    size_t from_len, to_len;
    mt_tok_regex *regex;
    mt_tok_charsmap *charsmap;
} mt_tok_stage;

typedef struct mt_tok_normalizer {
    mt_tok_stage stages[MT_LIMIT_TOKENIZER_STAGES];
    size_t count;
} mt_tok_normalizer;

/* node: what "normalizer" holds; NULL for none. Strings are borrowed from the node. Free with _free, also after a
   failure. */
bool mt_tok_normalizer_init(mt_tok_normalizer *normalizer, const mt_tok_node *node, mt_error *err) MT_NODISCARD;
void mt_tok_normalizer_free(mt_tok_normalizer *normalizer);

/* Normalizes *text: afterwards it views what came of it, which may lie in one of the two spare texts. */
bool mt_tok_normalize(const mt_tok_normalizer *normalizer, mt_tok_view *text, mt_tok_text spare[2],
                      mt_tok_matcher *matcher, mt_error *err) MT_NODISCARD;

/* The stages themselves. Each returns false when the text stays as it is; then out is not to be looked at. */
bool mt_tok_change_form(mt_tok_change form, const mt_tok_view *in, mt_tok_text *out);     /* NFC, NFD, NFKC, NFKD */
bool mt_tok_change_chars(const mt_tok_stage *s, const mt_tok_view *in, mt_tok_text *out); /* character by character */

#endif
