/* Rank 0's side: writes calls of model.h as messages to the other ranks (relay.h). */
#include "models/relay.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "ranks/ranks.h"

static void add(mt_relay *r, const void *words, size_t count)
{
    r->words = mt_grow(r->words, &r->cap, r->count + count, sizeof(*r->words));
    if (count)
        memcpy(r->words + r->count, words, count * sizeof(*r->words));
    r->count += count;
}

static void put(mt_relay *r, size_t word)
{
    add(r, &(uint32_t){(uint32_t)word}, 1);
}

static bool begin(mt_relay *r, mt_told what)
{
    if (!r->ranks)
        return false;
    r->count = 0;
    put(r, what);
    put(r, r->number);
    return true;
}

/* Sends the message. The caller ends with mt_ranks_leave, after exchanges that belong to the call. */
static void tell(mt_relay *r)
{
    mt_ranks_enter(r->ranks);
    mt_ranks_tell(r->ranks, r->words, r->count);
}

static void tell_all(mt_relay *r)
{
    tell(r);
    mt_ranks_leave(r->ranks);
}

bool mt_relay_new(mt_relay *r, mt_device *dev, const mt_model_spec *spec, const mt_model_params *params, mt_error *err)
{
    static atomic_uint last;
    mt_ranks *ranks = mt_device_ranks(dev);
    if (!ranks || mt_ranks_own(ranks) > 0)
        return true;
    *r = (mt_relay){.ranks = ranks, .dev = dev, .spec = spec, .number = atomic_fetch_add(&last, 1)};
    begin(r, MT_TOLD_NEW);
    const size_t numbers[] = {mt_device_serial(dev), spec->mtp,      spec->drafter != NULL, params->rows,
                              params->logits,        params->places, params->memos};
    for (size_t i = 0; i < MT_COUNT(numbers); i++)
        put(r, numbers[i]);
    tell_all(r);
    r->awaited = true;
    return mt_ranks_well(ranks, err);
}

bool mt_relay_agree(mt_relay *r, mt_error *err)
{
    if (!r->ranks)
        return true;
    r->awaited = false;
    mt_ranks_enter(r->ranks);
    const bool ok = mt_ranks_agree(r->ranks, err);
    mt_ranks_leave(r->ranks);
    return ok;
}

void mt_relay_free(mt_relay *r)
{
    if (r->awaited && !mt_relay_agree(r, NULL))
        r->awaited = false; /* this rank has failed before and said why */
    if (begin(r, MT_TOLD_FREE))
        tell_all(r);
    mt_free(r->words);
    *r = (mt_relay){0};
}

void mt_relay_reserve(mt_relay *r, const size_t pages[MT_KV_GROUPS], size_t states)
{
    if (!begin(r, MT_TOLD_RESERVE))
        return;
    for (size_t g = 0; g < MT_KV_GROUPS; g++)
        put(r, g < r->spec->group_count ? pages[g] : 0);
    put(r, states);
    tell_all(r);
    r->awaited = true;
}

void mt_relay_set_features(mt_relay *r, mt_set *set, mt_device *dev, const mt_tensor *features)
{
    if (!features || !begin(r, MT_TOLD_FEATURES))
        return;
    r->features = features;
    r->width = mt_tensor_cols(dev, features);
    r->reading = mt_reading_new(set, r->width * sizeof(float));
    put(r, r->width);
    tell_all(r);
}

void mt_relay_copy(mt_relay *r, const uint32_t to[MT_KV_GROUPS], const uint32_t from[MT_KV_GROUPS])
{
    if (!begin(r, MT_TOLD_COPY))
        return;
    for (size_t g = 0; g < MT_KV_GROUPS; g++) {
        const bool known = g < r->spec->group_count;
        put(r, known ? to[g] : MT_NO_PAGE);
        put(r, known ? from[g] : MT_NO_PAGE);
    }
    tell_all(r);
}

void mt_relay_carry(mt_relay *r, size_t place, uint32_t row)
{
    if (!begin(r, MT_TOLD_CARRY))
        return;
    put(r, place);
    put(r, row);
    tell_all(r);
}

void mt_relay_poison(mt_relay *r, size_t group, uint32_t page)
{
    if (!begin(r, MT_TOLD_POISON))
        return;
    put(r, group);
    put(r, page);
    tell_all(r);
}

/* ---- steps ---- */

/* How many pages of a span's table are sent: as many as its rows see. */
static size_t pages_of(const mt_batch *b, const mt_span *s)
{
    size_t end = s->position + s->rows;
    for (size_t i = s->row; b->seen && i < s->row + s->rows; i++)
        end = b->seen[i] > end ? b->seen[i] : end;
    return (end + MT_PAGE_TOKENS - 1) / MT_PAGE_TOKENS;
}

static void add_span(mt_relay *r, const mt_batch *b, const mt_span *s)
{
    const size_t pages = pages_of(b, s);
    const uint32_t numbers[] = {s->row,     s->rows, s->position, s->state,       s->pieces,
                                s->guesses, s->memo, s->replay,   (uint32_t)pages};
    add(r, numbers, MT_COUNT(numbers));
    for (size_t i = 0; i < s->pieces; i++) {
        put(r, s->piece[i].rows);
        put(r, s->piece[i].slot);
    }
    for (size_t g = 0; g < r->spec->group_count; g++)
        add(r, s->pages[g], pages);
}

/* Adds the row of features of each row that has one; the receivers number them in this order. */
static void add_features(mt_relay *r, const mt_batch *b)
{
    for (size_t i = 0; i < b->rows; i++) {
        const bool has = b->features[i] != MT_NO_PAGE;
        put(r, has);
        if (!has)
            continue;
        mt_read_rows(r->dev, r->reading, r->features, b->features[i], 1);
        add(r, mt_reading_row(r->dev, r->reading, 0), r->width);
    }
}

/* Appends a batch to the message. */
static void add_batch(mt_relay *r, const mt_batch *b)
{
    put(r, b->rows);
    put(r, b->spans);
    put(r, (b->features ? 1u : 0) | (b->seen_from ? 2u : 0) | (b->seen ? 4u : 0));
    add(r, b->tokens, b->rows);
    add(r, b->positions, b->rows * sizeof(*b->positions) / sizeof(uint32_t));
    for (size_t i = 0; i < b->spans; i++)
        add_span(r, b, &b->span[i]);
    if (b->seen_from)
        add(r, b->seen_from, b->rows);
    if (b->seen)
        add(r, b->seen, b->rows);
    if (b->features)
        add_features(r, b);
}

void mt_relay_step(mt_relay *r, const mt_batch *batch, const uint32_t *rows, size_t count)
{
    if (!begin(r, MT_TOLD_STEP))
        return;
    put(r, count);
    add(r, rows, count);
    add_batch(r, batch);
    tell(r);
}

void mt_relay_guess(mt_relay *r, const mt_batch *batch, bool chained)
{
    if (!begin(r, MT_TOLD_GUESS))
        return;
    put(r, chained);
    add_batch(r, batch);
    tell(r);
}

void mt_relay_done(mt_relay *r)
{
    if (r->ranks)
        mt_ranks_leave(r->ranks);
}
