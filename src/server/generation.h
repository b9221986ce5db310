/* What a checkpoint folder says about generating: sampling defaults, and the tokens that end an answer. */
#ifndef MT_SERVER_GENERATION_H
#define MT_SERVER_GENERATION_H

#include "api/ask.h"
#include "text/tokenizer.h"
#include "weights/config.h"

typedef struct mt_generation_config {
    mt_ask_defaults defaults;
    uint32_t eos[MT_LIMIT_EOS];
    size_t eos_count;
} mt_generation_config;

/* Ends are the union of what generation_config.json, config.json and tokenizer_config.json name. Files may be missing;
   one that cannot be read, or has a value out of range, is an error. tokenizer may be NULL. */
bool mt_generation_read(mt_generation_config *g, const char *dir, const mt_config *config,
                        const mt_tokenizer *tokenizer, mt_error *err) MT_NODISCARD;

#endif
