/* The normalizer: the stages that change a text before it is cut into pieces. It is a flat list: a "Sequence" and the
   parts of a "BertNormalizer" in tokenizer.json become several stages. */
#ifndef MT_TEXT_NORMALIZER_H
#define MT_TEXT_NORMALIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "text/charsmap.h"
#include "text/flow.h"
#include "text/limits.h"
#include "text/part.h"
#include "text/regex.h"

/* What a stage does. */
typedef enum mt_tok_change {
    MT_TOK_NFC,
    MT_TOK_NFD,
    MT_TOK_NFKC,
    MT_TOK_NFKD,
    MT_TOK_LOWERCASE,
    MT_TOK_STRIP,          /* removes white space at the start (`left`) and at the end (`right`) */
    MT_TOK_STRIP_MARKS,    /* removes characters of the categories M* */
    MT_TOK_STRIP_OVERLAYS, /* removes characters of the category Mn */
    MT_TOK_CLEAN,          /* BERT: removes control characters, white space becomes blanks */
    MT_TOK_SET_APART,      /* BERT: puts blanks around ideographs */
    MT_TOK_NMT,            /* rules of SentencePiece: removes some control characters, some characters become blanks */
    MT_TOK_REPLACE,        /* every `from`, or match of `regex`, becomes `to` */
    MT_TOK_PREPEND,        /* puts `to` before a text that is not empty */
    MT_TOK_CHARSMAP,       /* replaces by a table, see charsmap.h */
    MT_TOK_BYTE_CHARS      /* writes the text in the byte-level alphabet */
} mt_tok_change;

/* One stage; mt_tok_change says which fields are used. */
typedef struct mt_tok_stage {
    mt_tok_change change;
    bool left, right;
    const char *from, *to; /* borrowed */
    size_t from_len, to_len;
    mt_tok_regex *regex;       /* owned */
    mt_tok_charsmap *charsmap; /* owned */
} mt_tok_stage;

typedef struct mt_tok_normalizer {
    mt_tok_stage stages[MT_LIMIT_TOKENIZER_STAGES];
    size_t count;
} mt_tok_normalizer;

/* Reads the section "normalizer" of the file; NULL: it has none. Borrows strings of the node. False: *err. Free with
   mt_tok_normalizer_free also then. */
bool mt_tok_normalizer_init(mt_tok_normalizer *normalizer, const mt_tok_node *node, mt_error *err) MT_NODISCARD;
void mt_tok_normalizer_free(mt_tok_normalizer *normalizer);

/* Normalizes *text, which afterwards points to the result: a part of the original text, or one of the two spare texts.
   False: *err. */
bool mt_tok_normalize(const mt_tok_normalizer *normalizer, mt_tok_view *text, mt_tok_text spare[2],
                      mt_tok_matcher *matcher, mt_error *err) MT_NODISCARD;

/* The work of single stages. False: the text stays as it is, and `out` is meaningless. */
bool mt_tok_change_form(mt_tok_change form, const mt_tok_view *in, mt_tok_text *out);     /* NFC, NFD, NFKC, NFKD */
bool mt_tok_change_chars(const mt_tok_stage *s, const mt_tok_view *in, mt_tok_text *out); /* one character at a time */

#endif
