/* The post-processor: the tokens it puts before and behind those of a text. Made for pairs of texts and offsets too,
   which nobody here asks for. */
#ifndef MT_TEXT_POSTPROCESSOR_H
#define MT_TEXT_POSTPROCESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"
#include "text/part.h"

typedef struct mt_tok_post {
    uint32_t before[MT_LIMIT_TOKENIZER_AROUND], after[MT_LIMIT_TOKENIZER_AROUND];
    size_t before_count, after_count;
    bool templated; /* a template was seen */
} mt_tok_post;

/* node: what "post_processor" holds; NULL for none. */
bool mt_tok_post_init(mt_tok_post *post, const mt_tok_node *node, mt_error *err) MT_NODISCARD;

#endif
