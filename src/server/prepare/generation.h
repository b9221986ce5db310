/* Reads what a checkpoint folder says about generating text: default sampling settings, and the tokens that end an
   answer. Called when a model is loaded. */
#ifndef MT_SERVER_PREPARE_GENERATION_H
#define MT_SERVER_PREPARE_GENERATION_H

#include "api/ask.h"
#include "text/tokenizer.h"
#include "weights/config.h"
#include "weights/limits.h"

typedef struct mt_generation_config {
    mt_ask_defaults defaults;
    uint32_t eos[MT_LIMIT_EOS]; /* token ids */
    size_t eos_count;
} mt_generation_config;

/* Reads generation_config.json, config.json and tokenizer_config.json; the end tokens are those that any of them names.
   Files may be missing; a file that cannot be read, or a setting out of range, is an error: false with *err. Ids out of
   range are left out. tokenizer may be NULL: then tokens that are named by their text are left out, too. */
bool mt_generation_read(mt_generation_config *g, const char *dir, const mt_config *config,
                        const mt_tokenizer *tokenizer, mt_error *err) MT_NODISCARD;

#endif
