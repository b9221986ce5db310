/* Reads features of pictures back from tiers, so that the tower need not encode them. A view is one part of a picture
   whose entry in the feature cache is being filled, as by a job of the tower: sequences that need it wait until it
   is whole. It belongs to no sequence: the one that asked for it may end. */
#include <string.h>

#include "engine/keep_inside.h"
#include "engine/media_parts.h"

/* How many records the features of a part are, and how many rows one of them has. */
static size_t pieces_of(size_t rows)
{
    return (rows + MT_KEEP_ROWS - 1) / MT_KEEP_ROWS;
}

static size_t rows_of(size_t rows, size_t piece)
{
    const size_t left = rows - piece * MT_KEEP_ROWS;
    return left < MT_KEEP_ROWS ? left : MT_KEEP_ROWS;
}

static size_t piece_bytes(const mt_engine *e, size_t rows, size_t piece)
{
    return rows_of(rows, piece) * e->tower.width * sizeof(float);
}

/* Whether tiers have all features of a part, and did not fail to give them lately. *back: seconds until they come. */
static bool is_there(const mt_engine *e, const mt_request *r, const mt_media_part *part, double *back)
{
    const mt_keep *k = e->keep;
    uint8_t key[MT_TIER_KEY];
    for (size_t piece = 0; piece < pieces_of(part->picture.tokens); piece++) {
        mt_keep_features_key(k, part->picture.digest, r->salt, piece, key);
        for (size_t i = 0; piece == 0 && i < MT_KEEP_LOST; i++)
            if (memcmp(k->lost[i], key, sizeof(key)) == 0)
                return false;
        const mt_tier tier = mt_tiers_find(&k->tiers, key);
        if (tier == MT_TIER_COUNT)
            return false;
        *back += mt_keep_time(k, tier, piece_bytes(e, part->picture.tokens, piece));
    }
    return true;
}

/* Whether reading is quicker than encoding, judged by the jobs so far; before the first job it is assumed so, as
   encoding takes long. */
static bool is_quicker(mt_engine *e, const mt_media_part *part, double back)
{
    const mt_job *j = &e->job;
    if (j->sizes <= 0)
        return true;
    return mt_keep_is_quicker(e->keep, back, j->seconds / j->sizes * (double)mt_picture_patches(&part->picture));
}

static mt_view *free_view(mt_keep *k)
{
    for (size_t i = 0; k && i < MT_KEEP_VIEWS; i++)
        if (!k->view[i].medium)
            return &k->view[i];
    return NULL;
}

bool mt_keep_views_free(const mt_engine *e)
{
    return free_view(e->keep) != NULL;
}

bool mt_keep_view(mt_engine *e, const mt_request *r, const mt_media_part *part)
{
    mt_keep *k = e->keep;
    mt_view *v = free_view(k);
    double back = 0;
    if (!is_there(e, r, part, &back) || !is_quicker(e, part, back))
        return false;
    *v = (mt_view){.medium = part->medium, .rows = part->picture.tokens, .end = pieces_of(part->picture.tokens)};
    v->to = mt_feature_cache_fill(e->feature_cache, v->medium, v->rows);
    if (!v->to) {
        v->medium = NULL;
        return true;
    }
    mt_medium_hold(v->medium);
    memcpy(v->digest, part->picture.digest, sizeof(v->digest));
    memcpy(v->salt, r->salt, sizeof(v->salt));
    mt_keep_fetch_views(e);
    return true;
}

void mt_keep_fetch_views(mt_engine *e)
{
    mt_keep *k = e->keep;
    mt_keep_transfer *x;
    for (size_t i = 0; i < MT_KEEP_VIEWS; i++) {
        mt_view *v = &k->view[i];
        for (; v->medium && v->next < v->end && (x = mt_keep_transfer_free(k, MT_KEEP_STORES, MT_KEEP_FETCHES));
             v->next++) {
            x->store = x->ok = false;
            x->kind = MT_KEEP_FEATURES;
            x->view = v;
            x->at = v->next;
            mt_keep_features_key(k, v->digest, v->salt, x->at, x->key);
            x->tier = mt_tiers_find(&k->tiers, x->key);
            x->far = x->tier == MT_TIER_REMOTE;
            x->part[0] = (mt_tier_part){x->room, piece_bytes(e, v->rows, x->at)};
            x->parts = 1;
            mt_keep_transfer_give(k, x);
        }
    }
}

void mt_keep_end_view(mt_engine *e, mt_view *v, bool whole)
{
    mt_keep *k = e->keep;
    for (size_t i = MT_KEEP_STORES; i < MT_KEEP_TRANSFERS; i++)
        if (k->transfer[i].view == v)
            k->transfer[i].view = NULL;
    if (!whole)
        mt_keep_features_key(k, v->digest, v->salt, 0, k->lost[k->losses++ % MT_KEEP_LOST]);
    mt_feature_cache_filled(e->feature_cache, v->medium, whole);
    mt_feature_cache_release(e->feature_cache, v->medium);
    v->medium = NULL;
}

void mt_keep_receive_view(mt_engine *e, mt_keep_transfer *x)
{
    mt_keep *k = e->keep;
    mt_view *v = x->view;
    const size_t rows = rows_of(v->rows, x->at);
    mt_keep_learn(k, x);
    if (x->ok) {
        mt_tensor_write(e->dev, x->rows, 0, rows, (const float *)(const void *)x->room);
        mt_index_write(e->dev, e->features.which, v->to + x->at * MT_KEEP_ROWS, rows);
        mt_op_scatter(e->dev, e->features.rows, e->features.which, 0, x->rows, rows);
        v->come++;
    } else
        k->stats.failed++;
    const bool ok = x->ok;
    mt_keep_transfer_end(e, x);
    k->stats.restored_features += ok && v->come == v->end;
    if (!ok || v->come == v->end)
        mt_keep_end_view(e, v, ok);
}
