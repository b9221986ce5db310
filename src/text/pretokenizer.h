/* The pre-tokenizer: stages that cut a text into pieces, no token of which reaches into another. A Sequence is a
   flat list; ByteLevel, Metaspace and BertPreTokenizer are several stages each. */
#ifndef MT_TEXT_PRETOKENIZER_H
#define MT_TEXT_PRETOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"
#include "text/flow.h"
#include "text/part.h"
#include "text/regex.h"

typedef enum mt_tok_cut {
    MT_TOK_SPLIT,        /* at matches of a regex, a string or a class of characters */
    MT_TOK_PREFIX_SPACE, /* a blank before each piece that has none */
    MT_TOK_METASPACE,    /* blanks become a visible character, and one may be put first */
    MT_TOK_TO_BYTE_CHARS /* the byte-level alphabet */
} mt_tok_cut;

/* What becomes of the matches. */
typedef enum mt_tok_behavior {
    MT_TOK_REMOVED,
    MT_TOK_ISOLATED,
    MT_TOK_MERGED_WITH_PREVIOUS,
    MT_TOK_MERGED_WITH_NEXT,
    MT_TOK_CONTIGUOUS
} mt_tok_behavior;

typedef enum mt_tok_scheme { MT_TOK_FIRST, MT_TOK_NEVER, MT_TOK_ALWAYS } mt_tok_scheme;

typedef struct mt_tok_cutter {
    mt_tok_cut cut;
    mt_tok_regex *regex;         /* of a split: one of these three */
    bool (*matches)(uint32_t c); /* each character of the class is a match */
    const char *string;          /* never empty; also the visible character of a Metaspace */
    size_t string_len;
    mt_tok_behavior behavior;
    bool invert; /* what is no match is a match */
    mt_tok_scheme scheme;
} mt_tok_cutter;

typedef struct mt_tok_pretokenizer {
    mt_tok_cutter cutters[MT_LIMIT_TOKENIZER_STAGES];
    size_t count;
    bool byte_level; /* pieces are bytes of which the model is to see the byte-level characters: the last stage, left to
                        the model because it need not be carried out */
} mt_tok_pretokenizer;

/* node: what "pre_tokenizer" holds; NULL for none. takes_bytes: the model can do without byte-level characters. Strings
   are borrowed from the node. Free with _free, also after a failure. */
bool mt_tok_pretokenizer_init(mt_tok_pretokenizer *pre, const mt_tok_node *node, bool takes_bytes,
                              mt_error *err) MT_NODISCARD;
void mt_tok_pretokenizer_free(mt_tok_pretokenizer *pre);

/* Room for the work; zeroed at first. */
typedef struct mt_tok_cutting {
    mt_tok_text texts[MT_LIMIT_TOKENIZER_STAGES]; /* what a stage that changes text made of its piece */
} mt_tok_cutting;

void mt_tok_cutting_free(mt_tok_cutting *work);

/* A piece as the model is to see it; borrowed for the call. False, with an error: no more is wanted. */
typedef bool mt_tok_taker(void *ctx, const char *piece, size_t len);

/* Cuts a text and hands its pieces over in their order, each as soon as it is known: who has enough need not wait for
   the rest, and no list of them is kept. */
bool mt_tok_pretokenize(const mt_tok_pretokenizer *pre, const mt_tok_view *text, mt_tok_cutting *work,
                        mt_tok_matcher *matcher, mt_tok_taker *take, void *ctx, mt_error *err) MT_NODISCARD;

/* Cuts one piece of a text; in split.c. */
bool mt_tok_split(const mt_tok_cutter *cutter, const char *text, mt_tok_piece piece, mt_tok_sink out,
                  mt_tok_matcher *matcher, mt_error *err) MT_NODISCARD;

/* The settings of a Metaspace, which is also a decoder. */
bool mt_tok_metaspace_read(const mt_tok_part *part, const char **string, size_t *len, mt_tok_scheme *scheme,
                           bool *split) MT_NODISCARD;

#endif
