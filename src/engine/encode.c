/* The vision tower's job: pictures become features. One job is under way at a time; it has some parts of pictures, each
   with room in the feature cache for its features, and the tower works on it in slices between steps.

   1. A sequence whose next position belongs to a part without features has no rows, and waits for a job.
   2. The feature cache entries of the job's parts are marked as filling and pinned by the job. The job reads pictures
      of requests, so when a request ends, a job that reads its pictures is given up.
   3. Only running sequences pin features that are complete, from the position they have reached on. They can always go
      on, and unpin features that they have passed; so sequences do not wait for each other's room in a circle. */
#include <assert.h>

#include "base/clock.h"
#include "engine/inside.h"
#include "engine/media_parts.h"

#define TOGETHER 1024 /* most patches of a job with several pictures: more would make the first of them wait */

static bool in_job(const mt_engine *e, const mt_medium *medium)
{
    for (size_t i = 0; i < e->job.count; i++)
        if (e->pictures.part[i]->medium == medium)
            return true;
    return false;
}

void mt_engine_unpin(mt_engine *e, mt_sequence *s)
{
    for (; s->pinned < s->pinned_end; s->pinned++)
        mt_feature_cache_unpin(e->feature_cache, s->request->media_parts[s->pinned].medium);
}

/* Pins the complete parts from `from` on and unpins all others of s. Returns the first part that is not complete. */
static size_t pin(mt_engine *e, mt_sequence *s, size_t from)
{
    const mt_request *r = s->request;
    for (; s->pinned < s->pinned_end && s->pinned < from; s->pinned++)
        mt_feature_cache_unpin(e->feature_cache, r->media_parts[s->pinned].medium);
    if (s->pinned == s->pinned_end)
        s->pinned = s->pinned_end = from;
    for (; s->pinned_end < r->media_part_count; s->pinned_end++) {
        mt_medium *medium = r->media_parts[s->pinned_end].medium;
        if (!mt_feature_cache_features(e->feature_cache, medium))
            break;
        mt_feature_cache_pin(e->feature_cache, medium);
    }
    return s->pinned_end;
}

size_t mt_engine_media_reach(mt_engine *e, mt_sequence *s, size_t done, bool running)
{
    const mt_request *r = s->request;
    s->lacks_features = false;
    if (r->media_part_count == 0)
        return SIZE_MAX;
    size_t at = mt_media_parts_after(r, done);
    if (running)
        at = pin(e, s, at);
    else
        while (at < r->media_part_count && mt_feature_cache_features(e->feature_cache, r->media_parts[at].medium))
            at++;
    s->missing = at;
    if (at == r->media_part_count)
        return SIZE_MAX;
    s->lacks_features = r->media_parts[at].first <= done;
    return s->lacks_features ? 0 : r->media_parts[at].first - done;
}

bool mt_engine_awaits(const mt_engine *e, const mt_sequence *s)
{
    return s->lacks_features && in_job(e, s->request->media_parts[s->missing].medium);
}

bool mt_engine_expects(const mt_engine *e, const mt_sequence *s)
{
    return s->lacks_features && !mt_engine_awaits(e, s) &&
           (s->kept.asking_features || mt_medium_filling(s->request->media_parts[s->missing].medium));
}

/* Adds a part of a request to the job. False when the job or the feature cache is full. */
static bool add(mt_engine *e, mt_request *r, mt_media_part *part)
{
    mt_shown *p = &e->pictures;
    const size_t at = e->job.count;
    if (mt_feature_cache_features(e->feature_cache, part->medium) || mt_medium_filling(part->medium))
        return true;
    if (at == MT_JOB_PARTS)
        return false;
    p->picture[at] = &part->picture;
    if (!e->tower.fits(e->tower.cursor, p->picture, at + 1))
        return false;
    do
        p->to[at] = mt_feature_cache_fill(e->feature_cache, part->medium, part->picture.tokens);
    while (!p->to[at] && mt_keep_yield(e, false));
    if (!p->to[at])
        return false;
    p->part[at] = part;
    mt_job_add(&e->job, r, (double)mt_picture_patches(&part->picture));
    e->stats.media_misses++;
    return true;
}

/* Adds the parts whose features a sequence lacks from its position on, as far as they fit into one job. */
static void add_all(mt_engine *e, mt_sequence *s)
{
    mt_request *r = s->request;
    for (size_t i = s->missing; i < r->media_part_count; i++) {
        if (e->job.count > 0 && e->job.whole + (double)mt_picture_patches(&r->media_parts[i].picture) > TOGETHER)
            return;
        if (!add(e, r, &r->media_parts[i]))
            return;
        s->waited_for = i + 1;
    }
}

/* Begins to read from the tiers the features that s needs next. Parts that no tier has are not asked for again. */
static void call_back(mt_engine *e, mt_sequence *s)
{
    const mt_request *r = s->request;
    if (mt_keep_ask_features(e, s))
        return;
    for (size_t i = s->missing; i < r->media_part_count && mt_keep_views_free(e); i++) {
        mt_medium *medium = r->media_parts[i].medium;
        if (i >= s->kept.sought && !mt_feature_cache_features(e->feature_cache, medium) && !mt_medium_filling(medium) &&
            !mt_keep_view(e, r, &r->media_parts[i]))
            s->kept.sought = i + 1;
    }
}

void mt_engine_fetch_features(mt_engine *e)
{
    for (size_t i = 0; i < e->running_count; i++)
        if (e->running[i]->lacks_features)
            call_back(e, e->running[i]);
    for (size_t i = 0; i < e->waiting_count && i < MT_JOB_PARTS; i++)
        if (e->waiting[i]->lacks_features)
            call_back(e, e->waiting[i]);
}

void mt_engine_encode_begin(mt_engine *e, mt_sequence *first)
{
    assert(e->job.count == 0);
    if (!first->kept.asking_features)
        add_all(e, first);
    if (e->job.count == 0 && !mt_engine_expects(e, first))
        return;
    for (size_t i = 0; i < e->running_count; i++)
        if (e->running[i]->lacks_features && !e->running[i]->kept.asking_features)
            add_all(e, e->running[i]);
    for (size_t i = 0; i < e->waiting_count && i < MT_JOB_PARTS; i++)
        if (e->waiting[i]->lacks_features && !e->waiting[i]->kept.asking_features)
            add_all(e, e->waiting[i]);
    if (e->job.count > 0)
        e->tower.begin(e->tower.cursor, e->features.rows, e->pictures.picture, e->pictures.to, e->job.count);
}

void mt_engine_forget(mt_engine *e, mt_request *r)
{
    bool mine = false;
    for (size_t i = 0; i < e->job.count; i++)
        mine |= e->job.request[i] == r;
    if (mine) {
        mt_cursor_drop(e->tower.cursor);
        for (size_t i = 0; i < e->job.count; i++)
            mt_feature_cache_filled(e->feature_cache, e->pictures.part[i]->medium, false);
        mt_job_clear(&e->job);
    }
    if (e->feature_cache)
        mt_media_parts_release(r, e->feature_cache);
}

/* Whether all numbers of these rows of features are finite. */
static bool sound(mt_engine *e, const uint32_t *rows, size_t count)
{
    const mt_features *f = &e->features;
    for (size_t at = 0; at < count; at += MT_FEATURES_LOOKED_AT) {
        const size_t left = count - at, n = left < MT_FEATURES_LOOKED_AT ? left : MT_FEATURES_LOOKED_AT;
        mt_index_write(e->dev, f->which, rows + at, n);
        mt_op_gather(e->dev, f->some, f->rows, f->which, n);
        mt_op_finite(e->dev, f->sound, f->some, n);
        mt_read_rows(e->dev, f->reading, f->sound, 0, n);
        for (size_t i = 0; i < n; i++)
            if (*mt_reading_row(e->dev, f->reading, i) == 0)
                return false;
    }
    return true;
}

void mt_engine_encoded(mt_engine *e, mt_job *j)
{
    mt_shown *p = &e->pictures;
    mt_histogram_add(&e->stats.encode, (double)(mt_clock_ns() - j->began) * 1e-9);
    for (size_t i = 0; i < j->count; i++) {
        const bool ok = sound(e, p->to[i], p->part[i]->picture.tokens);
        mt_feature_cache_filled(e->feature_cache, p->part[i]->medium, ok);
        if (ok)
            mt_keep_encoded(e, j->request[i], p->part[i]);
        else
            p->unsound[p->unsound_count++] = j->request[i];
        j->sizes += j->size[i];
    }
    mt_job_clear(j);
}
