/* Reads pages and recurrent states back from tiers: as far as they go without a gap, where that saves LEAST_GAIN
   positions and is expected to be quicker than computing them. Each page becomes part of a running sequence as if it
   had been computed: so the prefix tree learns of it, and others share it. The sequence has no rows meanwhile; nobody
   else waits. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "engine/keep_inside.h"

#define LEAST_GAIN 64     /* least positions that reading back must save */
#define MOST_LOSSES 3     /* after more losses than this a sequence computes what is left */
#define RATE_WEIGHT 0.125 /* weight of the newest transfer in the expected seconds of a byte */
/* an expected time that is too long is multiplied by this each time, so that it is tried again in the end */
#define DOUBT 0.97

/* ---- what it takes ---- */

double mt_keep_time(const mt_keep *k, mt_tier tier, size_t bytes)
{
    return tier < MT_TIER_COUNT ? k->pace[tier] * (double)bytes : 0;
}

bool mt_keep_is_quicker(mt_keep *k, double back, double anew)
{
    const bool quicker = k->engine->params.keep_all || back < anew;
    for (size_t i = 0; i < MT_TIER_COUNT && !quicker; i++)
        k->pace[i] *= DOUBT;
    return quicker;
}

/* A transfer that brought nothing is not measured. */
void mt_keep_learn(mt_keep *k, const mt_keep_transfer *x)
{
    size_t bytes = 0;
    for (size_t i = 0; i < x->parts; i++)
        bytes += x->part[i].size;
    if (!x->ok)
        return;
    double *known = &k->pace[x->tier];
    const double pace = (double)x->took * 1e-9 / (double)bytes;
    *known += (pace - *known) * (*known > 0 ? RATE_WEIGHT : 1);
}

/* ---- what there is ---- */

/* The end of the run of pages, from page `at` on, that tiers have; at most `most`. */
static size_t pages_there(mt_keep *k, mt_sequence *s, size_t at, size_t most)
{
    size_t end = at;
    mt_keep_seal(k, s, most);
    while (end < most && mt_tiers_find(&k->tiers, s->kept.digest[end]) < MT_TIER_COUNT)
        end++;
    return end;
}

/* `position` where it is better than `best`, at most `most`, and a tier has its state; else `best`. */
static size_t better_state(mt_keep *k, mt_sequence *s, size_t position, size_t best, size_t most)
{
    uint8_t key[32];
    if (position <= best || position > most)
        return best;
    mt_keep_state_key(k, s, position, key);
    return mt_tiers_find(&k->tiers, key) < MT_TIER_COUNT ? position : best;
}

/* The last position behind what s has, up to `most`, whose state a tier has, among those where states are kept: ends of
   pages, beginnings of turns, and the places where this prompt's own states would be kept. Where there is none: what s
   has. */
static size_t find_state(mt_keep *k, mt_sequence *s, size_t most)
{
    size_t best = s->seq.done;
    for (size_t i = 0; i < s->seq.state.stops; i++)
        best = better_state(k, s, s->seq.state.stop[i], best, most);
    for (size_t i = 0; i < s->seq.cut_count; i++)
        best = better_state(k, s, s->seq.cuts[i], best, most);
    for (size_t page = most / MT_PAGE_TOKENS; page * MT_PAGE_TOKENS > best; page--)
        best = better_state(k, s, page * MT_PAGE_TOKENS, best, most);
    return best;
}

/* Whether reading pages [first, end), and the state after `state` positions, is quicker than computing them. */
static bool is_quicker(mt_engine *e, mt_sequence *s, size_t first, size_t end, size_t state)
{
    mt_keep *k = e->keep;
    const size_t rows = (end - first) * MT_PAGE_TOKENS;
    uint8_t key[MT_TIER_KEY];
    double back = 0;
    for (size_t page = first; page < end; page++)
        back += mt_keep_time(k, mt_tiers_find(&k->tiers, s->kept.digest[page]), k->all_bytes);
    if (state) {
        mt_keep_state_key(k, s, state, key);
        back += mt_keep_time(k, mt_tiers_find(&k->tiers, key), k->state_bytes);
    }
    return mt_keep_is_quicker(
        k, back, mt_cost_predict(&e->past.cost, rows, (double)rows * ((double)s->seq.done + (double)rows / 2)));
}

bool mt_keep_begin(mt_engine *e, mt_sequence *s)
{
    mt_keep *k = e->keep;
    if (!k || s->kept.losses > MOST_LOSSES || s->seq.known < s->seq.done + LEAST_GAIN)
        return false;
    if (mt_keep_ask_pages(e, s))
        return true;
    const size_t first = s->seq.done / MT_PAGE_TOKENS;
    /* the last known position is computed in any case: the next token is chosen from what that gives */
    size_t most = s->seq.known - 1, end = pages_there(k, s, first, most / MT_PAGE_TOKENS), state = 0;
    if (k->state_bytes) {
        if (most >= (end + 1) * MT_PAGE_TOKENS)
            most = (end + 1) * MT_PAGE_TOKENS - 1; /* a state's record has the beginning of the page that it ends in */
        state = find_state(k, s, most);
        end = state / MT_PAGE_TOKENS; /* no later pages, as nothing could go on behind them */
    }
    if ((state ? state : end * MT_PAGE_TOKENS) < s->seq.done + LEAST_GAIN || !is_quicker(e, s, first, end, state))
        return false;
    s->kept.next = s->kept.come = first;
    s->kept.end = end;
    s->kept.state = state;
    s->kept.asked = s->kept.brought = false;
    if (state)
        mt_seq_drop_state(&s->seq); /* its present state does not belong to the pages to come */
    return true;
}

/* ---- asking ---- */

/* Starts the transfer for the state, or for the next page. False where no transfer is free. */
static bool fetch_one(mt_engine *e, mt_sequence *s, bool state)
{
    mt_keep *k = e->keep;
    mt_keep_transfer *x = state ? mt_keep_transfer_free(k, MT_KEEP_STORES + MT_KEEP_FETCHES, MT_KEEP_STATES)
                                : mt_keep_transfer_free(k, MT_KEEP_STORES, MT_KEEP_FETCHES);
    if (!x)
        return false;
    uint8_t *at = x->room;
    x->store = x->ok = false;
    x->parts = 0;
    x->s = s;
    if (state) {
        x->kind = MT_KEEP_STATE;
        x->at = s->kept.state;
        mt_keep_state_key(k, s, x->at, x->key);
        x->part[x->parts++] = (mt_tier_part){at, k->state_bytes};
        at += k->state_bytes;
    } else {
        x->kind = MT_KEEP_PAGE;
        x->at = s->kept.next;
        memcpy(x->key, s->kept.digest[x->at], sizeof(x->key));
    }
    /* behind a state: the page that it ends in, if it does not end with one */
    for (size_t g = 0; g < k->groups && (!state || s->kept.state % MT_PAGE_TOKENS); at += k->page_bytes[g++])
        x->part[x->parts++] = (mt_tier_part){at, k->page_bytes[g]};
    x->tier = mt_tiers_find(&k->tiers, x->key);
    x->far = x->tier == MT_TIER_REMOTE;
    mt_keep_transfer_give(k, x);
    return true;
}

void mt_keep_fetch(mt_engine *e, mt_sequence *s)
{
    mt_kept *kept = &s->kept;
    if (kept->state && !kept->asked)
        kept->asked = fetch_one(e, s, true);
    if (kept->state && !kept->brought) /* pages are asked for when the state has come: they are of no use without it */
        return;
    while (kept->next < kept->end && fetch_one(e, s, false))
        kept->next++;
}

void mt_keep_end_fetch(mt_engine *e, mt_sequence *s)
{
    mt_keep *k = e->keep;
    for (size_t i = MT_KEEP_STORES; i < MT_KEEP_TRANSFERS; i++) {
        mt_keep_transfer *x = &k->transfer[i];
        if (x->s != s)
            continue;
        x->s = NULL;
        const mt_keep_transfer_state state = mt_keep_transfer_look(k, x);
        if (state == MT_KEEP_TRANSFER_DONE || state == MT_KEEP_TRANSFER_SENDING)
            mt_keep_transfer_end(e, x); /* others are ended when their thread is done with them (keep.c) */
    }
    s->kept.end = s->kept.state = 0;
    s->kept.asking = s->kept.asking_features = false;
}

/* ---- taking ---- */

/* The expected page or state did not come, or there was no room for it. Pages before it stay; but where a state was to
   come, they are of no use without it, and the sequence goes back to the queue (true). */
static bool lose(mt_engine *e, mt_sequence *s)
{
    const bool state = s->kept.state;
    mt_keep_end_fetch(e, s);
    s->kept.losses++;
    e->keep->stats.failed++;
    return state;
}

/* Counts positions that came from a tier as cached. */
static void note(mt_engine *e, mt_sequence *s, size_t positions)
{
    if (s->generated > 0) /* it had computed them itself before */
        return;
    s->cached += positions;
    e->stats.cached_tokens += positions;
    mt_voices_cached(e->voices, s->voice, positions, mt_clock_ns());
}

/* Has the device copy positions up to `end`, all of one page, from byte `at` of what has come. False when no page is
   free. */
static bool send_page(mt_engine *e, mt_sequence *s, size_t end, mt_sending *sending, size_t at)
{
    const size_t page = (end - 1) / MT_PAGE_TOKENS;
    if (!mt_seq_grow(&s->seq, end))
        return false;
    for (size_t g = 0; g < e->keep->groups; at += e->keep->page_bytes[g++])
        mt_model_restore_page(e->model, g, s->seq.page[g][page], sending, at);
    return true;
}

/* The device has copied them: they count as computed. */
static void put(mt_engine *e, mt_sequence *s, size_t end)
{
    const size_t before = s->seq.done;
    mt_seq_restored(&s->seq, end);
    note(e, s, end - before);
}

/* Has the device copy a state, and the beginning of the page that it ends in. False when there is no room. */
static bool send_state(mt_engine *e, mt_sequence *s, mt_keep_transfer *x)
{
    if (x->at % MT_PAGE_TOKENS && !send_page(e, s, x->at, x->sending, e->keep->state_bytes))
        return false;
    x->held.slot = mt_anchors_take(mt_tree_anchors(e->tree));
    if (x->held.slot == MT_NO_PAGE)
        return false;
    mt_model_restore_state(e->model, x->held.slot, x->sending, 0);
    return true;
}

/* The device has copied a state: the sequence goes on from there. */
static void put_state(mt_engine *e, mt_sequence *s, mt_keep_transfer *x)
{
    if (x->at % MT_PAGE_TOKENS)
        put(e, s, x->at);
    mt_seq_restored_state(&s->seq, x->held.slot);
    x->held.slot = MT_NO_PAGE; /* it belongs to the sequence now */
    e->keep->stats.restored_states++;
}

/* What a transfer brought is on its way to the device, if there was room for it. False where the sequence must go back
   to the queue. */
static bool sent(mt_engine *e, mt_keep_transfer *x, bool room)
{
    if (!room)
        return !lose(e, x->s);
    mt_keep_transfer_set(e->keep, x, MT_KEEP_TRANSFER_SENDING);
    return true;
}

/* All pages have come: the state, if there is one, is copied to the device; its transfer has kept it until now. False
   as above. */
static bool finish(mt_engine *e, mt_sequence *s)
{
    for (size_t i = MT_KEEP_STORES + MT_KEEP_FETCHES; i < MT_KEEP_ASK_FIRST && s->kept.state; i++) {
        mt_keep_transfer *x = &e->keep->transfer[i];
        if (x->s == s)
            return sent(e, x, send_state(e, s, x));
    }
    mt_keep_end_fetch(e, s);
    return true;
}

bool mt_keep_receive(mt_engine *e, mt_keep_transfer *x)
{
    mt_sequence *s = x->s;
    mt_keep_learn(e->keep, x);
    if (!x->ok)
        return !lose(e, s);
    if (x->kind == MT_KEEP_STATE) {
        s->kept.brought = true;
        return s->kept.come < s->kept.end || finish(e, s);
    }
    return sent(e, x, send_page(e, s, (x->at + 1) * MT_PAGE_TOKENS, x->sending, 0));
}

bool mt_keep_received(mt_engine *e, mt_keep_transfer *x)
{
    mt_sequence *s = x->s;
    if (x->kind == MT_KEEP_STATE) {
        put_state(e, s, x);
        mt_keep_end_fetch(e, s);
        return true;
    }
    assert(x->at == s->kept.come);
    put(e, s, (x->at + 1) * MT_PAGE_TOKENS);
    mt_keep_transfer_end(e, x);
    e->keep->stats.restored_pages++;
    return ++s->kept.come < s->kept.end || finish(e, s);
}
