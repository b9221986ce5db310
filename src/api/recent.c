/* See recent.h. Calls hold a reference, since they may outlive their connection. */
#include "api/recent.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "api/random.h"
#include "base/alloc.h"
#include "base/json_tree.h"

struct mt_recent {
    atomic_size_t holders;
    mt_room *room;
    pthread_mutex_t lock; /* of the rest */
    char id[MT_RANDOM_ID];
    char *text; /* NULL: nothing is kept */
    size_t len;
    bool used; /* mt_recent_get has found it */
};

mt_recent *mt_recent_new(mt_room *room)
{
    mt_recent *recent = mt_alloc(sizeof(*recent));

    atomic_init(&recent->holders, 1);
    recent->room = room;
    pthread_mutex_init(&recent->lock, NULL);
    return recent;
}

mt_recent *mt_recent_hold(mt_recent *recent)
{
    if (recent)
        atomic_fetch_add_explicit(&recent->holders, 1, memory_order_relaxed); /* relaxed: the caller has a reference */
    return recent;
}

/* The caller has the lock, or the last reference. */
static void forget(mt_recent *recent)
{
    if (recent->text)
        mt_room_give(recent->room, recent->len);
    mt_free(recent->text);
    recent->text = NULL;
    recent->used = false;
}

void mt_recent_release(mt_recent *recent)
{
    /* acq_rel: what other holders did happens before it is freed */
    if (!recent || atomic_fetch_sub_explicit(&recent->holders, 1, memory_order_acq_rel) > 1)
        return;
    forget(recent);
    pthread_mutex_destroy(&recent->lock);
    mt_free(recent);
}

void mt_recent_put(mt_recent *recent, const char *id, char *text, size_t len)
{
    pthread_mutex_lock(&recent->lock);
    forget(recent);
    if (mt_room_take_leaving(recent->room, len, recent->room->limit / 8 * 7)) {
        snprintf(recent->id, sizeof(recent->id), "%s", id);
        recent->text = text;
        recent->len = len;
    } else
        mt_free(text);
    pthread_mutex_unlock(&recent->lock);
}

json_t *mt_recent_get(mt_recent *recent, const char *id)
{
    json_t *kept = NULL;

    if (!recent)
        return NULL;
    pthread_mutex_lock(&recent->lock);
    if (recent->text && strcmp(recent->id, id) == 0) {
        recent->used = true;
        kept = mt_json_tree_try(recent->text, recent->len);
    }
    pthread_mutex_unlock(&recent->lock);
    return kept;
}

void mt_recent_fail(mt_recent *recent)
{
    if (!recent)
        return;
    pthread_mutex_lock(&recent->lock);
    if (recent->used)
        forget(recent);
    pthread_mutex_unlock(&recent->lock);
}
