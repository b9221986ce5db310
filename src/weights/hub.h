/* Models by their names: where the tools that people download with have put them. */
#ifndef MT_WEIGHTS_HUB_H
#define MT_WEIGHTS_HUB_H

#include "base/error.h"

/* The folder of a model: `model` itself where it is one; else, when it reads like "owner/name", what is found of it
   below models_dir (NULL: none is given) or in Hugging Face's cache. NULL with a sentence that has the command which
   downloads it. What is not a name is returned as it is, for whoever opens it to say what is wrong. env looks a
   variable up as getenv does. Free with mt_free. */
char *mt_hub_find(const char *model, const char *models_dir, char *(*env)(const char *name),
                  mt_error *err) MT_NODISCARD;

#endif
