/* Answers that were given and may be referred to, by id: at most so many and so many bytes, and those that were not
   asked for longest go first. Kept by sqlite, in memory or in a file that outlives the process. Any thread. */
#ifndef MT_API_STORE_H
#define MT_API_STORE_H

#include <jansson.h>

#include "base/error.h"

typedef struct mt_store mt_store;

typedef struct mt_store_limits {
    int64_t entries, bytes;
} mt_store_limits;

/* path NULL: in memory. NULL with a sentence. Free with mt_store_close. */
mt_store *mt_store_open(const char *path, mt_store_limits limits, mt_error *err) MT_NODISCARD;
void mt_store_close(mt_store *store); /* NULL is fine */

/* Keeps the text of a JSON object. What cannot be kept is a line in the log: the answer itself has been given. */
void mt_store_put(mt_store *store, const char *id, const char *text, size_t len);

/* The object; a new reference, or NULL where there is none. NULL as the store is an empty one. */
json_t *mt_store_get(mt_store *store, const char *id);

bool mt_store_remove(mt_store *store, const char *id); /* false: there was none */

mt_store_limits mt_store_held(mt_store *store); /* how much there is */

#endif
