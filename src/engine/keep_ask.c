/* Asks the remote store what it has for a prompt, in one message: keys of pages and states, or of features of its
   pictures, that no tier is known to have. The sequence that asks waits for the answer, about one round trip; no other
   does. Where all transfers that ask are in use, or asking for pages would take longer than computing them, the
   sequence goes on without asking. */
#include <string.h>

#include "engine/keep_inside.h"
#include "engine/media_parts.h"

#define RATE_WEIGHT 0.125 /* weight of the newest answer in the expected time of an answer */
/* an expected time that is too long is multiplied by this each time, so that it is tried again in the end */
#define DOUBT 0.97

static mt_keep_transfer *free_ask(mt_keep *k)
{
    return k && k->tiers.remote && mt_remote_store_is_there(k->tiers.remote)
               ? mt_keep_transfer_free(k, MT_KEEP_ASK_FIRST, MT_KEEP_ASKS)
               : NULL;
}

/* Adds a key to the question, unless a tier is known to have it, or the question is full. */
static void add(const mt_keep *k, mt_keep_transfer *x, const uint8_t key[MT_TIER_KEY])
{
    if (x->asked < MT_REMOTE_STORE_ASKED && mt_tiers_find(&k->tiers, key) == MT_TIER_COUNT)
        memcpy(x->keys[x->asked++], key, MT_TIER_KEY);
}

static void add_state(const mt_keep *k, mt_keep_transfer *x, mt_sequence *s, size_t position)
{
    uint8_t key[MT_TIER_KEY];
    if (position <= s->seq.done || position >= s->seq.known)
        return;
    mt_keep_state_key(k, s, position, key);
    add(k, x, key);
}

/* Sends the question; false where no key is left to ask for. */
static bool ask(mt_keep *k, mt_keep_transfer *x, mt_sequence *s, bool features)
{
    if (x->asked == 0)
        return false;
    x->at = features; /* mt_keep_heard reads it */
    x->store = false;
    x->far = true;
    x->kind = MT_KEEP_NOTHING;
    x->s = s;
    *(features ? &s->kept.asking_features : &s->kept.asking) = true;
    mt_keep_transfer_give(k, x);
    return true;
}

/* Whether the answer is expected sooner than `rows` rows are computed; always with keep_all. Where it is not, the
   expected time shrinks by DOUBT. */
static bool is_worth_it(mt_engine *e, size_t rows)
{
    mt_keep *k = e->keep;
    const bool worth = e->params.keep_all || k->asking < mt_cost_predict(&e->past.cost, rows, 0);
    if (!worth)
        k->asking *= DOUBT;
    return worth;
}

bool mt_keep_ask_pages(mt_engine *e, mt_sequence *s)
{
    mt_keep *k = e->keep;
    mt_keep_transfer *x = s->kept.heard ? NULL : free_ask(k);
    if (!x || !is_worth_it(e, s->seq.known - s->seq.done))
        return false;
    /* the last position is computed in any case: end is that of the whole pages before it */
    const size_t first = s->seq.done / MT_PAGE_TOKENS, end = (s->seq.known - 1) / MT_PAGE_TOKENS;
    x->asked = 0;
    mt_keep_seal(k, s, end);
    for (size_t page = first; page < end; page++)
        add(k, x, s->kept.digest[page]);
    /* states where find_state in keep_fetch.c looks for them; the last pages first, as the question may become full */
    for (size_t i = 0; k->state_bytes && i < s->seq.state.stops; i++)
        add_state(k, x, s, s->seq.state.stop[i]);
    for (size_t i = 0; k->state_bytes && i < s->seq.cut_count; i++)
        add_state(k, x, s, s->seq.cuts[i]);
    for (size_t page = end; k->state_bytes && page > first; page--)
        add_state(k, x, s, page * MT_PAGE_TOKENS);
    s->kept.heard = true;
    return ask(k, x, s, false);
}

bool mt_keep_ask_features(mt_engine *e, mt_sequence *s)
{
    mt_keep *k = e->keep;
    const mt_request *r = s->request;
    uint8_t key[MT_TIER_KEY];
    if (s->kept.asking_features)
        return true;
    mt_keep_transfer *x = s->kept.asked_features ? NULL : free_ask(k);
    if (!x)
        return false;
    x->asked = 0;
    for (size_t i = s->missing; i < r->media_part_count; i++)
        for (size_t piece = 0; piece * MT_KEEP_ROWS < r->media_parts[i].picture.tokens; piece++) {
            if (mt_feature_cache_features(e->feature_cache, r->media_parts[i].medium))
                break;
            mt_keep_features_key(k, r->media_parts[i].picture.digest, r->salt, piece, key);
            add(k, x, key);
        }
    s->kept.asked_features = true;
    return ask(k, x, s, true);
}

/* An answer about features needs nothing more: planning looks for them. */
bool mt_keep_heard(mt_engine *e, mt_keep_transfer *x)
{
    mt_sequence *s = x->s;
    const bool features = x->at;
    const double seconds = (double)x->took * 1e-9;
    e->keep->asking += (seconds - e->keep->asking) * (e->keep->asking > 0 ? RATE_WEIGHT : 1);
    x->asked = 0;
    mt_keep_transfer_end(e, x);
    if (s && features)
        s->kept.asking_features = false;
    if (!s || features)
        return false;
    s->kept.asking = false;
    return true;
}
