/* Stores pages, recurrent states and features in tiers. A page is stored once, when it is whole, by the sequence that
   computed it; a state when it becomes an anchor; features when they are known to be finite. Records that wait are held
   in the device's memory as a sequence holds them, and copied only when they are transferred. */
#include <string.h>

#include "engine/keep_inside.h"
#include "engine/media_parts.h"

static mt_pending *pending_at(mt_keep *k, size_t i)
{
    return &k->backlog[(k->backlog_first + i) % k->backlog_most];
}

/* A new element at the end of the backlog; NULL where the backlog is full. */
static mt_pending *join_line(mt_keep *k, const uint8_t key[MT_TIER_KEY])
{
    if (k->backlog_count == k->backlog_most) {
        k->stats.skipped++;
        return NULL;
    }
    mt_pending *p = pending_at(k, k->backlog_count++);
    memcpy(p->key, key, sizeof(p->key));
    mt_held_init(&p->held);
    return p;
}

/* Adds a record to the backlog: the pages of a node and, where slot is not MT_NO_PAGE, a state. */
static void wait_in_line(mt_engine *e, const uint8_t key[MT_TIER_KEY], mt_node *node, uint32_t slot)
{
    mt_pending *p = join_line(e->keep, key);
    if (!p)
        return;
    if (node)
        mt_tree_ref(e->tree, node, p->held.page);
    if (slot != MT_NO_PAGE)
        mt_anchors_ref(mt_tree_anchors(e->tree), slot);
    p->held.slot = slot;
}

/* Begins to read a page or a state from the device. False where a page of some group has been evicted. */
static bool read_pages(mt_engine *e, mt_keep_transfer *x)
{
    const mt_held *h = &x->held;
    if (h->slot != MT_NO_PAGE)
        mt_model_read_state(e->model, x->reading[MT_KV_GROUPS], h->slot);
    for (size_t g = 0; h->page[0] != MT_NO_PAGE && g < e->keep->groups; g++) {
        if (h->page[g] == MT_NO_PAGE)
            return false;
        mt_model_read_page(e->model, x->reading[g], g, h->page[g]);
    }
    return true;
}

/* The rows of features of a picture lie anywhere: gathers them, then begins to read. */
static void read_features(mt_engine *e, mt_keep_transfer *x)
{
    const mt_held *h = &x->held;
    const uint32_t *rows = mt_feature_cache_features(e->feature_cache, h->medium);
    mt_index_write(e->dev, e->features.which, rows + h->first, h->rows);
    mt_op_gather(e->dev, x->rows, e->features.rows, e->features.which, h->rows);
    mt_read_rows(e->dev, x->features, x->rows, 0, h->rows);
}

/* Begins to read a record from the device. False where it has been evicted. */
static bool prepare(mt_engine *e, mt_keep_transfer *x, const mt_pending *p)
{
    x->store = true;
    x->held = p->held;
    x->kind = p->held.medium ? MT_KEEP_FEATURES : p->held.slot == MT_NO_PAGE ? MT_KEEP_PAGE : MT_KEEP_STATE;
    memcpy(x->key, p->key, sizeof(x->key));
    if (x->kind != MT_KEEP_FEATURES)
        return read_pages(e, x);
    read_features(e, x);
    return true;
}

/* Whether the device has finished reading. */
static bool has_come(mt_engine *e, mt_keep_transfer *x)
{
    const mt_held *h = &x->held;
    bool come = h->slot == MT_NO_PAGE || mt_reading_come(e->dev, x->reading[MT_KV_GROUPS]);
    for (size_t g = 0; h->page[0] != MT_NO_PAGE && g < e->keep->groups; g++)
        come = come && mt_reading_come(e->dev, x->reading[g]);
    return come && (!h->medium || mt_reading_come(e->dev, x->features));
}

static void add_part(mt_engine *e, mt_keep_transfer *x, mt_reading *reading, size_t bytes)
{
    x->part[x->parts++] = (mt_tier_part){(void *)(uintptr_t)mt_reading_data(e->dev, reading), bytes};
}

/* Where the host reads the page itself and not a copy, copies the page's beginning: its sequence goes on writing
   there. */
static void copy_pages(mt_keep_transfer *x)
{
    uint8_t *to = x->room;
    for (size_t i = 1; i < x->parts; to += x->part[i++].size) {
        memcpy(to, x->part[i].data, x->part[i].size);
        x->part[i].data = to;
    }
}

static void copy_features(mt_engine *e, mt_keep_transfer *x)
{
    const size_t bytes = e->tower.width * sizeof(float);
    for (size_t i = 0; i < x->held.rows; i++)
        memcpy(x->room + i * bytes, mt_reading_row(e->dev, x->features, i), bytes);
    x->part[x->parts++] = (mt_tier_part){x->room, x->held.rows * bytes};
}

/* Gives what was read to the transfers' thread; drops it where the device has failed. */
static void hand_over(mt_engine *e, mt_keep_transfer *x)
{
    mt_keep *k = e->keep;
    const mt_held *h = &x->held;
    x->parts = 0;
    if (h->slot != MT_NO_PAGE)
        add_part(e, x, x->reading[MT_KV_GROUPS], k->state_bytes);
    for (size_t g = 0; h->page[0] != MT_NO_PAGE && g < k->groups; g++)
        add_part(e, x, x->reading[g], k->page_bytes[g]);
    if (x->kind == MT_KEEP_STATE && !mt_device_apart(e->dev))
        copy_pages(x);
    if (h->medium)
        copy_features(e, x);
    if (!mt_device_well(e->dev, NULL)) {
        mt_keep_transfer_end(e, x);
        k->stats.skipped++;
        return;
    }
    x->news = k->tiers.disk && !mt_disk_has(k->tiers.disk, x->key);
    k->stats.stored_states += x->kind == MT_KEEP_STATE;
    k->stats.stored_pages += x->kind == MT_KEEP_PAGE;
    k->stats.stored_features += x->kind == MT_KEEP_FEATURES;
    mt_keep_transfer_give(k, x);
}

void mt_keep_work_off(mt_engine *e)
{
    mt_keep *k = e->keep;
    mt_keep_transfer *x;
    for (size_t i = 0; i < MT_KEEP_STORES; i++)
        if (mt_keep_transfer_look(k, &k->transfer[i]) == MT_KEEP_TRANSFER_READING && has_come(e, &k->transfer[i]))
            hand_over(e, &k->transfer[i]);
    while (k->backlog_count > 0 && (x = mt_keep_transfer_free(k, 0, MT_KEEP_STORES))) {
        const mt_pending *p = pending_at(k, 0);
        k->backlog_first = (k->backlog_first + 1) % k->backlog_most;
        k->backlog_count--;
        if (!prepare(e, x, p)) {
            mt_keep_transfer_end(e, x);
            k->stats.skipped++;
        } else if (has_come(e, x))
            hand_over(e, x);
        else
            mt_keep_transfer_set(k, x, MT_KEEP_TRANSFER_READING);
    }
}

/* The node of page `at` of s, one of those that s has computed. */
static mt_node *node_of(const mt_sequence *s, size_t at)
{
    mt_node *n = s->seq.node;
    for (size_t last = (s->seq.done - 1) / MT_PAGE_TOKENS; last > at; last--)
        n = mt_node_parent(n);
    return n;
}

static void store_page(mt_engine *e, mt_sequence *s, size_t at)
{
    mt_keep_seal(e->keep, s, at + 1);
    if (mt_tiers_lack(&e->keep->tiers, s->kept.digest[at]))
        wait_in_line(e, s->kept.digest[at], node_of(s, at), MT_NO_PAGE);
}

/* Whether states that wait, or are on their way, hold half of the slots that the running sequences leave: a tier may be
   slower than prompts are. */
static bool states_crowd(const mt_engine *e)
{
    mt_keep *k = e->keep;
    const mt_anchors *a = mt_tree_anchors(e->tree);
    size_t held = 0;
    for (size_t i = 0; i < k->backlog_count; i++)
        held += pending_at(k, i)->held.slot != MT_NO_PAGE;
    for (size_t i = 0; i < MT_KEEP_STORES; i++)
        held += k->transfer[i].held.slot != MT_NO_PAGE;
    return held >= (a->slots.total - a->spare - e->params.sequences) / 2;
}

/* Queues a state that others may continue from, with the beginning of the page that it ends in. */
static void store_state(mt_engine *e, mt_sequence *s, size_t position, uint32_t slot)
{
    uint8_t key[32];
    if (!mt_tree_anchors(e->tree)->of[slot].list) /* it was evicted meanwhile */
        return;
    mt_keep_state_key(e->keep, s, position, key);
    if (!mt_tiers_lack(&e->keep->tiers, key))
        return;
    if (states_crowd(e))
        e->keep->stats.skipped++;
    else
        wait_in_line(e, key, position % MT_PAGE_TOKENS ? node_of(s, position / MT_PAGE_TOKENS) : NULL, slot);
}

void mt_keep_store(mt_engine *e, mt_sequence *s)
{
    const size_t later = e->spec->mtp; /* the drafting head writes its part of a position one step later */
    for (; (s->kept.stored + 1) * MT_PAGE_TOKENS + later <= s->seq.done; s->kept.stored++)
        store_page(e, s, s->kept.stored);
    for (size_t i = 0; i < s->seq.state.news; i++)
        store_state(e, s, s->seq.state.published[i].position, s->seq.state.published[i].slot);
    s->seq.state.news = 0;
}

void mt_keep_encoded(mt_engine *e, const mt_request *r, const mt_media_part *part)
{
    mt_keep *k = e->keep;
    uint8_t key[MT_TIER_KEY];
    for (uint32_t at = 0; k && at < part->picture.tokens; at += MT_KEEP_ROWS) {
        const uint32_t left = part->picture.tokens - at;
        mt_keep_features_key(k, part->picture.digest, r->salt, at / MT_KEEP_ROWS, key);
        mt_pending *p = mt_tiers_lack(&k->tiers, key) ? join_line(k, key) : NULL;
        if (!p)
            continue;
        p->held.medium = part->medium;
        p->held.first = at;
        p->held.rows = left < MT_KEEP_ROWS ? left : MT_KEEP_ROWS;
        mt_medium_hold(part->medium);
        mt_feature_cache_pin(e->feature_cache, part->medium);
    }
}

bool mt_keep_shed(mt_engine *e)
{
    mt_keep *k = e->keep;
    const bool held = k->backlog_count > 0;
    for (; k->backlog_count > 0; k->backlog_count--, k->stats.skipped++)
        mt_held_release(e, &pending_at(k, k->backlog_count - 1)->held);
    return held;
}

/* Tells routers that a page is on disk. The disk may drop the page meanwhile: that is told afterwards. */
static void tell_stored(mt_engine *e, const mt_keep_transfer *x)
{
    mt_kv_events *events = e->params.events;
    const mt_tiers *t = &e->keep->tiers;
    mt_tree_block block;
    if (x->kind != MT_KEEP_PAGE || !events || !mt_tree_block_of(e->tree, x->held.page[0], &block))
        return;
    if (t->host_store && mt_host_store_is_new(t->host_store, x->key)) {
        mt_kv_events_kept(events, &block, MT_KV_HOST);
        if (!mt_host_store_mark(t->host_store, x->key))
            mt_kv_events_dropped(events, block.hash, MT_KV_HOST);
    }
    if (x->news && mt_disk_has(t->disk, x->key)) {
        mt_kv_events_kept(events, &block, MT_KV_FILES);
        if (!mt_disk_has(t->disk, x->key))
            mt_kv_events_dropped(events, block.hash, MT_KV_FILES);
    }
}

bool mt_keep_end_stores(mt_engine *e, bool *under_way)
{
    bool any = false;
    *under_way = false;
    for (size_t i = 0; i < MT_KEEP_STORES; i++) {
        mt_keep_transfer *x = &e->keep->transfer[i];
        const mt_keep_transfer_state state = mt_keep_transfer_look(e->keep, x);
        if (state == MT_KEEP_TRANSFER_DONE) {
            tell_stored(e, x);
            mt_keep_transfer_end(e, x);
        }
        any |= state == MT_KEEP_TRANSFER_DONE;
        *under_way |= state != MT_KEEP_TRANSFER_DONE && state != MT_KEEP_TRANSFER_FREE;
    }
    return any;
}

bool mt_keep_yield(mt_engine *e, bool waits)
{
    const struct timespec moment = {.tv_nsec = 200000};
    bool under_way;
    if (!e->keep)
        return false;
    if (mt_keep_shed(e) || mt_keep_end_stores(e, &under_way))
        return true;
    while (waits && under_way) {
        nanosleep(&moment, NULL);
        mt_keep_work_off(e);
        if (mt_keep_end_stores(e, &under_way))
            return true;
    }
    return false;
}
