/* Removing models that are on this machine. */
#ifndef MT_HUB_REMOVE_H
#define MT_HUB_REMOVE_H

#include <stdint.h>

#include "base/error.h"
#include "hub/names.h"

/* Removes what a name of mt_local_list stands for: a folder below models_dir (which may be NULL), else of the cache a
   model with all of its revisions, or with "@revision" that one, what leads to it, and the blobs that no other revision
   refers to. No link is ever followed: of a folder that is one, the link goes. *freed: bytes of the files that went.
   MT_E_BUSY where somebody is downloading it. */
bool mt_local_remove(const char *name, const char *models_dir, mt_hub_env *env, uint64_t *freed,
                     mt_error *err) MT_NODISCARD;

/* Removes a file, a link or a folder with all that is in it; what is not there is as good as removed. */
bool mt_remove_path(const char *path, mt_error *err) MT_NODISCARD;

#endif
