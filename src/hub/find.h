/* Finds models by name where download tools have put them. */
#ifndef MT_HUB_FIND_H
#define MT_HUB_FIND_H

#include "base/error.h"
#include "base/limits.h"
#include "hub/names.h"

/* The path of a model: `model` itself where it is a folder or a file; else, where it is a valid name (hub/names.h),
   what is found below models_dir (NULL: none), in Hugging Face's cache, in LM Studio's folders or in Ollama's store:
   a folder, a GGUF file, or a manifest (weights/gguf_place.h); then the repository that a short name stands for
   (hub/known.h). NULL with a sentence that has the command to download it. A text that is no valid name is returned
   unchanged, so that opening it gives the error. Free with mt_free. */
char *mt_hub_find(const char *model, const char *models_dir, mt_hub_env *env, mt_error *err) MT_NODISCARD;

/* The folder of a name in this cache; NULL: none. Free with mt_free. */
char *mt_hub_find_cached(const mt_hub_name *name, const char *cache) MT_NODISCARD;

/* The folder of a name below a folder of models, or its GGUF file; the tag is not looked at. */
bool mt_hub_find_below(const mt_hub_name *name, const char *models_dir, char out[MT_LIMIT_PATH]);

/* Whether a folder contains a model: it has config.json, tokenizer.json or a GGUF file. A download that has just begun
   has none. */
bool mt_hub_holds_model(const char *folder);

/* The snapshot that a name without revision means, in a folder "models--owner--name": that of its branch main, else the
   newest that contains a model. False where there is none. */
bool mt_hub_current(char out[MT_LIMIT_PATH], const char *model);

#endif
