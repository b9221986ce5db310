/* The store: answers that are kept and can be asked for by id, bounded in number and bytes. Beyond that, the least
   recently used answers of the owner with the most are dropped. Kept by sqlite, in memory or in a file that outlives
   the process. Any thread.

   The store has a thread that writes, so that mt_store_put never waits for the disk. mt_store_get and mt_store_remove
   wait for an answer that was put and is not written yet. */
#ifndef MT_API_STORE_H
#define MT_API_STORE_H

#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

typedef struct mt_store mt_store;

/* A number of answers, and the bytes of their texts: how much is kept, or may be. */
typedef struct mt_store_size {
    int64_t entries, bytes;
} mt_store_size;

/* path NULL: in memory. limits: of all owners together. NULL: *err. Free with mt_store_close. */
mt_store *mt_store_open(const char *path, mt_store_size limits, mt_error *err) MT_NODISCARD;
/* Whether the file is a store that this version reads, or is still to be made; changes nothing. False: *err. */
bool mt_store_check(const char *path, mt_error *err) MT_NODISCARD;
void mt_store_close(mt_store *store); /* writes what waits; NULL is fine */

/* The same store as seen by another owner, in which only that owner's answers are found. The store that mt_store_open
   returns is that of owner "". Free with mt_store_close, before the store itself. */
mt_store *mt_store_view(mt_store *store, const char *owner);

/* Gives the answers of owner "" to the owner of this view: those that were kept before the server had keys. */
void mt_store_adopt(mt_store *store);

/* Keeps the text of a JSON object, in place of the owner's earlier one with that id; owns and frees text (mt_free).
   Where too many wait to be written it is dropped. Failure is only logged, since the answer itself was sent. */
void mt_store_put(mt_store *store, const char *id, char *text, size_t len);

/* The kept object, a new reference; NULL: there is none. May wait for the disk. A store of NULL is empty. */
json_t *mt_store_get(mt_store *store, const char *id);

bool mt_store_remove(mt_store *store, const char *id); /* false: there was none */

typedef struct mt_store_stats {
    mt_store_size held; /* what is written */
    size_t waiting;     /* answers that are not written yet */
    uint64_t failed;    /* answers that could not be kept */
} mt_store_stats;

mt_store_stats mt_store_look(mt_store *store); /* never waits for the disk */

#endif
