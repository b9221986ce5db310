/* Pages and states on their way to a tier and back. Belongs to the engine's thread, but for errands: these are run by a
   thread of their own, in the order in which they were given, those that bring something back first.

   1. A key is a digest of all that the bytes depend on: the weights, the device's fingerprint (R12), the shape of
      pages, the salt, and every token and picture up to the end of the page or state. So it is the same in every
      process, and what is found under it is what would be computed.
   2. A page is stored when it is whole, by whoever computed it, once; a state when it becomes an anchor. While its
      bytes are read, pages and slots are held as a sequence holds them, so nothing is copied on a device whose memory
      is the host's.
   3. What comes back becomes part of a running sequence, page by page, as if it had been computed: so the tree learns
      of it, and others share it. The sequence has no rows meanwhile; nobody else waits.
   4. Nothing here can fail a request. What does not come back is computed. */
#include "engine/keep.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "engine/inside.h"
#include "media/digest.h"

enum { STORES = 4, FETCHES = 4, STATES = 1, ERRANDS = STORES + FETCHES + STATES, BACKLOG = 4096 };
enum { KIND_PAGE = 1, KIND_STATE = 2 };
#define LEAST_GAIN 64                  /* positions that a fetch has to save */
#define FINISH_NS UINT64_C(5000000000) /* that the end waits for what is yet to be stored */
#define MOST_LOSSES 3                  /* after which a sequence computes what is left */
#define RATE_WEIGHT 0.125              /* of the newest page in what one is expected to take */

typedef enum errand_state { FREE, GIVEN, UNDER_WAY, DONE } errand_state;

typedef struct errand {
    errand_state state; /* under the lock */
    bool store, ok;
    uint64_t order, took; /* took: nanoseconds */
    uint8_t key[MT_TIER_KEY];
    uint32_t kind;
    mt_tier_part part[MT_TIER_PARTS];
    size_t parts;

    /* the engine's */
    uint8_t *room;                         /* of those that bring something back */
    mt_reading *reading[MT_KV_GROUPS + 1]; /* of those that store */
    uint32_t page[MT_KV_GROUPS], slot;     /* held; MT_NO_PAGE: none */
    mt_sequence *s;                        /* who waits for it; NULL: nobody any more */
    size_t at;                             /* the page, or the state's position */
} errand;

/* A page, or a state with the beginning of a page, that waits to be stored. */
typedef struct pending {
    uint8_t key[MT_TIER_KEY];
    uint32_t page[MT_KV_GROUPS], slot; /* held; MT_NO_PAGE: none */
} pending;

struct mt_keep {
    mt_disk *disk;
    pending *backlog; /* a ring */
    size_t backlog_first, backlog_count, backlog_most;
    uint8_t root[32]; /* digest of all that is the same for every request */
    size_t page_bytes[MT_KV_GROUPS], groups, all_bytes, state_bytes;
    double seconds; /* that a page takes to come back; 0: not known */
    errand errand[ERRANDS];
    mt_keep_stats stats;
    mt_engine *engine;
    void (*wake)(mt_engine *e);

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t given;
    uint64_t order;
    bool ending;
};

/* ---- keys ---- */

static void page_key(const mt_keep *k, const mt_request *r, const mt_text *text, size_t page, const uint8_t *before,
                     size_t count, uint8_t out[32])
{
    const mt_passage p = mt_text_page(text, page);
    uint8_t root[32];
    if (!before) {
        mt_digest(root, (mt_digest_part[]){{k->root, 32}, {r->salt, 32}}, 2);
        before = root;
    }
    mt_passage_digest(&p, count, before, out);
}

/* Digests of the first `pages` whole pages of s. */
static void seal(const mt_keep *k, mt_sequence *s, size_t pages)
{
    mt_kept *kept = &s->kept;
    kept->digest = mt_grow(kept->digest, &kept->digest_cap, pages, sizeof *kept->digest);
    for (; kept->digests < pages; kept->digests++) {
        const size_t i = kept->digests;
        page_key(k, s->request, &s->seq.text, i, i ? kept->digest[i - 1] : NULL, MT_PAGE_TOKENS, kept->digest[i]);
    }
}

/* Of the state after `position` positions: it is that of another kind than a page. */
static void state_key(const mt_keep *k, mt_sequence *s, size_t position, uint8_t out[32])
{
    static const char kind[] = "state";
    const size_t pages = position / MT_PAGE_TOKENS, tail = position % MT_PAGE_TOKENS;
    uint8_t end[32];
    seal(k, s, pages);
    if (tail)
        page_key(k, s->request, &s->seq.text, pages, pages ? s->kept.digest[pages - 1] : NULL, tail, end);
    else
        memcpy(end, s->kept.digest[pages - 1], sizeof end);
    mt_digest(out, (mt_digest_part[]){{kind, sizeof kind}, {end, sizeof end}}, 2);
}

void mt_kept_free(mt_kept *kept)
{
    mt_free(kept->digest);
    *kept = (mt_kept){0};
}

/* ---- the thread ---- */

/* The first that was given, of those that bring something back if there is one; under the lock. */
static errand *next_errand(mt_keep *k)
{
    errand *best = NULL;
    for (size_t i = 0; i < ERRANDS; i++) {
        errand *x = &k->errand[i];
        if (x->state == GIVEN &&
            (!best || x->store < best->store || (x->store == best->store && x->order < best->order)))
            best = x;
    }
    return best;
}

static void *run(void *arg)
{
    mt_keep *k = arg;
    pthread_mutex_lock(&k->lock);
    for (;;) {
        errand *x = next_errand(k);
        if (!x && k->ending)
            break;
        if (!x) {
            pthread_cond_wait(&k->given, &k->lock);
            continue;
        }
        x->state = UNDER_WAY;
        pthread_mutex_unlock(&k->lock);
        const uint64_t began = mt_clock_ns();
        if (x->store)
            mt_disk_write(k->disk, x->key, x->kind, x->part, x->parts);
        else
            x->ok = mt_disk_read(k->disk, x->key, x->kind, x->part, x->parts);
        pthread_mutex_lock(&k->lock);
        x->took = mt_clock_ns() - began;
        x->state = DONE;
        k->wake(k->engine);
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

static void give(mt_keep *k, errand *x)
{
    pthread_mutex_lock(&k->lock);
    x->order = k->order++;
    x->state = GIVEN;
    pthread_cond_signal(&k->given);
    pthread_mutex_unlock(&k->lock);
}

static errand_state state_of(mt_keep *k, const errand *x)
{
    pthread_mutex_lock(&k->lock);
    const errand_state state = x->state;
    pthread_mutex_unlock(&k->lock);
    return state;
}

/* ---- storing ---- */

static errand *free_errand(mt_keep *k, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        if (state_of(k, &k->errand[i]) == FREE)
            return &k->errand[i];
    return NULL;
}

static void let_go(mt_engine *e, uint32_t page[MT_KV_GROUPS], uint32_t *slot)
{
    for (size_t g = 0; g < e->keep->groups; g++)
        if (page[g] != MT_NO_PAGE)
            mt_tree_release(e->tree, g, page[g], false);
    if (*slot != MT_NO_PAGE)
        mt_anchors_release(mt_tree_anchors(e->tree), *slot);
    for (size_t g = 0; g < MT_KV_GROUPS; g++)
        page[g] = MT_NO_PAGE;
    *slot = MT_NO_PAGE;
}

/* An errand is over. */
static void release(mt_engine *e, errand *x)
{
    let_go(e, x->page, &x->slot);
    x->s = NULL;
    pthread_mutex_lock(&e->keep->lock);
    x->state = FREE;
    pthread_mutex_unlock(&e->keep->lock);
}

static pending *pending_at(mt_keep *k, size_t i)
{
    return &k->backlog[(k->backlog_first + i) % k->backlog_most];
}

/* Holds what a node has, and a state, until that is stored. */
static void wait_in_line(mt_engine *e, const uint8_t key[MT_TIER_KEY], mt_node *node, uint32_t slot)
{
    mt_keep *k = e->keep;
    if (k->backlog_count == k->backlog_most) {
        k->stats.skipped++;
        return;
    }
    pending *p = pending_at(k, k->backlog_count++);
    memcpy(p->key, key, sizeof p->key);
    for (size_t g = 0; g < MT_KV_GROUPS; g++)
        p->page[g] = MT_NO_PAGE;
    if (node)
        mt_tree_ref(e->tree, node, p->page);
    if (slot != MT_NO_PAGE)
        mt_anchors_ref(mt_tree_anchors(e->tree), slot);
    p->slot = slot;
}

/* Where the bytes of what an errand holds are. False where a page of a group is not here any more, or the device has
   failed: what it gives then is nothing to keep. */
static bool read_held(mt_engine *e, errand *x)
{
    const mt_keep *k = e->keep;
    const bool pages = x->page[0] != MT_NO_PAGE;
    x->parts = 0;
    if (x->slot != MT_NO_PAGE)
        mt_model_read_state(e->model, x->reading[MT_KV_GROUPS], x->slot);
    for (size_t g = 0; pages && g < k->groups; g++) {
        if (x->page[g] == MT_NO_PAGE)
            return false;
        mt_model_read_page(e->model, x->reading[g], g, x->page[g]);
    }
    if (x->slot != MT_NO_PAGE)
        x->part[x->parts++] =
            (mt_tier_part){(void *)(uintptr_t)mt_reading_data(e->dev, x->reading[MT_KV_GROUPS]), k->state_bytes};
    for (size_t g = 0; pages && g < k->groups; g++)
        x->part[x->parts++] =
            (mt_tier_part){(void *)(uintptr_t)mt_reading_data(e->dev, x->reading[g]), k->page_bytes[g]};
    return mt_device_well(e->dev, NULL);
}

/* The beginning of a page is copied: who began it goes on writing there. */
static void copy_pages(errand *x)
{
    uint8_t *to = x->room;
    for (size_t i = 1; i < x->parts; to += x->part[i++].size) {
        memcpy(to, x->part[i].data, x->part[i].size);
        x->part[i].data = to;
    }
}

/* The next of those that wait are given to the thread. */
static void work_off(mt_engine *e)
{
    mt_keep *k = e->keep;
    errand *x;
    while (k->backlog_count > 0 && (x = free_errand(k, 0, STORES))) {
        pending *p = pending_at(k, 0);
        x->store = true;
        x->kind = p->slot == MT_NO_PAGE ? KIND_PAGE : KIND_STATE;
        x->slot = p->slot;
        memcpy(x->page, p->page, sizeof x->page);
        memcpy(x->key, p->key, sizeof x->key);
        k->backlog_first = (k->backlog_first + 1) % k->backlog_most;
        k->backlog_count--;
        if (!read_held(e, x)) {
            release(e, x);
            k->stats.skipped++;
            continue;
        }
        if (x->kind == KIND_STATE)
            copy_pages(x);
        k->stats.stored_states += x->kind == KIND_STATE;
        k->stats.stored_pages += x->kind == KIND_PAGE;
        give(k, x);
    }
}

/* The node of page `at` of s, which is among those it has computed. */
static mt_node *node_of(const mt_sequence *s, size_t at)
{
    mt_node *n = s->seq.node;
    for (size_t last = (s->seq.done - 1) / MT_PAGE_TOKENS; last > at; last--)
        n = mt_node_parent(n);
    return n;
}

static void store_page(mt_engine *e, mt_sequence *s, size_t at)
{
    seal(e->keep, s, at + 1);
    if (!mt_disk_has(e->keep->disk, s->kept.digest[at]))
        wait_in_line(e, s->kept.digest[at], node_of(s, at), MT_NO_PAGE);
}

/* A state that others may continue from, with the beginning of a page that it stands in. */
static void store_state(mt_engine *e, mt_sequence *s, size_t position, uint32_t slot)
{
    uint8_t key[32];
    if (!mt_tree_anchors(e->tree)->of[slot].list) /* it has gone meanwhile */
        return;
    state_key(e->keep, s, position, key);
    if (!mt_disk_has(e->keep->disk, key))
        wait_in_line(e, key, position % MT_PAGE_TOKENS ? node_of(s, position / MT_PAGE_TOKENS) : NULL, slot);
}

/* What s has computed since. */
static void store(mt_engine *e, mt_sequence *s)
{
    /* a head that guesses ahead writes its part of a position one step later */
    const size_t done = s->seq.done - (e->spec->mtp && s->seq.done > 0);
    for (; s->kept.stored < done / MT_PAGE_TOKENS; s->kept.stored++)
        store_page(e, s, s->kept.stored);
    for (size_t i = 0; i < s->seq.state.news; i++)
        store_state(e, s, s->seq.state.published[i].position, s->seq.state.published[i].slot);
    s->seq.state.news = 0;
}

/* ---- bringing back ---- */

/* How many pages from `at` on the tier has. */
static size_t pages_there(mt_keep *k, mt_sequence *s, size_t at, size_t most)
{
    size_t end = at;
    seal(k, s, most);
    while (end < most && mt_disk_has(k->disk, s->kept.digest[end]))
        end++;
    return end;
}

static size_t better_state(mt_keep *k, mt_sequence *s, size_t position, size_t best, size_t most)
{
    uint8_t key[32];
    if (position <= best || position > most)
        return best;
    state_key(k, s, position, key);
    return mt_disk_has(k->disk, key) ? position : best;
}

/* The last position up to `most` whose state the tier has: ends of pages, turns, and what this prompt's own states
   would be. 0 where there is none behind what s has. */
static size_t find_state(mt_keep *k, mt_sequence *s, size_t most)
{
    const size_t least = s->seq.done + LEAST_GAIN;
    size_t best = least;
    for (size_t i = 0; i < s->seq.state.stops; i++)
        best = better_state(k, s, s->seq.state.stop[i], best, most);
    for (size_t i = 0; i < s->seq.cut_count; i++)
        best = better_state(k, s, s->seq.cuts[i], best, most);
    for (size_t page = most / MT_PAGE_TOKENS; page * MT_PAGE_TOKENS > best; page--)
        best = better_state(k, s, page * MT_PAGE_TOKENS, best, most);
    return best > least ? best : 0;
}

/* Whether so many pages come back sooner than they are computed. */
static bool is_quicker(const mt_engine *e, const mt_sequence *s, size_t pages)
{
    const double rows = (double)(pages * MT_PAGE_TOKENS), before = (double)s->seq.done + rows / 2;
    return e->params.keep_all ||
           e->keep->seconds * (double)pages < mt_cost_predict(&e->past.cost, pages * MT_PAGE_TOKENS, rows * before);
}

bool mt_keep_begin(mt_engine *e, mt_sequence *s)
{
    mt_keep *k = e->keep;
    if (!k || s->kept.losses > MOST_LOSSES || s->seq.known < LEAST_GAIN)
        return false;
    const size_t first = s->seq.done / MT_PAGE_TOKENS;
    size_t most = s->seq.known - 1, end = pages_there(k, s, first, most / MT_PAGE_TOKENS), state = 0;
    if (k->state_bytes) {
        if (most >= (end + 1) * MT_PAGE_TOKENS)
            most = (end + 1) * MT_PAGE_TOKENS - 1; /* a state may stand in a page of which the beginning is there */
        state = find_state(k, s, most);
        end = state / MT_PAGE_TOKENS;
    }
    if (end * MT_PAGE_TOKENS + (state ? state % MT_PAGE_TOKENS : 0) < s->seq.done + LEAST_GAIN ||
        !is_quicker(e, s, end - first))
        return false;
    s->kept.next = s->kept.come = first;
    s->kept.end = end;
    s->kept.state = state;
    s->kept.asked = s->kept.brought = false;
    if (state)
        mt_seq_drop_state(&s->seq); /* which is not that of the pages to come */
    return true;
}

/* Room for what comes back: the state first, where there is one, then each page. */
static bool fetch_one(mt_engine *e, mt_sequence *s, bool state)
{
    mt_keep *k = e->keep;
    errand *x = state ? free_errand(k, STORES + FETCHES, STATES) : free_errand(k, STORES, FETCHES);
    if (!x)
        return false;
    uint8_t *at = x->room;
    x->store = x->ok = false;
    x->parts = 0;
    x->s = s;
    if (state) {
        x->kind = KIND_STATE;
        x->at = s->kept.state;
        state_key(k, s, x->at, x->key);
        x->part[x->parts++] = (mt_tier_part){at, k->state_bytes};
        at += k->state_bytes;
    } else {
        x->kind = KIND_PAGE;
        x->at = s->kept.next;
        memcpy(x->key, s->kept.digest[x->at], sizeof x->key);
    }
    for (size_t g = 0; g < k->groups && (!state || s->kept.state % MT_PAGE_TOKENS); at += k->page_bytes[g++])
        x->part[x->parts++] = (mt_tier_part){at, k->page_bytes[g]};
    give(k, x);
    return true;
}

/* Asks for what s waits for, as far as there is room. */
static void fetch(mt_engine *e, mt_sequence *s)
{
    mt_kept *kept = &s->kept;
    if (kept->state && !kept->asked)
        kept->asked = fetch_one(e, s, true);
    if (kept->state && !kept->brought)
        return;
    while (kept->next < kept->end && fetch_one(e, s, false))
        kept->next++;
}

/* Nothing more comes for s. */
static void end_fetch(mt_engine *e, mt_sequence *s)
{
    mt_keep *k = e->keep;
    for (size_t i = STORES; i < ERRANDS; i++) {
        errand *x = &k->errand[i];
        if (x->s != s)
            continue;
        x->s = NULL;
        if (state_of(k, x) == DONE)
            release(e, x);
    }
    s->kept.end = s->kept.state = 0;
}

/* It has not come. What was before it stays; but where there is a state, that is of no use without the rest. */
static bool lose(mt_engine *e, mt_sequence *s)
{
    const bool state = s->kept.state;
    end_fetch(e, s);
    s->kept.losses++;
    e->keep->stats.failed++;
    return state;
}

static void note(mt_engine *e, mt_sequence *s, size_t positions)
{
    if (s->generated > 0) /* it had computed them before */
        return;
    s->cached += positions;
    e->stats.cached_tokens += positions;
    mt_voices_cached(e->voices, s->voice, positions, mt_clock_ns());
}

/* Positions up to `end`, at most the rest of one page, are what has been read. False when there is no page for them. */
static bool put(mt_engine *e, mt_sequence *s, size_t end, const mt_tier_part *part)
{
    const size_t page = (end - 1) / MT_PAGE_TOKENS, before = s->seq.done;
    if (!mt_seq_grow(&s->seq, end))
        return false;
    for (size_t g = 0; g < e->keep->groups; g++)
        mt_model_restore_page(e->model, g, s->seq.page[g][page], part[g].data);
    mt_seq_restored(&s->seq, end);
    note(e, s, end - before);
    return true;
}

static bool put_state(mt_engine *e, mt_sequence *s, const errand *x)
{
    mt_anchors *anchors = mt_tree_anchors(e->tree);
    if (x->at % MT_PAGE_TOKENS && !put(e, s, x->at, x->part + 1))
        return false;
    const uint32_t slot = mt_anchors_take(anchors);
    if (slot == MT_NO_PAGE)
        return false;
    mt_model_restore_state(e->model, slot, x->part[0].data);
    mt_seq_restored_state(&s->seq, slot);
    e->keep->stats.restored_states++;
    return true;
}

/* All pages are there; the state's errand is the one that is left. */
static bool finish(mt_engine *e, mt_sequence *s)
{
    bool ok = true;
    for (size_t i = STORES + FETCHES; i < ERRANDS && s->kept.state; i++)
        if (e->keep->errand[i].s == s)
            ok = put_state(e, s, &e->keep->errand[i]);
    if (!ok)
        return false;
    end_fetch(e, s);
    return true;
}

/* An errand has brought something, or nothing. False where s must go back to the queue. */
static bool take(mt_engine *e, errand *x)
{
    mt_keep *k = e->keep;
    mt_sequence *s = x->s;
    bool ok = x->ok;
    if (ok && x->kind == KIND_STATE) {
        s->kept.brought = true;
        return true;
    }
    const double seconds = (double)x->took * 1e-9;
    k->seconds += (seconds - k->seconds) * (k->seconds > 0 ? RATE_WEIGHT : 1);
    assert(x->kind == KIND_STATE || x->at == s->kept.come);
    ok = ok && put(e, s, (x->at + 1) * MT_PAGE_TOKENS, x->part);
    x->s = NULL;
    release(e, x);
    if (ok) {
        k->stats.restored_pages++;
        s->kept.come++;
        ok = s->kept.come < s->kept.end || finish(e, s);
    }
    return ok || !lose(e, s);
}

/* The errand that was given first of those that have brought something; NULL for none. */
static errand *first_done(mt_keep *k)
{
    errand *first = NULL;
    for (size_t i = STORES; i < ERRANDS; i++) {
        errand *x = &k->errand[i];
        const bool waits = x->kind == KIND_STATE && x->s && x->s->kept.brought; /* for its pages */
        if (state_of(k, x) == DONE && !waits && (!first || x->order < first->order))
            first = x;
    }
    return first;
}

static bool shed(mt_engine *e)
{
    mt_keep *k = e->keep;
    const bool held = k->backlog_count > 0;
    for (; k->backlog_count > 0; k->backlog_count--, k->stats.skipped++) {
        pending *p = pending_at(k, k->backlog_count - 1);
        let_go(e, p->page, &p->slot);
    }
    return held;
}

/* Lets go of what has been stored. Whether anything was. */
static bool end_stores(mt_engine *e, bool *under_way)
{
    bool any = false;
    *under_way = false;
    for (size_t i = 0; i < STORES; i++) {
        errand *x = &e->keep->errand[i];
        const errand_state state = state_of(e->keep, x);
        if (state == DONE)
            release(e, x);
        any |= state == DONE;
        *under_way |= state == GIVEN || state == UNDER_WAY;
    }
    return any;
}

mt_sequence *mt_keep_turn(mt_engine *e)
{
    mt_keep *k = e->keep;
    bool under_way;
    if (!k)
        return NULL;
    end_stores(e, &under_way);
    for (errand *x; (x = first_done(k));) {
        mt_sequence *s = x->s;
        if (!s)
            release(e, x);
        else if (!take(e, x))
            return s;
    }
    for (size_t i = 0; i < e->running_count; i++) {
        if (e->running[i]->kept.end)
            fetch(e, e->running[i]);
        else
            store(e, e->running[i]);
    }
    work_off(e);
    e->stats.keep = k->stats;
    return NULL;
}

void mt_keep_leave(mt_engine *e, mt_sequence *s)
{
    if (!e->keep || s->seq.done == 0)
        return;
    if (s->kept.end) {
        end_fetch(e, s);
        return;
    }
    mt_seq_rest(&s->seq);
    store(e, s);
}

bool mt_keep_yield(mt_engine *e, bool waits)
{
    const struct timespec moment = {.tv_nsec = 200000};
    bool under_way;
    if (!e->keep)
        return false;
    if (shed(e) || end_stores(e, &under_way))
        return true;
    while (waits && under_way) {
        nanosleep(&moment, NULL);
        if (end_stores(e, &under_way))
            return true;
    }
    return false;
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

uint64_t mt_keep_bytes(const mt_engine *e)
{
    uint64_t pages = 0;
    for (size_t g = 0; g < e->spec->group_count; g++)
        pages += page_bytes(e, g);
    const uint64_t read = mt_device_apart(e->dev) ? STORES * (pages + state_bytes(e)) : 0; /* as copies */
    return read + FETCHES * pages + (state_bytes(e) ? STORES * pages + STATES * (pages + state_bytes(e)) : 0);
}

static void make_errands(mt_keep *k, mt_engine *e)
{
    for (size_t i = 0; i < ERRANDS; i++) {
        errand *x = &k->errand[i];
        const bool state = i >= STORES + FETCHES;
        x->slot = MT_NO_PAGE;
        for (size_t g = 0; g < MT_KV_GROUPS; g++)
            x->page[g] = MT_NO_PAGE;
        if (k->state_bytes || (i >= STORES && !state))
            x->room = mt_alloc_aligned(64, k->all_bytes + (state ? k->state_bytes : 0));
        for (size_t g = 0; i < STORES && g < k->groups; g++)
            x->reading[g] = mt_reading_new(e->set, k->page_bytes[g]);
        if (i < STORES && k->state_bytes)
            x->reading[MT_KV_GROUPS] = mt_reading_new(e->set, k->state_bytes);
    }
}

mt_keep *mt_keep_new(mt_engine *e, mt_disk *disk, const uint8_t identity[32], void (*wake)(mt_engine *e), mt_error *err)
{
    static const char what[] = "motet cache 1";
    const uint32_t fingerprint = mt_device_fingerprint(e->dev);
    mt_keep *k = mt_alloc(sizeof *k);
    k->disk = disk;
    k->engine = e;
    k->wake = wake;
    k->groups = e->spec->group_count;
    k->state_bytes = state_bytes(e);
    for (size_t g = 0; g < k->groups; g++)
        k->all_bytes += k->page_bytes[g] = page_bytes(e, g);
    const uint64_t sizes[] = {MT_PAGE_TOKENS, k->groups, k->state_bytes, k->page_bytes[0],
                              k->groups > 1 ? k->page_bytes[1] : 0};
    mt_digest(k->root,
              (mt_digest_part[]){
                  {what, sizeof what}, {identity, 32}, {&fingerprint, sizeof fingerprint}, {sizes, sizeof sizes}},
              4);
    k->backlog_most = mt_tree_total(e->tree, 0) / 2 < BACKLOG ? mt_tree_total(e->tree, 0) / 2 + 1 : BACKLOG;
    k->backlog = mt_alloc_array(k->backlog_most, sizeof *k->backlog);
    make_errands(k, e);
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->given, NULL);
    if (pthread_create(&k->thread, NULL, run, k) == 0)
        return k;
    k->engine = NULL;
    mt_keep_free(k);
    mt_fail(err, MT_E_IO, "a thread for the cache on disk cannot be started; raise the limit (ulimit -u)");
    return NULL;
}

/* An orderly end stores what waits, as far as that is quick. */
static void finish_backlog(mt_keep *k)
{
    const struct timespec moment = {.tv_nsec = 200000};
    const uint64_t until = mt_clock_ns() + FINISH_NS;
    bool under_way;
    while (k->backlog_count > 0 && mt_clock_ns() < until && !mt_disk_look(k->disk).failed) {
        end_stores(k->engine, &under_way);
        work_off(k->engine);
        nanosleep(&moment, NULL);
    }
    shed(k->engine);
}

void mt_keep_free(mt_keep *k)
{
    if (!k)
        return;
    if (k->engine) {
        finish_backlog(k);
        pthread_mutex_lock(&k->lock);
        k->ending = true;
        pthread_cond_signal(&k->given);
        pthread_mutex_unlock(&k->lock);
        pthread_join(k->thread, NULL);
        for (size_t i = 0; i < ERRANDS; i++)
            if (k->errand[i].state == DONE)
                release(k->engine, &k->errand[i]);
    }
    for (size_t i = 0; i < ERRANDS; i++)
        mt_free(k->errand[i].room);
    mt_free(k->backlog);
    pthread_cond_destroy(&k->given);
    pthread_mutex_destroy(&k->lock);
    mt_free(k);
}
