/* Functions that the Gemma families (gemma2.c, gemma3.c, gemma4.c) share. */
#ifndef MT_MODELS_GEMMA_H
#define MT_MODELS_GEMMA_H

#include "models/spec.h"

/* Reads: norms that multiply by 1 + w before and after each sublayer, scaled embeddings, the attention scale, and
   windows on all layers but every `pattern`-th, or as layer_types says. */
bool mt_gemma_read(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, int64_t pattern,
                   mt_error *err) MT_NODISCARD;

#endif
