/* Answers that were given and may be referred to, by id: at most so many and so many bytes, and of whoever keeps most
   those go first that were not asked for longest. Kept by sqlite, in memory or in a file that outlives the process. Any
   thread.

   A thread of the store's own writes, so that who puts an answer in never waits for the disk; whoever asks for one that
   has yet to be written waits until it is. */
#ifndef MT_API_STORE_H
#define MT_API_STORE_H

#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

typedef struct mt_store mt_store;

typedef struct mt_store_limits {
    int64_t entries, bytes;
} mt_store_limits;

/* path NULL: in memory. NULL with a sentence. Free with mt_store_close. */
mt_store *mt_store_open(const char *path, mt_store_limits limits, mt_error *err) MT_NODISCARD;
void mt_store_close(mt_store *store); /* writes what waits; NULL is fine */

/* The same store as another owner sees it: what one keeps is not there for the others. What mt_store_open gives is that
   of "". Free with mt_store_close, before the store itself. */
mt_store *mt_store_view(mt_store *store, const char *owner);

/* Gives what "" keeps to the owner of this view. */
void mt_store_adopt(mt_store *store);

/* Keeps the text of a JSON object, which it takes: it is the allocator's. What cannot be kept is a line in the log: the
   answer itself has been given. */
void mt_store_put(mt_store *store, const char *id, char *text, size_t len);

/* The object; a new reference, or NULL where there is none. NULL as the store is an empty one. */
json_t *mt_store_get(mt_store *store, const char *id);

bool mt_store_remove(mt_store *store, const char *id); /* false: there was none */
void mt_store_flush(mt_store *store);                  /* waits until all that was put is written */

typedef struct mt_store_stats {
    mt_store_limits held; /* what is written */
    size_t waiting;       /* entries that are not yet */
    uint64_t failed;      /* entries that could not be kept */
} mt_store_stats;

mt_store_stats mt_store_look(mt_store *store); /* never waits for the disk */

#endif
