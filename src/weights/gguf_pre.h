/* How the byte-level BPE tokenizers of well-known models cut texts before they merge, by the names that GGUF files have
   for it ("tokenizer.ggml.pre"). */
#ifndef MT_WEIGHTS_GGUF_PRE_H
#define MT_WEIGHTS_GGUF_PRE_H

#include <stdbool.h>

#include "base/buf.h"
#include "weights/gguf.h"

#define MT_GGUF_PRE_PATTERNS 4

typedef struct mt_gguf_pre {
    const char *names;                          /* with blanks between them */
    const char *patterns[MT_GGUF_PRE_PATTERNS]; /* cut one after another; none: the pattern of GPT-2 */
    bool nfc;                                   /* texts are normalized to NFC */
    bool qwen;                                  /* Qwen's, some of whose added tokens converters have as special */
    bool digits;                                /* each digit stands by itself */
    bool ignore_merges;                         /* a word that is a token is that token, whatever the merges say */
    bool bos;                                   /* texts begin with the begin-of-text token unless the file denies it */
    bool roberta;                               /* blanks before "<mask>" belong to it */
} mt_gguf_pre;

/* NULL: no tokenizer that motet knows has this name. */
const mt_gguf_pre *mt_gguf_pre_find(mt_gguf_text name);

/* Appends the members "normalizer" and "pre_tokenizer" of tokenizer.json. */
void mt_gguf_pre_write(const mt_gguf_pre *pre, mt_buf *out);

#endif
