/* Limits of src/text and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_TEXT_LIMITS_H
#define MT_TEXT_LIMITS_H

/* tokenizers */
#define MT_LIMIT_TOKENIZER_SETTINGS (64u << 20) /* bytes in memory besides vocabulary and merges */
#define MT_LIMIT_TOKENIZER_STAGES 64            /* of a normalizer or pre-tokenizer */
#define MT_LIMIT_TOKENIZER_AROUND 64            /* tokens put before or after a text */
#define MT_LIMIT_TOKENIZER_TEXT (1u << 30)      /* bytes that a text may grow to while it is normalised */
#define MT_LIMIT_TOKENIZER_GROWTH 32            /* times as long as it was, for a text that is normalised or decoded */
#define MT_LIMIT_TRIE_NODES (8u << 20)          /* of the tree of added tokens, or of a Unigram model's tokens */
#define MT_LIMIT_TOKEN_AFFIX 64                 /* bytes of the mark at the start or end of a word */
#define MT_LIMIT_DECODER_STEPS 8                /* of each kind */
#define MT_LIMIT_REGEX 16384                    /* bytes of a regular expression */
#define MT_LIMIT_REGEX_STACK (64u << 20)        /* memory of a match */
#define MT_LIMIT_ENCODE_BYTES (64u << 20)       /* a text to tokenize */
#define MT_LIMIT_STOP_STRINGS 32
#define MT_LIMIT_STOP_BYTES 1024 /* of each stop string */

#endif
