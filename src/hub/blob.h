/* One file of a hub, downloaded into the cache and checked. */
#ifndef MT_HUB_BLOB_H
#define MT_HUB_BLOB_H

#include <stdatomic.h>

#include "hub/line.h"
#include "hub/shelf.h"

typedef struct mt_blob {
    const mt_shelf *shelf;
    const char *url;
    const char *name;   /* for errors */
    const char *digest; /* 64 digits: SHA-256; 40: git's of a blob */
    const char *commit; /* that the file is to be of */
    uint64_t size;
    _Atomic uint64_t *done;  /* bytes that are here, for who looks on */
    const atomic_bool *stop; /* as the line's */
} mt_blob;

/* True when the blob is there: because it was, because another process has just brought it, or because it has come,
   perhaps in several pieces, and has the size and the digest that it should. What came stays when it fails, and is gone
   on with the next time; what has another digest goes. */
bool mt_blob_fetch(const mt_blob *blob, mt_line *line, mt_error *err) MT_NODISCARD;

#endif
