/* The post-processor: the special tokens that are put before and after the tokens of a text. (In the tokenizers library
   it also handles pairs of texts and character offsets, which are not needed here.) */
#ifndef MT_TEXT_POSTPROCESSOR_H
#define MT_TEXT_POSTPROCESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "text/limits.h"
#include "text/part.h"

typedef struct mt_tok_post {
    uint32_t before[MT_LIMIT_TOKENIZER_AROUND], after[MT_LIMIT_TOKENIZER_AROUND]; /* ids */
    size_t before_count, after_count;
    bool templated; /* a "TemplateProcessing" was read */
} mt_tok_post;

/* Reads the section "post_processor" of the file; NULL: it has none. False: *err. */
bool mt_tok_post_init(mt_tok_post *post, const mt_tok_node *node, mt_error *err) MT_NODISCARD;

#endif
