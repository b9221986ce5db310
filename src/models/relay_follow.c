/* The other ranks' side of relay.c: turns messages into calls of model.h. Arrays of a batch stay in the message where
   they can. */
#include <string.h>

#include "base/alloc.h"
#include "models/relay.h"

struct mt_follower {
    mt_device *dev;
    mt_set *set;
    mt_model_spec *spec;
    mt_model *model;
    mt_tensor *features; /* of one step; NULL: the model takes no pictures */
    size_t width;
    mt_model_params params;
    mt_span *spans;
    size_t span_cap;
    mt_piece *pieces;
    size_t piece_cap, piece_count;
    uint32_t *which; /* [rows]: the row of features of each */
    uint32_t *guessed;
};

/* The rest of a message; short_of: it ended too early. */
typedef struct words {
    const uint32_t *at;
    size_t left;
    bool short_of;
} words;

/* The next `count` words; zeros, and short_of is set, where there are fewer. */
static const uint32_t *next_words(words *w, size_t count)
{
    static const uint32_t nothing[64];
    const uint32_t *at = w->at;
    if (count > w->left) {
        w->short_of = true;
        w->left = 0;
        return count <= MT_COUNT(nothing) ? nothing : NULL;
    }
    w->at += count;
    w->left -= count;
    return at;
}

static uint32_t get(words *w)
{
    return *next_words(w, 1);
}

mt_follower *mt_follower_new(mt_device *dev, mt_model_spec *spec, const mt_model_weights *weights, const uint32_t *told,
                             size_t count, mt_error *err)
{
    words w = {told, count, false};
    next_words(&w, 3);
    spec->mtp = get(&w);
    if (!get(&w))
        spec->drafter = NULL;
    mt_follower *f = mt_alloc(sizeof(*f));
    *f = (mt_follower){.dev = dev, .spec = spec};
    f->params.rows = get(&w);
    f->params.logits = get(&w);
    f->params.places = get(&w);
    f->params.memos = get(&w);
    f->set = mt_set_new(dev);
    f->which = mt_alloc_array(f->params.rows, sizeof(*f->which));
    f->guessed = mt_alloc_array(f->params.memos + 1, sizeof(*f->guessed));
    if (w.short_of)
        mt_fail(err, MT_E_INTERNAL, "rank 0 has sent less than it should have");
    else
        f->model = mt_model_new(dev, spec, weights, &f->params, err);
    if (f->model)
        return f;
    mt_follower_free(f);
    return NULL;
}

void mt_follower_free(mt_follower *f)
{
    if (!f)
        return;
    mt_model_free(f->model);
    mt_set_free(f->set);
    mt_free(f->spans);
    mt_free(f->pieces);
    mt_free(f->which);
    mt_free(f->guessed);
    mt_free(f);
}

/* ---- steps ---- */

/* Reads a span. Stores indices of pieces first, as the array may move while it grows; they become pointers later. */
static void get_span(mt_follower *f, words *w, mt_span *s)
{
    *s = (mt_span){.row = get(w), 0};
    s->rows = get(w);
    s->position = get(w);
    s->state = get(w);
    s->pieces = get(w);
    s->guesses = get(w);
    s->memo = get(w);
    s->replay = get(w);
    const size_t pages = get(w);
    if (s->pieces > w->left / 2)
        s->pieces = 0;
    f->pieces = mt_grow(f->pieces, &f->piece_cap, f->piece_count + s->pieces, sizeof(*f->pieces));
    for (size_t i = 0; i < s->pieces; i++) {
        const uint32_t rows = get(w);
        f->pieces[f->piece_count++] = (mt_piece){.rows = rows, .slot = get(w)};
    }
    for (size_t g = 0; g < f->spec->group_count; g++)
        s->pages[g] = next_words(w, pages);
}

static void get_features(mt_follower *f, words *w, mt_batch *b)
{
    uint32_t row = 0;
    for (size_t i = 0; i < b->rows; i++) {
        f->which[i] = MT_NO_PAGE;
        if (!get(w) || !f->features)
            continue;
        const float *data = (const float *)(const void *)next_words(w, f->width);
        if (w->short_of)
            break;
        mt_tensor_write(f->dev, f->features, row, 1, data);
        f->which[i] = row++;
    }
    b->features = f->which;
}

/* Reads a batch from a message; false where the message is too short. */
static bool get_batch(mt_follower *f, words *w, mt_batch *b)
{
    size_t piece = 0;
    *b = (mt_batch){.rows = get(w), 0};
    b->spans = get(w);
    const uint32_t has = get(w);
    if (b->rows > f->params.rows || b->spans > b->rows || w->left < b->rows)
        return false;
    b->tokens = next_words(w, b->rows);
    b->positions = (const mt_position *)(const void *)next_words(w, b->rows * sizeof(*b->positions) / sizeof(uint32_t));
    f->spans = mt_grow(f->spans, &f->span_cap, b->spans, sizeof(*f->spans));
    b->span = f->spans;
    f->piece_count = 0;
    for (size_t i = 0; i < b->spans; i++)
        get_span(f, w, &f->spans[i]);
    for (size_t i = 0; i < b->spans; piece += f->spans[i++].pieces)
        f->spans[i].piece = f->pieces + piece;
    if (has & 2u)
        b->seen_from = next_words(w, b->rows);
    if (has & 4u)
        b->seen = next_words(w, b->rows);
    if (has & 1u)
        get_features(f, w, b);
    return !w->short_of;
}

static bool follow_step(mt_follower *f, words *w)
{
    mt_batch b;
    const size_t count = get(w);
    const uint32_t *rows = count <= f->params.logits ? next_words(w, count) : NULL;
    if (!rows || !get_batch(f, w, &b))
        return false;
    mt_model_step(f->model, &b, rows, count);
    return true;
}

static bool follow_guess(mt_follower *f, words *w)
{
    mt_batch b;
    const bool chained = get(w);
    if (!get_batch(f, w, &b) || b.rows > f->params.memos)
        return false;
    mt_model_guess(f->model, &b, chained, f->guessed);
    return true;
}

/* ---- the rest ---- */

static bool follow_reserve(mt_follower *f, words *w, mt_error *err)
{
    size_t pages[MT_KV_GROUPS];
    for (size_t g = 0; g < MT_KV_GROUPS; g++)
        pages[g] = get(w);
    return mt_model_reserve(f->model, pages, get(w), err);
}

static bool follow_set_features(mt_follower *f, words *w)
{
    f->width = get(w);
    f->features = mt_tensor_new(f->set, f->params.rows, f->width);
    mt_model_set_features(f->model, f->features);
    return true;
}

static bool follow_copy(mt_follower *f, words *w)
{
    uint32_t to[MT_KV_GROUPS], from[MT_KV_GROUPS];
    for (size_t g = 0; g < MT_KV_GROUPS; g++) {
        to[g] = get(w);
        from[g] = get(w);
    }
    mt_model_copy_pages(f->model, to, from);
    return true;
}

static bool follow_carry(mt_follower *f, words *w)
{
    const uint32_t place = get(w);
    mt_model_carry(f->model, place, get(w));
    return true;
}

static bool follow_poison(mt_follower *f, words *w)
{
    const uint32_t group = get(w);
    mt_model_poison(f->model, group, get(w));
    return true;
}

bool mt_follower_do(mt_follower *f, const uint32_t *told, size_t count, mt_error *err)
{
    words w = {told, count, false};
    bool ok = false;
    const uint32_t what = get(&w);
    next_words(&w, 1);
    switch (what) {
    case MT_TOLD_RESERVE: return follow_reserve(f, &w, err);
    case MT_TOLD_FEATURES: ok = follow_set_features(f, &w); break;
    case MT_TOLD_STEP: ok = follow_step(f, &w); break;
    case MT_TOLD_GUESS: ok = follow_guess(f, &w); break;
    case MT_TOLD_COPY: ok = follow_copy(f, &w); break;
    case MT_TOLD_CARRY: ok = follow_carry(f, &w); break;
    case MT_TOLD_POISON: ok = follow_poison(f, &w); break;
    default: break;
    }
    return (ok && !w.short_of) ||
           mt_fail(err, MT_E_INTERNAL, "rank 0 has told something that this rank does not understand");
}
