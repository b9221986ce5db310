/* Tokens to text, one at a time. What comes out, taken together, is what mt_tokenizer_decode gives for all of them,
   however they were cut; only whole characters come out, and each as soon as it is certain.

   The state is plain data and owns nothing: to be able to go back, keep a copy; to go back, assign it. */
#ifndef MT_TEXT_DETOKENIZER_H
#define MT_TEXT_DETOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "text/tokenizer.h"

typedef struct mt_detokenizer {
    const mt_tokenizer *tokenizer; /* borrowed */
    bool skip_special;
    /* private */
    bool begun;   /* a token has come that was not skipped */
    bool in_run;  /* the last token was a byte */
    bool first;   /* the element being made is the first */
    bool element; /* there has been an element */
    uint8_t pending_len;
    char pending[MT_UTF8_MAX]; /* the start of a character */
    struct {
        uint32_t taken, held;
        bool begun;
    } strips[MT_LIMIT_DECODER_STEPS]; /* of the decoder's text steps */
} mt_detokenizer;

void mt_detokenizer_init(mt_detokenizer *d, const mt_tokenizer *tokenizer, bool skip_special);

/* Appends what a token makes certain. An id that no token has adds nothing. False when out is full. */
bool mt_detokenizer_add(mt_detokenizer *d, uint32_t id, mt_buf *out) MT_NODISCARD;

/* No more tokens will come: what is left of an unfinished character becomes U+FFFD. */
bool mt_detokenizer_finish(mt_detokenizer *d, mt_buf *out) MT_NODISCARD;

#endif
