/* The pre-tokenizer: the stages that cut a text into pieces. No token crosses the border of a piece. It is a flat list:
   "Sequence", "ByteLevel", "Metaspace" and "BertPreTokenizer" in tokenizer.json become several stages. */
#ifndef MT_TEXT_PRETOKENIZER_H
#define MT_TEXT_PRETOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "text/flow.h"
#include "text/limits.h"
#include "text/part.h"
#include "text/regex.h"

/* What a stage does. */
typedef enum mt_tok_cut {
    MT_TOK_SPLIT,        /* cuts at matches of a regular expression, a string or a class of characters */
    MT_TOK_PREFIX_SPACE, /* puts a blank before each piece that does not begin with one */
    MT_TOK_METASPACE,    /* blanks become a visible character; may put one at the start */
    MT_TOK_TO_BYTE_CHARS /* writes pieces in the byte-level alphabet */
} mt_tok_cut;

/* What a split does with the matches; the names are those of tokenizer.json. */
typedef enum mt_tok_behavior {
    MT_TOK_REMOVED,
    MT_TOK_ISOLATED,
    MT_TOK_MERGED_WITH_PREVIOUS,
    MT_TOK_MERGED_WITH_NEXT,
    MT_TOK_CONTIGUOUS
} mt_tok_behavior;

/* Which pieces get the character of a Metaspace at their start: the first of the text, none, all. */
typedef enum mt_tok_scheme { MT_TOK_FIRST, MT_TOK_NEVER, MT_TOK_ALWAYS } mt_tok_scheme;

/* One stage. */
typedef struct mt_tok_cutter {
    mt_tok_cut cut;
    mt_tok_regex *regex;         /* of a split: this, `matches` or `string` decides where matches are; owned */
    bool (*matches)(uint32_t c); /* every character for which it is true is a match */
    const char *string;          /* not empty; of a Metaspace: the visible character; borrowed */
    size_t string_len;
    mt_tok_behavior behavior;
    bool invert; /* the text between matches counts as the matches */
    mt_tok_scheme scheme;
} mt_tok_cutter;

typedef struct mt_tok_pretokenizer {
    mt_tok_cutter cutters[MT_LIMIT_TOKENIZER_STAGES];
    size_t count;
    bool byte_level; /* the last stage writes pieces in the byte-level alphabet, and was left out: the model does it */
} mt_tok_pretokenizer;

/* Reads the section "pre_tokenizer" of the file; NULL: it has none. takes_bytes: the model accepts bytes in place of
   the byte-level alphabet. Borrows strings of the node. False: *err. Free with mt_tok_pretokenizer_free also then. */
bool mt_tok_pretokenizer_init(mt_tok_pretokenizer *pre, const mt_tok_node *node, bool takes_bytes,
                              mt_error *err) MT_NODISCARD;
void mt_tok_pretokenizer_free(mt_tok_pretokenizer *pre);

/* Memory for mt_tok_pretokenize. Free with mt_tok_cutting_free. */
typedef struct mt_tok_cutting {
    /* For each stage that changes text: its result for the current piece */
    mt_tok_text texts[MT_LIMIT_TOKENIZER_STAGES];
} mt_tok_cutting;

void mt_tok_cutting_init(mt_tok_cutting *work, size_t limit); /* limit: most bytes of each text */
void mt_tok_cutting_free(mt_tok_cutting *work);

/* Receives a piece, which is borrowed for the call. False: *err was set, and no more pieces are to come. */
typedef bool mt_tok_taker(void *ctx, const char *piece, size_t len);

/* Cuts a text and calls `take` with each piece, in order. Pieces are not collected, so that the callback can end the
   work early. False: *err. */
bool mt_tok_pretokenize(const mt_tok_pretokenizer *pre, const mt_tok_view *text, mt_tok_cutting *work,
                        mt_tok_matcher *matcher, mt_tok_taker *take, void *ctx, mt_error *err) MT_NODISCARD;

/* Cuts one piece of a text at matches. In split.c. */
bool mt_tok_split(const mt_tok_cutter *cutter, const char *text, mt_tok_piece piece, mt_tok_sink out,
                  mt_tok_matcher *matcher, mt_error *err) MT_NODISCARD;

/* Reads the settings of a "Metaspace", which is a pre-tokenizer and also a decoder. False: *err. */
bool mt_tok_metaspace_read(const mt_tok_part *part, const char **string, size_t *len, mt_tok_scheme *scheme,
                           bool *split) MT_NODISCARD;

#endif
