/* A model's folder in the hub's cache, with the layout of the hub's own tools:

       models--owner--name/blobs/DIGEST                  files by digest
       models--owner--name/blobs/DIGEST.incomplete       the part that is downloaded
       models--owner--name/snapshots/COMMIT/NAME         links to blobs
       models--owner--name/refs/BRANCH                   the commit of a branch
       .locks/models--owner--name/DIGEST.lock            held while a blob is downloaded */
#ifndef MT_HUB_REPO_H
#define MT_HUB_REPO_H

#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"
#include "hub/names.h"

typedef struct mt_repo {
    char model[MT_LIMIT_PATH]; /* path of models--owner--name */
    char locks[MT_LIMIT_PATH]; /* and of its folder below .locks */
} mt_repo;

/* Makes missing folders; false with a sentence. */
bool mt_repo_open(mt_repo *repo, const char *cache, const char *id, mt_error *err) MT_NODISCARD;

/* The path of a blob, or of its incomplete part; false with a sentence where it is too long. */
bool mt_repo_blob(char path[MT_LIMIT_PATH], const mt_repo *repo, const char *digest, bool incomplete,
                  mt_error *err) MT_NODISCARD;

/* Whether a blob is complete: it has the right size; its digest was checked before it got its name. */
bool mt_repo_whole(const mt_repo *repo, const char *digest, uint64_t size);

/* How many bytes of a blob of this size are downloaded. */
uint64_t mt_repo_have(const mt_repo *repo, const char *digest, uint64_t size);

/* Takes the lock of a blob, without waiting: *fd is -1 where another process has it. Close *fd to release it. */
bool mt_repo_lock(const mt_repo *repo, const char *digest, int *fd, mt_error *err) MT_NODISCARD;

/* Links a blob as a file of a snapshot. */
bool mt_repo_link(const mt_repo *repo, const char *commit, const char *name, const char *digest,
                  mt_error *err) MT_NODISCARD;

/* Writes which commit a branch or tag means. */
bool mt_repo_ref(const mt_repo *repo, const char *revision, const char *commit, mt_error *err) MT_NODISCARD;

/* Fails where the disk has not so many bytes left. */
bool mt_repo_check_room(const mt_repo *repo, uint64_t bytes, mt_error *err) MT_NODISCARD;

/* Sets the error for errno and a path in the cache, with advice. Returns false. */
bool mt_repo_fail(const char *path, mt_error *err);

#endif
