/* A list from the most to the least recently used entry. Its bytes are taken from the server's room for requests: at
   most MT_LIMIT_RENDERED_BYTES, and a sixteenth of the room. */
#include "server/prepare/rendered.h"

#include <string.h>

#include "base/alloc.h"
#include "server/limits.h"

struct mt_rendered_entry {
    mt_rendered_entry *older;
    uint8_t key[MT_DIGEST_BYTES];
    char *data;
    size_t len;
};

void mt_rendered_init(mt_rendered *r, mt_room *room)
{
    *r = (mt_rendered){.room = room};
    pthread_mutex_init(&r->lock, NULL);
}

/* Removes the entry that *at points to. */
static void drop(mt_rendered *r, mt_rendered_entry **at)
{
    mt_rendered_entry *e = *at;

    *at = e->older;
    r->stats.count--;
    r->stats.bytes -= e->len;
    mt_room_give(r->room, e->len);
    mt_free(e->data);
    mt_free(e);
}

void mt_rendered_free(mt_rendered *r)
{
    if (!r->room)
        return;
    while (r->newest)
        drop(r, &r->newest);
    pthread_mutex_destroy(&r->lock);
    r->room = NULL;
}

void mt_rendered_key(uint8_t key[MT_DIGEST_BYTES], const mt_buf *bytes, uint32_t pages, uint32_t side)
{
    const uint32_t how[2] = {pages, side};
    const mt_digest_part parts[] = {{bytes->data, bytes->len}, {how, sizeof(how)}};

    mt_digest(key, parts, 2);
}

bool mt_rendered_find(mt_rendered *r, const uint8_t key[MT_DIGEST_BYTES], mt_buf *out)
{
    mt_rendered_entry **at = &r->newest, *e;
    bool found;

    pthread_mutex_lock(&r->lock);
    while (*at && memcmp((*at)->key, key, MT_DIGEST_BYTES) != 0)
        at = &(*at)->older;
    e = *at;
    found = e && mt_buf_add(out, e->data, e->len);
    if (found) {
        *at = e->older;
        e->older = r->newest;
        r->newest = e;
    }
    r->stats.reused += found;
    pthread_mutex_unlock(&r->lock);
    return found;
}

void mt_rendered_keep(mt_rendered *r, const uint8_t key[MT_DIGEST_BYTES], const mt_buf *what, size_t pages)
{
    const size_t most = MT_MIN(r->room->limit / 16, MT_LIMIT_RENDERED_BYTES);
    mt_rendered_entry *e;

    pthread_mutex_lock(&r->lock);
    r->stats.read++;
    r->stats.pages += pages;
    for (e = r->newest; e && memcmp(e->key, key, MT_DIGEST_BYTES) != 0;)
        e = e->older; /* another thread may have read the same document meanwhile */
    if (!e && what->len > 0 && what->len <= most) {
        while (r->stats.bytes + what->len > most) {
            mt_rendered_entry **last = &r->newest;

            while ((*last)->older)
                last = &(*last)->older;
            drop(r, last);
        }
        if (mt_room_take(r->room, what->len)) {
            e = mt_alloc(sizeof(*e));
            e->older = r->newest;
            memcpy(e->key, key, MT_DIGEST_BYTES);
            e->data = mt_alloc(what->len);
            memcpy(e->data, what->data, what->len);
            e->len = what->len;
            r->newest = e;
            r->stats.count++;
            r->stats.bytes += e->len;
        }
    }
    pthread_mutex_unlock(&r->lock);
}

mt_rendered_stats mt_rendered_look(mt_rendered *r)
{
    pthread_mutex_lock(&r->lock);
    mt_rendered_stats stats = r->stats;
    pthread_mutex_unlock(&r->lock);
    return stats;
}
