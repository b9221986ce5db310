/* Names of models, and where the hub's own tools put them. */
#ifndef MT_HUB_NAMES_H
#define MT_HUB_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"
#include "hub/limits.h"

#define MT_HUB_COMMIT 40 /* hexadecimal digits */
#define MT_HUB_TAG 80    /* bytes of a tag with its end */

/* Reads an environment variable, like getenv. */
typedef char *mt_hub_env(const char *name);

typedef struct mt_hub_name {
    char id[MT_LIMIT_HUB_NAME];       /* "owner/name", or "name" */
    char revision[MT_LIMIT_HUB_NAME]; /* a branch, tag or commit; "": none */
    char tag[MT_HUB_TAG];             /* which of a model's GGUF files, "Q4_K_M"; "": none */
    bool owned;                       /* the name has an owner */
} mt_hub_name;

/* Reads "owner/name" or "name", with or without "hf.co/" before it, either with "@revision", ":tag" or both in this
   order. False where there are other characters than letters, digits, ".", "_" and "-", or a part is empty or begins
   with a dot. So no name leads out of a folder. */
bool mt_hub_name_read(mt_hub_name *out, const char *text);

/* Whether it is the full name of a commit: 40 hexadecimal digits. */
bool mt_hub_is_commit(const char *text); /* Whether it is a full commit: 40 hexadecimal digits. */

/* The folder of the hub's cache, from HF_HUB_CACHE and related variables; a leading "~" is the home folder. False where
   no variable is set, or the path is too long. */
bool mt_hub_cache(char path[MT_LIMIT_PATH], mt_hub_env *env);

/* The path of a file beside the cache: "token" is HF_HOME/token. */
bool mt_hub_home_file(char path[MT_LIMIT_PATH], const char *name, mt_hub_env *env);

/* "cache/models--owner--name" for an id; false where it is too long. */
bool mt_hub_folder(char path[MT_LIMIT_PATH], const char *cache, const char *id);

/* The id for a folder "models--owner--name"; false where it has another form. */
bool mt_hub_folder_id(char id[MT_LIMIT_HUB_NAME], const char *folder);

/* "folder/name"; false where it is too long. */
bool mt_hub_join(char path[MT_LIMIT_PATH], const char *folder, const char *name);

#endif
