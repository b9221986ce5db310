#include "server/pictures.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "media/image.h"
#include "media/source.h"
#include "media/video.h"

#define LOOK_MS 50 /* after which it is looked whether the client is still there */

/* ---- room ---- */

void mt_picture_room_init(mt_picture_room *room, size_t limit)
{
    *room = (mt_picture_room){.limit = limit};
    pthread_mutex_init(&room->lock, NULL);
    mt_clock_cond_init(&room->freed);
}

void mt_picture_room_free(mt_picture_room *room)
{
    pthread_cond_destroy(&room->freed);
    pthread_mutex_destroy(&room->lock);
}

static bool stopped(const mt_pictures *p)
{
    return p->stop && atomic_load_explicit(p->stop, memory_order_relaxed); /* it is looked at again and again */
}

/* Whoever holds room waits for nothing here, so that it becomes free in the end. */
static bool take_room(const mt_pictures *p, size_t bytes, mt_error *err)
{
    mt_picture_room *room = p->room;
    bool ok;

    if (bytes > room->limit)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "the pictures of the request take %.0f MiB, and all requests together may have %.0f "
                       "(--media-memory); send fewer or smaller ones",
                       (double)bytes / (1 << 20), (double)room->limit / (1 << 20));
    pthread_mutex_lock(&room->lock);
    while (room->limit - room->used < bytes && !stopped(p)) {
        const struct timespec until = mt_clock_deadline(LOOK_MS);

        pthread_cond_timedwait(&room->freed, &room->lock, &until);
    }
    ok = !stopped(p);
    room->used += ok ? bytes : 0;
    pthread_mutex_unlock(&room->lock);
    return ok || mt_fail(err, MT_E_INVALID, "the request was cancelled before it began");
}

/* What a request holds: freed with it, on the engine's thread. */
typedef struct held {
    mt_picture_room *room;
    mt_arena *arena;
    size_t bytes;
} held;

static void free_held(void *object)
{
    held *h = object;

    mt_arena_free(h->arena);
    pthread_mutex_lock(&h->room->lock);
    h->room->used -= h->bytes;
    pthread_cond_broadcast(&h->room->freed);
    pthread_mutex_unlock(&h->room->lock);
}

bool mt_pictures_give(mt_pictures *p, mt_request *request, mt_error *err)
{
    held *h;

    if (p->count == 0)
        return true;
    h = mt_arena_alloc(request->arena, sizeof(*h));
    *h = (held){.room = p->room, .arena = p->arena, .bytes = mt_arena_used(p->arena)};
    if (!take_room(p, h->bytes, err))
        return false;
    p->arena = NULL;
    if (!mt_arena_defer(request->arena, free_held, h)) {
        free_held(h);
        return mt_fail(err, MT_E_TOO_LARGE, "the request needs more memory than one may have; make it smaller");
    }
    request->pictures = p->at;
    request->picture_count = p->count;
    request->spans = p->prompt.spans;
    request->span_count = p->prompt.span_count;
    return true;
}

/* ---- from URLs to patches ---- */

bool mt_pictures_init(mt_pictures *p, const json_t *body, mt_error *err)
{
    const json_t *more = json_object_get(body, "mm_processor_kwargs");

    p->arena = mt_arena_new(MT_LIMIT_REQUEST_MEMORY);
    if (more && !json_is_null(more) && !json_is_object(more))
        return mt_fail(err, MT_E_INVALID, "\"mm_processor_kwargs\" is no object; send one, or leave it out");
    return mt_chat_look_read(&p->look, body, "the request", err) &&
           mt_chat_look_read(&p->look, more, "\"mm_processor_kwargs\"", err);
}

void mt_pictures_free(mt_pictures *p)
{
    mt_arena_free(p->arena);
    *p = (mt_pictures){0};
}

static mt_picture_wish wish_of(const mt_chat_look *look)
{
    return (mt_picture_wish){.min_pixels = (uint64_t)look->min_pixels,
                             .max_pixels = (uint64_t)look->max_pixels,
                             .fps = look->fps,
                             .frames = (uint32_t)look->num_frames,
                             .low = look->detail == MT_CHAT_DETAIL_LOW,
                             .crops = look->crops};
}

static bool decode(const mt_pictures *p, mt_chat_text url, mt_image *image, mt_error *err)
{
    mt_buf bytes;
    bool ok;

    ok = mt_media_load(&bytes, url.data, url.len, p->limits, p->stop, err) &&
         mt_image_decode(image, bytes.data, bytes.len, p->limits, err);
    mt_buf_free(&bytes);
    return ok;
}

static bool load_image(const mt_pictures *p, const mt_chat_source *source, mt_picture *out, mt_error *err)
{
    const mt_picture_wish wish = wish_of(&source->look);
    mt_image image = {0};
    const bool ok =
        decode(p, source->urls[0], &image, err) && mt_processor_image(p->processor, &image, &wish, p->arena, out, err);

    mt_image_free(&image);
    return ok;
}

static bool load_video(const mt_pictures *p, const mt_chat_source *source, mt_picture *out, mt_error *err)
{
    const mt_picture_wish wish = wish_of(&source->look);
    mt_video *video = NULL;
    mt_buf bytes;
    bool ok;

    ok = mt_media_load(&bytes, source->urls[0].data, source->urls[0].len, p->limits, p->stop, err);
    if (ok)
        video = mt_video_open(bytes.data, bytes.len, p->limits, p->stop, err);
    ok = video && mt_processor_video(p->processor, video, &wish, p->arena, out, err);
    mt_video_close(video);
    mt_buf_free(&bytes);
    return ok;
}

static bool load_frames(const mt_pictures *p, const mt_chat_source *source, mt_picture *out, mt_error *err)
{
    const mt_picture_wish wish = wish_of(&source->look);
    mt_image *frames = mt_alloc_array(source->count, sizeof(*frames));
    bool ok = true;

    for (size_t i = 0; ok && i < source->count; i++)
        ok = decode(p, source->urls[i], &frames[i], err) || mt_fail_within(err, "frame %zu", i);
    ok = ok && mt_processor_frames(p->processor, frames, source->count, &wish, p->arena, out, err);
    for (size_t i = 0; i < source->count; i++)
        mt_image_free(&frames[i]);
    mt_free(frames);
    return ok;
}

static bool load(const mt_pictures *p, const mt_chat_media *media, mt_picture *out, mt_error *err)
{
    mt_chat_source source;

    if (!mt_chat_source_read(&source, p->arena, media, &p->look, err)) /* says where by itself */
        return false;
    if (media->type == MT_CHAT_IMAGE ? load_image(p, &source, out, err)
        : source.frames              ? load_frames(p, &source, out, err)
                                     : load_video(p, &source, out, err))
        return true;
    return mt_fail_within(err, "messages[%zu].content[%zu]", media->message, media->part);
}

static bool say(const mt_pictures *p, const mt_picture *picture, mt_chat_text *text, mt_error *err)
{
    mt_buf out;
    char *copy;
    bool ok;

    mt_buf_init(&out, MT_LIMIT_TEMPLATE_OUTPUT);
    ok = mt_processor_text(p->processor, picture, &out);
    copy = ok ? mt_arena_alloc(p->arena, out.len + 1) : NULL;
    if (copy && out.len)
        memcpy(copy, out.data, out.len);
    *text = (mt_chat_text){.data = copy, .len = out.len};
    mt_buf_free(&out);
    return copy || mt_fail(err, MT_E_TOO_LARGE, "the pictures need more memory than a request may have; send fewer");
}

static void note(const mt_pictures *p, uint64_t begin)
{
    pthread_mutex_lock(&p->room->lock);
    p->room->pictures += p->count;
    mt_histogram_add(&p->room->seconds, (double)(mt_clock_ns() - begin) * 1e-9);
    pthread_mutex_unlock(&p->room->lock);
}

bool mt_pictures_show(void *ctx, const mt_chat_media *media, size_t count, mt_chat_text *texts, mt_error *err)
{
    const uint64_t begin = mt_clock_ns();
    mt_pictures *p = ctx;

    if (count > MT_LIMIT_MEDIA_PARTS)
        return mt_fail(err, MT_E_TOO_LARGE, "%zu pictures; send at most %d", count, MT_LIMIT_MEDIA_PARTS);
    p->at = mt_arena_alloc(p->arena, count * sizeof(*p->at));
    for (; p->count < count; p->count++) {
        if (stopped(p))
            return mt_fail(err, MT_E_INVALID, "the request was cancelled before it began");
        if (!load(p, &media[p->count], &p->at[p->count], err) || !say(p, &p->at[p->count], &texts[p->count], err))
            return false;
    }
    note(p, begin);
    return true;
}

bool mt_pictures_expand(mt_pictures *p, const uint32_t *ids, size_t count, mt_error *err)
{
    const mt_picture **pictures = mt_arena_alloc(p->arena, (p->count + 1) * sizeof(*pictures));

    if (!pictures)
        return mt_fail(err, MT_E_TOO_LARGE, "the pictures need more memory than a request may have; send fewer");
    for (size_t i = 0; i < p->count; i++)
        pictures[i] = &p->at[i];
    return mt_processor_expand(p->processor, ids, count, pictures, p->count, p->arena, &p->prompt, err);
}
