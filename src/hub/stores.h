/* Models that other programs keep on this machine. They are read in place and never changed. */
#ifndef MT_HUB_STORES_H
#define MT_HUB_STORES_H

#include "base/limits.h"
#include "hub/names.h"

/* The folder of LM Studio's models, with "owner/name" below it as in a folder of models. False: there is none. */
bool mt_store_lmstudio(char path[MT_LIMIT_PATH], mt_hub_env *env);

/* The store of Ollama: OLLAMA_MODELS, the user's, or that of the system's service. False: there is none. */
bool mt_store_ollama(char path[MT_LIMIT_PATH], mt_hub_env *env);

/* The manifest of a model in a store of Ollama: "name:tag" of its library, "owner/name:tag"; without a tag,
   "latest". */
bool mt_store_manifest(char path[MT_LIMIT_PATH], const char *store, const mt_hub_name *name);

/* Calls `each` with the name and manifest of every model in a store of Ollama, until it returns false. */
typedef bool mt_store_each(void *arg, const char *name, const char *manifest);
bool mt_store_list(const char *store, mt_store_each *each, void *arg);

#endif
