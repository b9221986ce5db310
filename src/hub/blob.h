/* Downloads one file of a hub into the cache and checks it. */
#ifndef MT_HUB_BLOB_H
#define MT_HUB_BLOB_H

#include <stdatomic.h>

#include "hub/line.h"
#include "hub/repo.h"

typedef struct mt_blob {
    const mt_repo *repo;
    const char *url;
    const char *name;   /* for messages */
    const char *digest; /* 64 digits: SHA-256; 40: git's blob hash */
    const char *commit; /* the commit that the file must be of */
    uint64_t size;
    _Atomic uint64_t *done;  /* bytes that are downloaded, for progress */
    const atomic_bool *stop; /* as for mt_line_open */
} mt_blob;

/* True when the blob is complete in the cache: it was before, another process brought it, or it was downloaded, perhaps
   in several pieces, and has the right size and digest. After a failure, what was downloaded stays, and the next call
   continues; a file with a wrong digest is deleted. */
bool mt_blob_fetch(const mt_blob *blob, mt_line *line, mt_error *err) MT_NODISCARD;

#endif
