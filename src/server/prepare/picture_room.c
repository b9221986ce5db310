/* The memory for pictures (picture_room.h). Where memory is short, requests may take bytes by these rules:

   1. One request has at most seven eighths of the room. The last eighth is only for clients that have no more than an
      eighth in all. So a small picture is decoded while another client's large ones fill the room.
   2. A request that has no bytes yet lets those go first that have some and wait for more. Rule 1 goes before this one.
   3. Of the requests that wait and would fit, one of the client with the fewest bytes goes first; of equals, the
      oldest.
   4. Where all requests that have bytes wait for more, one of them gives up, with MT_E_BUSY. */
#include "server/prepare/picture_room.h"

#include "base/alloc.h"
#include "base/clock.h"

#define LOOK_MS 50 /* how often a thread that waits for bytes checks whether the client has left */

void mt_picture_room_init(mt_picture_room *room, size_t limit)
{
    *room = (mt_picture_room){.limit = limit};
    pthread_mutex_init(&room->lock, NULL);
    mt_clock_cond_init(&room->freed);
}

void mt_picture_room_free(mt_picture_room *room)
{
    pthread_cond_destroy(&room->freed);
    pthread_mutex_destroy(&room->lock);
    mt_free(room->shares);
}

size_t mt_picture_room_most(const mt_picture_room *room)
{
    return room->limit - room->limit / 8;
}

/* The index of the client's element in room->shares, or room->share_count. */
static size_t find_share(const mt_picture_room *room, uint64_t client)
{
    size_t i = 0;

    while (i < room->share_count && room->shares[i].client != client)
        i++;
    return i;
}

static size_t client_bytes(const mt_picture_room *room, uint64_t client)
{
    const size_t i = find_share(room, client);

    return i < room->share_count ? room->shares[i].bytes : 0;
}

static void add_bytes(mt_picture_room *room, uint64_t client, size_t bytes)
{
    const size_t i = find_share(room, client);

    if (i == room->share_count) {
        room->shares = mt_grow(room->shares, &room->share_capacity, room->share_count + 1, sizeof(*room->shares));
        room->shares[room->share_count++] = (mt_picture_share){.client = client};
    }
    room->shares[i].bytes += bytes;
    room->used += bytes;
}

static void remove_bytes(mt_picture_room *room, uint64_t client, size_t bytes)
{
    const size_t i = find_share(room, client);

    room->shares[i].bytes -= bytes;
    if (room->shares[i].bytes == 0)
        room->shares[i] = room->shares[--room->share_count];
    room->used -= bytes;
    room->frees++;
    pthread_cond_broadcast(&room->freed);
}

/* Rules 1 and 2. stuck: how many requests that have bytes wait for more, with the one that asks: every thread must come
   to the same answer, or each lets the other go first. */
static bool fits(const mt_picture_room *room, const mt_picture_share *has, size_t bytes, size_t stuck)
{
    const size_t eighth = room->limit / 8, own = client_bytes(room, has->client);

    if (bytes > room->limit - room->used)
        return false;
    if (bytes <= eighth && own <= eighth - bytes)
        return true;
    return room->used + bytes <= room->limit - eighth && (has->bytes > 0 || stuck == 0);
}

/* Rule 3: whether another request that waits goes first. The list has the oldest first, and self perhaps not yet. */
static bool goes_later(const mt_picture_room *room, const mt_picture_waiter *self)
{
    const size_t own = client_bytes(room, self->has->client), stuck = room->stuck + (self->has->bytes > 0);
    bool older = true;

    for (const mt_picture_waiter *w = room->waiters; w; w = w->next) {
        const size_t theirs = client_bytes(room, w->has->client);

        if (w == self)
            older = false;
        else if ((theirs < own || (theirs == own && older)) && fits(room, w->has, w->bytes, stuck))
            return true;
    }
    return false;
}

static bool may_take(const mt_picture_room *room, const mt_picture_waiter *self)
{
    return fits(room, self->has, self->bytes, room->stuck) && !goes_later(room, self);
}

/* Waits a moment. Returns true where waiting is in vain (rule 4): all requests that have bytes wait for more, and none
   was given back meanwhile; then none ever will be, unless one of them fails. */
static bool wait_in_vain(mt_picture_room *room, bool holds)
{
    const struct timespec until = mt_clock_deadline(LOOK_MS);
    const uint64_t frees = room->frees;
    bool vain;

    room->stuck += holds;
    pthread_cond_timedwait(&room->freed, &room->lock, &until);
    vain = holds && room->stuck == room->holders && room->given == 0 && room->frees == frees;
    room->stuck -= holds;
    return vain;
}

static bool stopped(const atomic_bool *stop)
{
    return atomic_load_explicit(stop, memory_order_relaxed); /* relaxed: checked again and again */
}

/* Waits until self may take its bytes. False: it was stopped, or waiting is in vain. */
static bool wait_for_turn(mt_picture_room *room, mt_picture_waiter *self, const atomic_bool *stop)
{
    mt_picture_waiter **at = &room->waiters;
    bool may = may_take(room, self), vain = false;

    if (may || stopped(stop))
        return may && !stopped(stop);
    while (*at)
        at = &(*at)->next;
    *at = self;
    while (!may && !vain && !stopped(stop)) {
        vain = wait_in_vain(room, self->has->bytes > 0);
        may = may_take(room, self);
        vain = vain && !fits(room, self->has, self->bytes, room->stuck); /* else another's turn comes before */
    }
    for (at = &room->waiters; *at != self;)
        at = &(*at)->next;
    *at = self->next;
    pthread_cond_broadcast(&room->freed); /* for those that went later than self */
    return may && !stopped(stop);
}

bool mt_picture_room_take(mt_picture_room *room, mt_picture_share *has, size_t bytes, const atomic_bool *stop,
                          mt_error *err)
{
    const size_t most = mt_picture_room_most(room);
    mt_picture_waiter self = {.has = has, .bytes = bytes};
    bool ok;

    if (has->bytes > most || bytes > most - has->bytes)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "the pictures of the request take %.1f MiB to decode, and one request may have %.1f "
                       "(seven eighths of --media-memory); send fewer or smaller ones",
                       (double)(has->bytes + bytes) / (1 << 20), (double)most / (1 << 20));
    if (bytes == 0)
        return true;
    pthread_mutex_lock(&room->lock);
    ok = wait_for_turn(room, &self, stop);
    if (ok) {
        room->holders += has->bytes == 0;
        add_bytes(room, has->client, bytes);
        has->bytes += bytes;
    }
    pthread_mutex_unlock(&room->lock);
    if (ok)
        return true;
    return stopped(stop) ? mt_fail(err, MT_E_INVALID, "the request was cancelled before it began")
                         : mt_fail(err, MT_E_BUSY, "too many pictures are being decoded: try again in a moment");
}

void mt_picture_room_give(mt_picture_room *room, mt_picture_share *has, size_t bytes)
{
    if (bytes == 0)
        return;
    pthread_mutex_lock(&room->lock);
    has->bytes -= bytes;
    room->holders -= has->bytes == 0;
    remove_bytes(room, has->client, bytes);
    pthread_mutex_unlock(&room->lock);
}

void mt_picture_room_hand_over(mt_picture_room *room, const mt_picture_share *has)
{
    pthread_mutex_lock(&room->lock);
    room->holders--;
    room->given += has->bytes;
    pthread_mutex_unlock(&room->lock);
}

void mt_picture_room_end(mt_picture_room *room, const mt_picture_share *has)
{
    pthread_mutex_lock(&room->lock);
    room->given -= has->bytes;
    remove_bytes(room, has->client, has->bytes);
    pthread_mutex_unlock(&room->lock);
}

void mt_picture_room_count(mt_picture_room *room, size_t pictures, double seconds)
{
    pthread_mutex_lock(&room->lock);
    room->pictures += pictures;
    mt_histogram_add(&room->seconds, seconds);
    pthread_mutex_unlock(&room->lock);
}
