/* The files of a model's tokenizer, made of the keys "tokenizer.*" of its GGUF file: texts that the readers of these
   files take as if they came from the model's own folder. */
#ifndef MT_WEIGHTS_GGUF_TOKENIZER_H
#define MT_WEIGHTS_GGUF_TOKENIZER_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "weights/gguf.h"

bool mt_gguf_has_tokenizer(const mt_gguf *g);

/* Each appends a text to out. False with a sentence. */
bool mt_gguf_tokenizer(const mt_gguf *g, mt_buf *out, mt_error *err) MT_NODISCARD;         /* tokenizer.json */
bool mt_gguf_tokenizer_config(const mt_gguf *g, mt_buf *out, mt_error *err) MT_NODISCARD;  /* tokenizer_config.json */
bool mt_gguf_generation_config(const mt_gguf *g, mt_buf *out, mt_error *err) MT_NODISCARD; /* generation_config.json */

/* The chat template of a name such as "tool_use", NULL for the default one: chat_template.jinja. */
bool mt_gguf_has_template(const mt_gguf *g, const char *name);
bool mt_gguf_template(const mt_gguf *g, const char *name, mt_buf *out, mt_error *err) MT_NODISCARD;

#endif
