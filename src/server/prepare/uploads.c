/* A list from the newest to the oldest. Invariants:
   1. An upload has one owner (an account; NULL where the server has no keys), and only for that owner is it there. Its
      id is random, so that without keys no client finds files of others.
   2. The bytes of all are taken from the room for requests; they are at most `limit`, which is a quarter of it.
   3. Where there is no more room, the account that has most of it loses what it has not used for longest. Where there
      are too many, it is the account that has the most: else one that keeps thousands of tiny ones would drive out the
      pictures of all others.
   4. An upload that a thread copies (uses > 0) stays in memory until that is done, and leaves the list at once. */
#include "server/prepare/uploads.h"

#include <string.h>

#include "base/alloc.h"
#include "media/limits.h"
#include "server/limits.h"

static const char scheme[] = "upload:";

/* The uploads of an account. In a list while there are any, so that the account with the most is found without adding
   up all. */
struct mt_upload_owner {
    mt_upload_owner *next;
    const struct mt_account *account;
    size_t count, bytes;
};

struct mt_upload {
    mt_upload *newer, *older;
    mt_upload_owner *owner; /* until it is gone */
    char *data;
    size_t len, charged;
    size_t uses; /* threads that copy it */
    bool gone;   /* not in the list any more */
    char id[MT_RANDOM_ID];
};

void mt_uploads_init(mt_uploads *u, mt_room *room)
{
    *u = (mt_uploads){.room = room};
    pthread_mutex_init(&u->lock, NULL);
}

void mt_uploads_allow(mt_uploads *u, size_t limit)
{
    pthread_mutex_lock(&u->lock);
    u->limit = limit;
    pthread_mutex_unlock(&u->lock);
}

static void link_newest(mt_uploads *u, mt_upload *each)
{
    each->newer = NULL;
    each->older = u->newest;
    *(u->newest ? &u->newest->newer : &u->oldest) = each;
    u->newest = each;
}

static void unlink_upload(mt_uploads *u, mt_upload *each)
{
    *(each->newer ? &each->newer->older : &u->newest) = each->older;
    *(each->older ? &each->older->newer : &u->oldest) = each->newer;
}

static void release(mt_uploads *u, mt_upload *each)
{
    if (!each->gone || each->uses > 0)
        return;
    mt_room_give(u->room, each->charged);
    mt_free(each->data);
    mt_free(each);
}

static mt_upload_owner *find_owner(const mt_uploads *u, const struct mt_account *account)
{
    mt_upload_owner *each = u->owners;

    while (each && each->account != account)
        each = each->next;
    return each;
}

/* Finds the owner or makes it, and counts an upload. */
static mt_upload_owner *own(mt_uploads *u, const struct mt_account *account, size_t bytes)
{
    mt_upload_owner *owner = find_owner(u, account);

    if (!owner) {
        owner = mt_alloc(sizeof(*owner));
        *owner = (mt_upload_owner){.next = u->owners, .account = account};
        u->owners = owner;
    }
    owner->count++;
    owner->bytes += bytes;
    return owner;
}

static void disown(mt_uploads *u, mt_upload_owner *owner, size_t bytes)
{
    mt_upload_owner **at = &u->owners;

    owner->bytes -= bytes;
    if (--owner->count > 0)
        return;
    while (*at != owner)
        at = &(*at)->next;
    *at = owner->next;
    mt_free(owner);
}

static void drop(mt_uploads *u, mt_upload *each)
{
    unlink_upload(u, each);
    disown(u, each->owner, each->charged);
    u->stats.count--;
    u->stats.bytes -= each->charged;
    each->gone = true;
    release(u, each);
}

void mt_uploads_free(mt_uploads *u)
{
    if (!u->room)
        return;
    while (u->oldest)
        drop(u, u->oldest);
    pthread_mutex_destroy(&u->lock);
    u->room = NULL;
}

/* The one that goes first: the oldest of the account that has most bytes, or the most uploads. */
static mt_upload *choose(const mt_uploads *u, bool too_many)
{
    const mt_upload_owner *most = u->owners;
    mt_upload *found = u->oldest;

    for (const mt_upload_owner *each = most; each; each = each->next)
        if (too_many ? each->count > most->count : each->bytes > most->bytes)
            most = each;
    while (found->owner != most)
        found = found->newer;
    return found;
}

bool mt_uploads_add(mt_uploads *u, const struct mt_account *owner, char *data, size_t len, size_t charged,
                    char id[MT_RANDOM_ID])
{
    mt_upload *each;

    pthread_mutex_lock(&u->lock);
    if (charged > u->limit || len == 0) {
        pthread_mutex_unlock(&u->lock);
        return false;
    }
    while (u->stats.count > 0 && (u->stats.bytes + charged > u->limit || u->stats.count == MT_LIMIT_UPLOADED)) {
        drop(u, choose(u, u->stats.count == MT_LIMIT_UPLOADED));
        u->stats.evicted++;
    }
    each = mt_alloc(sizeof(*each));
    *each = (mt_upload){.owner = own(u, owner, charged), .data = data, .len = len, .charged = charged};
    mt_random_id(each->id, "pic_");
    memcpy(id, each->id, sizeof(each->id));
    link_newest(u, each);
    u->stats.count++;
    u->stats.bytes += charged;
    u->stats.taken++;
    pthread_mutex_unlock(&u->lock);
    return true;
}

static mt_upload *find(const mt_uploads *u, const struct mt_account *owner, const char *id, size_t len)
{
    for (mt_upload *each = u->newest; each; each = each->older)
        if (each->owner->account == owner && strlen(each->id) == len && memcmp(each->id, id, len) == 0)
            return each;
    return NULL;
}

/* The same, and it is the newest from now on. */
static mt_upload *use(mt_uploads *u, const struct mt_account *owner, const char *id, size_t len)
{
    mt_upload *each = find(u, owner, id, len);

    if (each) {
        unlink_upload(u, each);
        link_newest(u, each);
    } else {
        u->stats.missed++;
    }
    return each;
}

bool mt_uploads_has(mt_uploads *u, const struct mt_account *owner, const char *id, bool remove)
{
    mt_upload *each;

    pthread_mutex_lock(&u->lock);
    each = use(u, owner, id, strlen(id));
    if (each && remove)
        drop(u, each);
    pthread_mutex_unlock(&u->lock);
    return each != NULL;
}

bool mt_uploads_is(const char *url, size_t len)
{
    return len >= strlen(scheme) && memcmp(url, scheme, strlen(scheme)) == 0;
}

bool mt_uploads_load(mt_uploads *u, const struct mt_account *owner, const char *url, size_t len,
                     const mt_media_watch *watch, mt_buf *bytes, mt_error *err)
{
    const char *id = url + strlen(scheme);
    mt_upload *each;
    bool ok;

    len -= strlen(scheme);
    mt_buf_init(bytes, MT_LIMIT_MEDIA_BYTES);
    pthread_mutex_lock(&u->lock);
    each = use(u, owner, id, len);
    if (each)
        each->uses++;
    pthread_mutex_unlock(&u->lock);
    if (!each) {
        err->field = "upload";
        return mt_fail(err, MT_E_INVALID, "the upload \"%.*s\" is not here any more: upload it again",
                       (int)(len < MT_RANDOM_ID ? len : MT_RANDOM_ID), id);
    }
    ok = mt_media_take(watch, each->len + 1, err);
    if (ok) {
        mt_buf_add(bytes, each->data, each->len);
        ok = !bytes->full || mt_fail(err, MT_E_MEMORY, "there is no memory for the picture: try again in a moment");
    }
    pthread_mutex_lock(&u->lock);
    each->uses--;
    release(u, each);
    pthread_mutex_unlock(&u->lock);
    return ok;
}

mt_uploads_stats mt_uploads_look(mt_uploads *u)
{
    pthread_mutex_lock(&u->lock);
    mt_uploads_stats stats = u->stats;
    stats.limit = u->limit;
    pthread_mutex_unlock(&u->lock);
    return stats;
}
