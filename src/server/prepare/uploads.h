/* Pictures and videos that clients have uploaded, to refer to them in later requests instead of sending them again: a
   URL "upload:ID" stands for the bytes. They are in memory, and the one that was not used for longest goes first: a
   client that is told so sends it again. uploads.c has the rules. Any thread may call. */
#ifndef MT_SERVER_PREPARE_UPLOADS_H
#define MT_SERVER_PREPARE_UPLOADS_H

#include <pthread.h>
#include <stdint.h>

#include "api/random.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/room.h"
#include "media/limits.h"
#include "media/watch.h"

struct mt_account;
typedef struct mt_upload mt_upload;
typedef struct mt_upload_owner mt_upload_owner;

typedef struct mt_uploads_stats {
    size_t count, bytes; /* kept now */
    size_t limit;        /* bytes that may be */
    uint64_t taken, evicted, missed;
} mt_uploads_stats;

typedef struct mt_uploads {
    pthread_mutex_t lock; /* of all fields below */
    mt_room *room;        /* what the bytes are taken from; borrowed */
    size_t limit;         /* bytes */
    mt_upload *newest, *oldest;
    mt_upload_owner *owners;
    mt_uploads_stats stats;
} mt_uploads;

/* Nothing is kept before mt_uploads_allow says how many bytes may be. Free with mt_uploads_free, which takes a zeroed
   one, too; no other thread uses it then. */
void mt_uploads_init(mt_uploads *uploads, mt_room *room);
void mt_uploads_allow(mt_uploads *uploads, size_t limit);
void mt_uploads_free(mt_uploads *uploads);

/* Keeps len bytes, for which `charged` bytes of the room are taken already, and owns both. id: what they are called
   from now on. False: they are more than may be kept; the caller still owns them. */
bool mt_uploads_add(mt_uploads *uploads, const struct mt_account *owner, char *data, size_t len, size_t charged,
                    char id[MT_RANDOM_ID]) MT_NODISCARD;

/* Whether an account has an upload of that id; remove: and it is forgotten. */
bool mt_uploads_has(mt_uploads *uploads, const struct mt_account *owner, const char *id, bool remove);

bool mt_uploads_is(const char *url, size_t len); /* whether it begins with "upload:" */

/* The bytes behind a URL "upload:ID". The watch is asked for memory. False: *err. Free with mt_buf_free in any case. */
bool mt_uploads_load(mt_uploads *uploads, const struct mt_account *owner, const char *url, size_t len,
                     const mt_media_watch *watch, mt_buf *bytes, mt_error *err) MT_NODISCARD;

mt_uploads_stats mt_uploads_look(mt_uploads *uploads);

#endif
