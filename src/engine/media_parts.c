/* Cuts the pictures of a request into parts that are encoded separately (media_parts.h). */
#include "engine/media_parts.h"

#include <string.h>

#include "engine/sequence.h"

#define PART_TOKENS 4096 /* most tokens of a part that has several views; a single view is a part, however large */

/* How many views a part of this picture has. */
static uint32_t views_of_part(const mt_picture *p)
{
    const uint32_t each = p->tokens / p->views, views = PART_TOKENS / each;
    return views == 0 ? 1 : views < p->views ? views : p->views;
}

/* Views [begin, begin + views) of p. A part that is not the whole picture has a digest of its own. */
static mt_picture cut(const mt_picture *p, uint32_t begin, uint32_t views)
{
    mt_picture part = *p;
    part.views = views;
    part.tokens = p->tokens / p->views * views;
    part.patches = p->patches + (size_t)begin * p->height * p->width * p->patch_bytes;
    part.times = p->times ? p->times + begin : NULL;
    if (views < p->views)
        mt_digest(
            part.digest,
            (const mt_digest_part[]){{p->digest, sizeof(p->digest)}, {&begin, sizeof(begin)}, {&views, sizeof(views)}},
            3);
    return part;
}

/* Sets the positions of the prompt that hold rows of the part. */
static void place(mt_media_part *s, const mt_request *r, size_t picture)
{
    for (size_t i = 0; i < r->span_count; i++) {
        const mt_media_span *span = &r->spans[i];
        const uint32_t begin = span->row > s->row ? span->row : s->row;
        const uint32_t last = span->row + span->count, end = s->row + s->picture.tokens;
        if (span->picture != picture || begin >= (last < end ? last : end))
            continue;
        const uint32_t first = span->first + (begin - span->row);
        if (s->end == 0)
            s->first = first;
        s->end = span->first + ((last < end ? last : end) - span->row);
    }
}

/* Whether the spans ascend, lie in the prompt, and cover the rows of all pictures in order. */
static bool spans_fit(const mt_request *r)
{
    uint32_t picture = 0, row = 0;
    size_t at = 0;
    for (size_t i = 0; i < r->span_count; i++) {
        const mt_media_span *s = &r->spans[i];
        if (s->first < at || s->count == 0 || s->first + (size_t)s->count >= r->prompt_len)
            return false;
        if (picture < r->picture_count && row == r->pictures[picture].tokens) {
            picture++;
            row = 0;
        }
        if (picture >= r->picture_count || s->picture != picture || s->row != row ||
            s->count > r->pictures[picture].tokens - row)
            return false;
        row += s->count;
        at = s->first + (size_t)s->count;
    }
    return r->picture_count == 0 || (picture == r->picture_count - 1 && row == r->pictures[picture].tokens);
}

static size_t count_parts(const mt_request *r)
{
    size_t parts = 0;
    for (size_t i = 0; i < r->picture_count; i++) {
        const uint32_t each = views_of_part(&r->pictures[i]);
        parts += (r->pictures[i].views + each - 1) / each;
    }
    return parts;
}

/* The spans with the digests of their pictures, for the prefix tree. */
static void make_figures(mt_request *r)
{
    for (size_t i = 0; i < r->span_count; i++) {
        mt_figure *figure = &r->figures[i];
        *figure = (mt_figure){.first = r->spans[i].first, .count = r->spans[i].count};
        memcpy(figure->digest, r->pictures[r->spans[i].picture].digest, sizeof(figure->digest));
    }
    r->figure_count = r->span_count;
}

bool mt_media_parts_make(mt_request *r, size_t rows, mt_error *err)
{
    if (r->picture_count == 0)
        return true;
    if (!spans_fit(r))
        return mt_fail(err, MT_E_INTERNAL, "the places of the pictures do not fit the prompt");
    r->media_parts = mt_arena_alloc(r->arena, count_parts(r) * sizeof(*r->media_parts));
    r->figures = mt_arena_alloc(r->arena, r->span_count * sizeof(*r->figures));
    if (!r->media_parts || !r->figures)
        return mt_fail(err, MT_E_TOO_LARGE, "the pictures need more memory than a request may have; send fewer");
    make_figures(r);
    for (size_t i = 0; i < r->picture_count; i++) {
        const mt_picture *p = &r->pictures[i];
        const uint32_t each = views_of_part(p);
        for (uint32_t begin = 0; begin < p->views; begin += each) {
            mt_media_part *s = &r->media_parts[r->media_part_count++];
            s->picture = cut(p, begin, p->views - begin < each ? p->views - begin : each);
            s->row = p->tokens / p->views * begin;
            place(s, r, i);
            if (s->picture.tokens > rows)
                return mt_fail(err, MT_E_TOO_LARGE,
                               "a picture of %u tokens needs more than --media-cache, which has room for %zu; send a "
                               "smaller one",
                               s->picture.tokens, rows);
        }
    }
    return true;
}

void mt_media_parts_take(mt_request *r, mt_feature_cache *feature_cache)
{
    for (size_t i = 0; i < r->media_part_count; i++)
        r->media_parts[i].medium = mt_feature_cache_hold(feature_cache, r->media_parts[i].picture.digest, r->salt);
}

void mt_media_parts_release(mt_request *r, mt_feature_cache *feature_cache)
{
    for (size_t i = 0; i < r->media_part_count; i++)
        mt_feature_cache_release(feature_cache, r->media_parts[i].medium);
    r->media_part_count = 0;
}

size_t mt_media_parts_after(const mt_request *r, size_t at)
{
    size_t low = 0, high = r->media_part_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (r->media_parts[middle].end > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
