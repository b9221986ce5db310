/* Cache tiers seen from the engine: pages, recurrent states and features of pictures are stored in tiers and read back.
   Belongs to the engine's thread; transfers (transfers) are performed by threads of their own (keep_transfer.c).

   1. A key is a digest of all that the bytes depend on: weights, the device's fingerprint (rule R12 of
      docs/numerics.md), the shape of pages, the salt, and every token and picture up to the end of the page or state;
      of features, the picture. So keys are the same in every process, and a record under a key is what would be
      computed (keep_key.c).
   2. Each page, state and picture is stored once (keep_store.c). While its bytes are read, its memory is held as by a
      sequence; so nothing is copied on a device whose memory is the host's.
   3. What was read back is used as if it had been computed (keep_fetch.c, keep_view.c).
   4. No failure here fails a request: what cannot be read back is computed. */
#include "engine/keep.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "engine/keep_inside.h"
#include "media/digest.h"

#define FINISH_NS UINT64_C(5000000000) /* how long mt_keep_free waits until the backlog is stored */

/* ---- between steps ---- */

/* Handles one transfer whose bytes have come to the host. False where its sequence must go back to the queue. */
static bool take_come(mt_engine *e, mt_keep_transfer *x)
{
    mt_sequence *s = x->s;
    if (x->kind == MT_KEEP_NOTHING) {
        if (mt_keep_heard(e, x))
            (void)mt_keep_begin(e, s); /* looks again, now that the remote store's answer is known */
    } else if (x->view) {
        mt_keep_receive_view(e, x);
    } else if (!s) {
        mt_keep_transfer_end(e, x);
    } else {
        return mt_keep_receive(e, x);
    }
    return true;
}

/* Handles all transfers that have come and all transfers that the device has finished: transfers one after the other as
   they were begun, so that a sequence's pages count in their order. Returns a sequence that must go back to the queue;
   NULL: none. */
static mt_sequence *take_all(mt_engine *e)
{
    for (;;) {
        mt_keep_transfer *x = mt_keep_transfer_first(e->keep, MT_KEEP_TRANSFER_SENDING);
        const bool sent = x && mt_sending_gone(e->dev, x->sending);
        if (!sent && !(x = mt_keep_transfer_first(e->keep, MT_KEEP_TRANSFER_DONE)))
            return NULL;
        mt_sequence *s = x->s;
        if (!(sent ? mt_keep_received(e, x) : take_come(e, x)))
            return s;
    }
}

mt_sequence *mt_keep_turn(mt_engine *e)
{
    mt_keep *k = e->keep;
    bool under_way;
    if (!k)
        return NULL;
    mt_keep_end_stores(e, &under_way);
    mt_sequence *back = take_all(e);
    if (back)
        return back;
    for (size_t i = 0; i < e->running_count; i++) {
        if (e->running[i]->kept.end)
            mt_keep_fetch(e, e->running[i]);
        else if (!e->running[i]->kept.asking)
            mt_keep_store(e, e->running[i]);
    }
    mt_keep_fetch_views(e);
    mt_keep_work_off(e);
    e->stats.keep = k->stats;
    return NULL;
}

bool mt_keep_rest(mt_engine *e)
{
    mt_keep *k = e->keep;
    bool any = false;
    for (size_t i = 0; k && i < MT_KEEP_TRANSFERS; i++) {
        mt_keep_transfer *x = &k->transfer[i];
        const mt_keep_transfer_state state = mt_keep_transfer_look(k, x);
        if (state == MT_KEEP_TRANSFER_SENDING)
            mt_sending_wait(e->dev, x->sending);
        any |= state == MT_KEEP_TRANSFER_SENDING || state == MT_KEEP_TRANSFER_READING;
    }
    return any;
}

void mt_keep_leave(mt_engine *e, mt_sequence *s)
{
    if (!e->keep)
        return;
    const bool waited = mt_kept_waits(&s->kept); /* even if nothing has come yet */
    mt_keep_end_fetch(e, s);
    if (waited || s->seq.done == 0)
        return;
    mt_seq_rest(&s->seq);
    mt_keep_store(e, s);
}

/* ---- beginning and end ---- */

static size_t page_bytes(const mt_engine *e, size_t g)
{
    const mt_kv_shape shape = mt_model_kv_shape(e->spec, g, mt_kv_cached_type(e->dev));
    return mt_kv_page_bytes(e->dev, &shape);
}

static size_t state_bytes(const mt_engine *e)
{
    return e->spec->state.layers ? mt_state_slot_bytes(e->dev, &e->spec->state) : 0;
}

static size_t feature_bytes(const mt_engine *e)
{
    return e->tower.cursor ? MT_KEEP_ROWS * e->tower.width * sizeof(float) : 0;
}

/* Bytes of memory of transfer number `number`: copies of what is stored, or what is fetched. */
static size_t room_bytes(const mt_engine *e, size_t number)
{
    size_t pages = 0;
    for (size_t g = 0; g < e->spec->group_count; g++)
        pages += page_bytes(e, g);
    if (number < MT_KEEP_STORES)
        return MT_MAX(state_bytes(e) ? pages : 0, feature_bytes(e));
    if (number < MT_KEEP_STORES + MT_KEEP_FETCHES)
        return MT_MAX(pages, feature_bytes(e));
    return state_bytes(e) && number < MT_KEEP_ASK_FIRST ? pages + state_bytes(e) : 0;
}

uint64_t mt_keep_bytes(const mt_engine *e)
{
    const bool apart = mt_device_apart(e->dev);
    uint64_t bytes = 0, read = state_bytes(e) + feature_bytes(e); /* copies on the host */
    for (size_t g = 0; g < e->spec->group_count; g++)
        read += page_bytes(e, g);
    for (size_t i = 0; i < MT_KEEP_TRANSFERS; i++)
        bytes += room_bytes(e, i) + (i < MT_KEEP_STORES && apart ? read : 0);
    return bytes + (apart ? 0 : (MT_KEEP_STORES + MT_KEEP_FETCHES) * feature_bytes(e));
}

/* Makes all transfers, with the device objects that each kind needs. */
static void make_transfers(mt_keep *k, mt_engine *e)
{
    for (size_t i = 0; i < MT_KEEP_TRANSFERS; i++) {
        mt_keep_transfer *x = &k->transfer[i];
        const size_t room = room_bytes(e, i);
        mt_held_init(&x->held);
        if (i >= MT_KEEP_ASK_FIRST && k->tiers.remote)
            x->keys = mt_alloc_array(MT_REMOTE_STORE_ASKED, sizeof(*x->keys));
        if (room && i < MT_KEEP_STORES)
            x->room = mt_alloc_aligned(64, room);
        if (room && i >= MT_KEEP_STORES) {
            x->sending = mt_sending_new(e->set, room);
            x->room = mt_sending_room(e->dev, x->sending);
        }
        for (size_t g = 0; i < MT_KEEP_STORES && g < k->groups; g++)
            x->reading[g] = mt_reading_aside(e->set, k->page_bytes[g]);
        if (i < MT_KEEP_STORES && k->state_bytes)
            x->reading[MT_KV_GROUPS] = mt_reading_aside(e->set, k->state_bytes);
        if (i < MT_KEEP_STORES && k->feature_bytes)
            x->features = mt_reading_aside(e->set, k->feature_bytes);
        if (i < MT_KEEP_STORES + MT_KEEP_FETCHES && k->feature_bytes)
            x->rows = mt_tensor_new(e->set, MT_KEEP_ROWS, e->tower.width);
    }
}

const uint8_t *mt_keep_root(const mt_keep *k)
{
    return k->root;
}

static void tell_dropped(void *ctx, const uint8_t key[MT_TIER_KEY], uint32_t kind)
{
    const mt_engine *e = ctx;
    if (kind == MT_KEEP_PAGE)
        mt_kv_events_dropped(e->params.events, mt_tree_block_hash(key), MT_KV_FILES);
}

static void tell_gone(void *ctx, const uint8_t key[MT_TIER_KEY], uint32_t kind)
{
    const mt_engine *e = ctx;
    if (kind == MT_KEEP_PAGE)
        mt_kv_events_dropped(e->params.events, mt_tree_block_hash(key), MT_KV_HOST);
}

mt_keep *mt_keep_new(mt_engine *e, const mt_tiers *tiers, const uint8_t identity[32], void (*wake)(mt_engine *e),
                     mt_error *err)
{
    static const char what[] = "motet cache 1";
    const uint32_t fingerprint = mt_device_fingerprint(e->dev);
    mt_keep *k = mt_alloc(sizeof(*k));
    k->tiers = *tiers;
    k->engine = e;
    k->wake = wake;
    k->groups = e->spec->group_count;
    k->state_bytes = state_bytes(e);
    k->feature_bytes = feature_bytes(e);
    for (size_t g = 0; g < k->groups; g++)
        k->all_bytes += k->page_bytes[g] = page_bytes(e, g);
    const uint64_t sizes[] = {MT_PAGE_TOKENS, k->groups, k->state_bytes, k->page_bytes[0],
                              k->groups > 1 ? k->page_bytes[1] : 0};
    mt_digest(k->root,
              (mt_digest_part[]){
                  {what, sizeof(what)}, {identity, 32}, {&fingerprint, sizeof(fingerprint)}, {sizes, sizeof(sizes)}},
              4);
    const size_t half = mt_tree_total(e->tree, 0) / 2 + 1;
    k->backlog_most = half < MT_KEEP_BACKLOG ? half : MT_KEEP_BACKLOG;
    k->backlog = mt_alloc_array(k->backlog_most, sizeof(*k->backlog));
    make_transfers(k, e);
    if (e->params.events && k->tiers.disk)
        mt_disk_watch(k->tiers.disk, tell_dropped, k->told = e);
    if (e->params.events && k->tiers.host_store)
        mt_host_store_watch(k->tiers.host_store, tell_gone, e);
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->given, NULL);
    if (mt_transfers_start(k, err))
        return k;
    k->engine = NULL;
    mt_keep_free(k);
    return NULL;
}

/* Stores the backlog before the end, for at most FINISH_NS. Not where the only tier is memory of this process. */
static void finish_backlog(mt_keep *k)
{
    const struct timespec moment = {.tv_nsec = 200000};
    const uint64_t until = mt_clock_ns() + FINISH_NS;
    const bool lasts = (k->tiers.disk && !mt_disk_look(k->tiers.disk).failed) || k->tiers.remote;
    bool under_way;
    while (lasts && (k->backlog_count > 0 || mt_keep_rest(k->engine)) && mt_clock_ns() < until) {
        mt_keep_end_stores(k->engine, &under_way);
        mt_keep_work_off(k->engine);
        nanosleep(&moment, NULL);
    }
    mt_keep_shed(k->engine);
}

void mt_keep_free(mt_keep *k)
{
    if (!k)
        return;
    if (k->told)
        mt_disk_unwatch(k->tiers.disk, k->told);
    if (k->engine) {
        finish_backlog(k);
        mt_transfers_stop(k);
        for (size_t i = 0; i < MT_KEEP_VIEWS; i++)
            if (k->view[i].medium)
                mt_keep_end_view(k->engine, &k->view[i], false);
        for (size_t i = 0; i < MT_KEEP_TRANSFERS; i++)
            if (k->transfer[i].state != MT_KEEP_TRANSFER_FREE)
                mt_keep_transfer_end(k->engine, &k->transfer[i]);
    }
    for (size_t i = 0; i < MT_KEEP_STORES; i++)
        mt_free(k->transfer[i].room);
    for (size_t i = MT_KEEP_ASK_FIRST; i < MT_KEEP_TRANSFERS; i++)
        mt_free(k->transfer[i].keys);
    mt_free(k->backlog);
    pthread_cond_destroy(&k->given);
    pthread_mutex_destroy(&k->lock);
    mt_free(k);
}
