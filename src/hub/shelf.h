/* A model's folder in the hub's cache, written as the hub's own tools write it:

       models--owner--name/blobs/DIGEST                  files by what they hold
       models--owner--name/blobs/DIGEST.incomplete       what has come of one
       models--owner--name/snapshots/COMMIT/NAME         links to blobs
       models--owner--name/refs/BRANCH                   the commit it led to
       .locks/models--owner--name/DIGEST.lock            held by who downloads the blob */
#ifndef MT_HUB_SHELF_H
#define MT_HUB_SHELF_H

#include <stdint.h>

#include "base/error.h"
#include "hub/names.h"

typedef struct mt_shelf {
    char model[MT_LIMIT_PATH];
    char locks[MT_LIMIT_PATH];
} mt_shelf;

/* Makes the folders that are missing; false with a sentence where it may not. */
bool mt_shelf_open(mt_shelf *shelf, const char *cache, const char *id, mt_error *err) MT_NODISCARD;

/* The path of a blob, or of what has come of it; false with a sentence where it is too long. */
bool mt_shelf_blob(char path[MT_LIMIT_PATH], const mt_shelf *shelf, const char *digest, bool incomplete,
                   mt_error *err) MT_NODISCARD;

/* Whether a blob is there: one of the right size was checked when it got its name. */
bool mt_shelf_whole(const mt_shelf *shelf, const char *digest, uint64_t size);

/* Bytes that are there of a blob of this size: all where it is whole, else what has come. */
uint64_t mt_shelf_have(const mt_shelf *shelf, const char *digest, uint64_t size);

/* Takes the lock of a blob, without waiting: *fd is -1 where somebody else holds it. Close it to let go. */
bool mt_shelf_lock(const mt_shelf *shelf, const char *digest, int *fd, mt_error *err) MT_NODISCARD;

/* Makes the blob a file of a snapshot. */
bool mt_shelf_link(const mt_shelf *shelf, const char *commit, const char *name, const char *digest,
                   mt_error *err) MT_NODISCARD;

/* Notes which commit a branch or a tag leads to. */
bool mt_shelf_ref(const mt_shelf *shelf, const char *revision, const char *commit, mt_error *err) MT_NODISCARD;

/* Fails where the disk has no room for so many bytes more. */
bool mt_shelf_check_room(const mt_shelf *shelf, uint64_t bytes, mt_error *err) MT_NODISCARD;

/* What errno says of a path in the cache, and what to do. Returns false. */
bool mt_shelf_fail(const char *path, mt_error *err);

#endif
