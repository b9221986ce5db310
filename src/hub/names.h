/* What models are called, and where the hub's own tools put them. */
#ifndef MT_HUB_NAMES_H
#define MT_HUB_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"

#define MT_HUB_COMMIT 40 /* hexadecimal digits */

/* Looks a variable up as getenv does. */
typedef char *mt_hub_env(const char *name);

typedef struct mt_hub_name {
    char id[MT_LIMIT_HUB_NAME];       /* "owner/name", or "name" */
    char revision[MT_LIMIT_HUB_NAME]; /* a branch, a tag or a commit; "" where none is given */
    bool owned;                       /* there is an owner */
} mt_hub_name;

/* Reads "owner/name", "name", or either with "@revision". False for what is no name: other characters than letters,
   digits, ".", "_" and "-", parts that are empty or begin with a dot. So no name leads out of a folder. */
bool mt_hub_name_read(mt_hub_name *out, const char *text);

/* Whether it is the full name of a commit: 40 hexadecimal digits. */
bool mt_hub_is_commit(const char *text);

/* The folder of the hub's cache, of HF_HUB_CACHE and its kin; a leading "~" is the home folder. False where no variable
   tells, or it is too long. */
bool mt_hub_cache(char path[MT_LIMIT_PATH], mt_hub_env *env);

/* The same for a file beside the cache: "token" is HF_HOME/token. */
bool mt_hub_home_file(char path[MT_LIMIT_PATH], const char *name, mt_hub_env *env);

/* "cache/models--owner--name" of an id; false where that is too long. */
bool mt_hub_folder(char path[MT_LIMIT_PATH], const char *cache, const char *id);

/* The id of such a folder's name, "models--owner--name"; false where it is of another kind. */
bool mt_hub_folder_id(char id[MT_LIMIT_HUB_NAME], const char *folder);

/* A path from parts; false where it is too long. */
bool mt_hub_join(char path[MT_LIMIT_PATH], const char *folder, const char *name);

#endif
