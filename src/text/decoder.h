/* The decoder: turns the strings of tokens into text. tokenizer.json has a list of steps, each of which maps a list of
   strings to another. Here the steps are sorted by what they work on, so that one token can be decoded at a time (see
   detokenizer.c):

     spellings --token steps--> spellings --bytes--> elements --element steps--> elements --joined--> text steps

   A spelling is the string of one token. An element is the text of one token, or of several byte tokens in a row. The
   steps ByteLevel and Fuse join all elements to one text. A file is refused if the result of a step would depend on
   later tokens by more than a few characters that can be held back. */
#ifndef MT_TEXT_DECODER_H
#define MT_TEXT_DECODER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "text/limits.h"
#include "text/part.h"

/* The fields that each kind of step uses. */
typedef enum mt_tok_step_kind {
    MT_TOK_STEP_REPLACE,   /* every `from` becomes `to` */
    MT_TOK_STEP_STRIP,     /* removes up to `start` times `from` at the start, up to `stop` times at the end */
    MT_TOK_STEP_METASPACE, /* every `from` becomes a blank; if `drop`, it is removed in the first element */
    MT_TOK_STEP_WORDPIECE  /* removes the prefix `from`; puts a blank before elements without it but the first */
} mt_tok_step_kind;

typedef struct mt_tok_step {
    mt_tok_step_kind kind;
    const char *from, *to; /* borrowed */
    size_t from_len, to_len;
    size_t start, stop;
    bool drop, cleanup; /* WordPiece: also removes blanks before punctuation */
} mt_tok_step;

/* Which spellings stand for bytes. */
typedef enum mt_tok_bytes {
    MT_TOK_BYTES_NONE,
    MT_TOK_BYTES_FALLBACK, /* the tokens "<0x00>" to "<0xFF>" */
    MT_TOK_BYTES_LEVEL     /* all characters, in the byte-level alphabet */
} mt_tok_bytes;

/* The steps of a decoder, by what they work on. */
typedef struct mt_tok_decoder {
    mt_tok_step token[MT_LIMIT_DECODER_STEPS], element[MT_LIMIT_DECODER_STEPS], text[MT_LIMIT_DECODER_STEPS];
    size_t token_count, element_count, text_count;
    mt_tok_bytes bytes;
    bool joined; /* the text steps see all elements joined */
    bool spaced; /* the file has no decoder: tokens are joined with blanks */
} mt_tok_decoder;

/* Reads the section "decoder" of the file; NULL: it has none. Borrows strings of the node. False: *err. */
bool mt_tok_decoder_init(mt_tok_decoder *decoder, const mt_tok_node *node, mt_error *err) MT_NODISCARD;

/* Applies steps to one spelling or element, which is out[begin..], in place. `first`: it is the first of the text. */
void mt_tok_steps_apply(const mt_tok_step *steps, size_t count, bool first, mt_buf *out, size_t begin);

/* The byte that a token such as "<0x41>" stands for; -1: none. */
int mt_tok_fallback_byte(const char *s, size_t len);

#endif
