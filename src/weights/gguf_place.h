/* Finds the GGUF files of a model. Its path may be a file, a folder, or a manifest in the store of Ollama, which
   lists the files that belong together by their digests. */
#ifndef MT_WEIGHTS_GGUF_PLACE_H
#define MT_WEIGHTS_GGUF_PLACE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "weights/gguf_choice.h"

typedef struct mt_gguf_place {
    char model[MT_LIMIT_PATH];     /* the file, or the first of its shards */
    char projector[MT_LIMIT_PATH]; /* the projector for pictures; "": none */
    char searched[MT_LIMIT_PATH];  /* the folder that was searched for it, of a model that is a file; "": none */
} mt_gguf_place;

/* Whether path is a GGUF model: a file "*.gguf", with a projector beside it or not; a folder with such files and
   without safetensors, of which one is chosen (gguf_choice.h) by tag (NULL or "": none) and the machine's memory; or
   a manifest. False without an error where it is another kind of model, and with a sentence where it is one that
   cannot be used. */
bool mt_gguf_locate(mt_gguf_place *out, const char *path, const char *tag, mt_error *err) MT_NODISCARD;

/* The GGUF files of a folder, by name. */
typedef struct mt_gguf_folder {
    mt_gguf_file *files;
    size_t count, cap;
    bool safetensors; /* it has weights of that kind, too */
    mt_arena *arena;
} mt_gguf_folder;

/* A folder that may not be read has no files. Free with mt_gguf_folder_free. */
void mt_gguf_folder_read(mt_gguf_folder *f, const char *path);
void mt_gguf_folder_free(mt_gguf_folder *f);

/* Whether a folder contains a GGUF model and no safetensors. */
bool mt_gguf_in(const char *folder);

/* Reads the architecture, "qwen3", from the first bytes of a file. False where they do not tell: it is no GGUF, or
   has this key later than any converter writes it. */
bool mt_gguf_architecture(const char *path, char out[MT_GGUF_LABEL]);

/* Gives the model at path, which must be a GGUF model, this file as its projector, whatever lies beside it. Called
   before there are threads; a later call replaces an earlier one. */
bool mt_gguf_use_projector(const char *path, const char *file, mt_error *err) MT_NODISCARD;

/* Leaves out the projectors of all models from now on. Called before there are threads. */
void mt_gguf_use_no_projectors(void);

/* Whether a path has the form of a manifest in Ollama's store: ".../manifests/HOST/OWNER/NAME/TAG". */
bool mt_gguf_is_manifest(const char *path);

#endif
