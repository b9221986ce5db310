/* Finds the GGUF files of a model. Its path may be a file, a folder, or a manifest in the store of Ollama, which lists the
   files that belong together by their digests. */
#ifndef MT_WEIGHTS_GGUF_PLACE_H
#define MT_WEIGHTS_GGUF_PLACE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/limits.h"

typedef struct mt_gguf_place {
    char model[MT_LIMIT_PATH];     /* the file, or the first of its shards */
    char projector[MT_LIMIT_PATH]; /* the projector for pictures; "": none */
} mt_gguf_place;

/* Whether path is a GGUF model: a file "*.gguf", with a projector beside it or not; a folder with such files and without
   safetensors, of which one is chosen (gguf_choice.h) by tag (NULL or "": none) and the machine's memory; or a manifest.
   False without an error where it is another kind of model, and with a sentence where it is one that cannot be used. */
bool mt_gguf_locate(mt_gguf_place *out, const char *path, const char *tag, mt_error *err) MT_NODISCARD;

/* Whether a path has the form of a manifest in Ollama's store: ".../manifests/HOST/OWNER/NAME/TAG". */
bool mt_gguf_is_manifest(const char *path);

#endif
