/* The decoder: how spellings become text. The file has a list of steps that turn a list of spellings into another one;
   here they are sorted by what they work on, so that each token can be decoded when it comes:

     spellings --token steps--> spellings --bytes--> elements --element steps--> elements --joined--> text steps

   ByteLevel and Fuse join everything into one text. Steps whose result would depend on tokens that are still to
   come, in a way that holding back a few characters cannot cure, are an error when the file is loaded. */
#ifndef MT_TEXT_DECODER_H
#define MT_TEXT_DECODER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "text/part.h"

typedef enum mt_tok_step_kind {
    MT_TOK_STEP_REPLACE,   /* from by to */
    MT_TOK_STEP_STRIP,     /* up to `start` times `from` at the start, `stop` at the end */
    MT_TOK_STEP_METASPACE, /* from by a blank; in the first element by nothing, when `drop` */
    MT_TOK_STEP_WORDPIECE  /* a blank before all but the first and those with the prefix `from`, which goes */
} mt_tok_step_kind;

typedef struct mt_tok_step {
    mt_tok_step_kind kind;
    const char *from, *to;
    size_t from_len, to_len;
    size_t start, stop;
    bool drop, cleanup;
} mt_tok_step;

typedef enum mt_tok_bytes {
    MT_TOK_BYTES_NONE,
    MT_TOK_BYTES_FALLBACK, /* <0x00> to <0xFF> are bytes */
    MT_TOK_BYTES_LEVEL     /* characters of the byte-level alphabet are bytes */
} mt_tok_bytes;

typedef struct mt_tok_decoder {
    mt_tok_step token[MT_LIMIT_DECODER_STEPS], element[MT_LIMIT_DECODER_STEPS], text[MT_LIMIT_DECODER_STEPS];
    size_t token_count, element_count, text_count;
    mt_tok_bytes bytes;
    bool joined; /* text steps see one text */
    bool spaced; /* there is no decoder: blanks between tokens */
} mt_tok_decoder;

/* node: what "decoder" holds; NULL for none. Strings are borrowed from the node. */
bool mt_tok_decoder_init(mt_tok_decoder *decoder, const mt_tok_node *node, mt_error *err) MT_NODISCARD;

/* Applies steps to the end of out, from `begin` on: one spelling or element. Fails only when out is full. */
void mt_tok_steps_apply(const mt_tok_step *steps, size_t count, bool first, mt_buf *out, size_t begin);

/* The byte that a spelling stands for when decoders fall back to bytes, or -1. */
int mt_tok_fallback_byte(const char *s, size_t len);

#endif
