/* Models by their names: where the tools that people download with have put them. */
#ifndef MT_HUB_FIND_H
#define MT_HUB_FIND_H

#include "base/error.h"
#include "hub/names.h"

/* The folder of a model: `model` itself where it is one; else, when it reads like a name (hub/names.h), what is found
   of it below models_dir (NULL: none is given) or in Hugging Face's cache. NULL with a sentence that has the command
   which downloads it. What could not be downloaded by it is returned as it is, for whoever opens it to say what is
   wrong. Free with mt_free. */
char *mt_hub_find(const char *model, const char *models_dir, mt_hub_env *env, mt_error *err) MT_NODISCARD;

/* Of a name, what is found in this cache; NULL: nothing. Free with mt_free. */
char *mt_hub_find_cached(const mt_hub_name *name, const char *cache) MT_NODISCARD;

/* Whether a folder is a model's: it has config.json or tokenizer.json. One that somebody began to download has
   neither. */
bool mt_hub_holds_model(const char *folder);

/* The snapshot that a name without a revision means, of a folder "models--owner--name": what its branch main says, else
   the newest that holds a model. False where there is none. */
bool mt_hub_current(char out[MT_LIMIT_PATH], const char *model);

#endif
