/* Removes models from this machine. */
#ifndef MT_HUB_REMOVE_H
#define MT_HUB_REMOVE_H

#include <stdint.h>

#include "base/error.h"
#include "hub/names.h"

/* Removes the model with a name of mt_local_list: a folder below models_dir (which may be NULL); else from the cache
   all its revisions or, with "@revision", only that one, its refs, and the blobs that no other revision uses; with
   ":tag" only the GGUF files of that quantisation. What other programs keep is refused. Links are never followed: a
   folder that is a link loses the link only. *freed: bytes of the files removed. Uploaded files that no other model is
   made of are removed, too (upload.h). MT_E_BUSY while it is being downloaded. */
bool mt_local_remove(const char *name, const char *models_dir, mt_hub_env *env, uint64_t *freed,
                     mt_error *err) MT_NODISCARD;

/* Whether a model of that name can be removed: there is one, and no other program keeps it. *found: its name, which is
   not the given one where that is short (hub/known.h). False with the sentence of mt_local_remove. */
bool mt_local_removable(const char *name, const char *models_dir, mt_hub_env *env, mt_hub_name *found,
                        mt_error *err) MT_NODISCARD;

/* Whether removing that model would take files of what is in use at path, a model's folder or a file: it lies in what
   is removed, or links in it lead there, whatever names and links both are reached by. Reads folders. */
bool mt_local_affects(const char *name, const char *models_dir, mt_hub_env *env, const char *path);

/* Removes a file, a link, or a folder with its content; a missing path counts as removed. */
bool mt_remove_path(const char *path, mt_error *err) MT_NODISCARD;

#endif
