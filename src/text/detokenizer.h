/* Decodes tokens one at a time, for streaming. The pieces of text together are what mt_tokenizer_decode gives for all
   tokens; each piece has only complete characters, and every character comes out as soon as later tokens cannot change
   it.
   The state has no pointers that it owns: to be able to go back, copy it; to go back, assign the copy. */
#ifndef MT_TEXT_DETOKENIZER_H
#define MT_TEXT_DETOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/utf8.h"
#include "text/limits.h"
#include "text/tokenizer.h"

typedef struct mt_detokenizer {
    const mt_tokenizer *tokenizer; /* borrowed */
    bool skip_special;             /* leave out special tokens */
    /* The state. */
    bool begun;   /* a token was not left out */
    bool in_run;  /* the last token was a byte token */
    bool first;   /* the current element is the first */
    bool element; /* there was an element */
    uint8_t pending_len;
    char pending[MT_UTF8_MAX]; /* the bytes of an incomplete character */
    struct {
        /* Strings removed at the start, and strings held back because they may be at the end */
        uint32_t taken, held;
        bool begun;
    } strips[MT_LIMIT_DECODER_STEPS]; /* for each text step */
} mt_detokenizer;

void mt_detokenizer_init(mt_detokenizer *d, const mt_tokenizer *tokenizer, bool skip_special);

/* Appends the text that is certain now. A number that no token has adds nothing. False: out is full. */
bool mt_detokenizer_add(mt_detokenizer *d, uint32_t id, mt_buf *out) MT_NODISCARD;

/* To be called after the last token: appends what was held back; an incomplete character becomes U+FFFD. False: out is
   full. */
bool mt_detokenizer_finish(mt_detokenizer *d, mt_buf *out) MT_NODISCARD;

#endif
