/* See pictures.h. */
#include "server/prepare/pictures.h"

#include <string.h>

#include "api/limits.h"
#include "base/clock.h"
#include "media/cost.h"
#include "media/image.h"
#include "media/source.h"
#include "media/video.h"
#include "server/limits.h"
#include "server/prepare/documents.h"
#include "template/limits.h"

#define NO_ROOM "the pictures need more memory than a request may have; send fewer"

/* ---- memory ---- */

static bool stopped(const mt_pictures *p)
{
    return atomic_load_explicit(p->prep->stop, memory_order_relaxed); /* relaxed: checked again and again */
}

static bool cancelled(mt_error *err)
{
    return mt_fail(err, MT_E_INVALID, "the request was cancelled before it began");
}

/* The callback mt_media_watch.take: so many bytes more are needed now. */
static bool take(void *ctx, size_t bytes, mt_error *err)
{
    mt_pictures *p = ctx;

    p->now += bytes;
    return p->now <= p->has.bytes || mt_picture_room_take(p->room, &p->has, p->now - p->has.bytes, p->prep->stop, err);
}

/* Before each picture: working memory of the picture before it is free again, and only the arenas count. p keeps what
   it has of the room until the part is done, since the next picture will need about as much. */
static void begin_picture(mt_pictures *p)
{
    p->now = mt_arena_used(p->arena) + mt_arena_used(p->scratch);
}

/* Pictures that a request owns. Freed with the request, on the engine's thread. */
typedef struct held {
    mt_picture_room *room;
    mt_arena *arena;
    mt_picture_share has;
} held;

static void free_held(void *object)
{
    held *h = object;

    mt_arena_free(h->arena);
    mt_picture_room_end(h->room, &h->has);
}

bool mt_pictures_give(mt_pictures *p, mt_request *request, mt_error *err)
{
    held *h;

    if (p->count == 0)
        return true;
    p->now = mt_arena_used(p->arena);
    h = mt_arena_alloc(request->arena, sizeof(*h));
    if (!h)
        return mt_fail(err, MT_E_TOO_LARGE, "the request needs more memory than one may have; make it smaller");
    if (!take(p, 0, err)) /* the arena may have grown beyond what is charged */
        return false;
    *h = (held){.room = p->room, .arena = p->arena, .has = p->has};
    mt_picture_room_hand_over(p->room, &p->has);
    p->arena = NULL;
    p->has.bytes = 0;
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

    p->has.client = p->prep->client->id;
    p->arena = mt_arena_new(MT_LIMIT_REQUEST_MEMORY);
    if (more && !json_is_null(more) && !json_is_object(more))
        mt_fail(err, MT_E_INVALID, "\"mm_processor_kwargs\" is no object; send one, or leave it out");
    else if (!mt_chat_media_options_read(&p->options, body, "the request", err))
        return false;
    else if (mt_chat_media_options_read(&p->options, more, "\"mm_processor_kwargs\"", err))
        return true;
    err->field = "mm_processor_kwargs";
    return false;
}

void mt_pictures_free(mt_pictures *p)
{
    mt_picture_room_give(p->room, &p->has, p->has.bytes);
    mt_arena_free(p->arena);
    *p = (mt_pictures){0};
}

static mt_picture_order order_of(const mt_pictures *p, const mt_chat_media_options *options)
{
    return (mt_picture_order){.wish = {.min_pixels = (uint64_t)options->min_pixels,
                                       .max_pixels = (uint64_t)options->max_pixels,
                                       .fps = options->fps,
                                       .frames = (uint32_t)options->num_frames,
                                       .low = options->detail == MT_CHAT_DETAIL_LOW,
                                       .crops = options->crops},
                              .watch = &p->watch,
                              .arena = p->arena};
}

/* Bounds the decoding work of all pictures of a request together, since small files may take much. */
static bool count_pixels(void *ctx, const mt_image_info *info, mt_error *err)
{
    mt_pictures *p = ctx;

    p->pixels += info->work;
    return p->pixels <= MT_LIMIT_MEDIA_PICTURES_WORK ||
           mt_fail(err, MT_E_INVALID,
                   "the pictures of the request have %.0f million pixels to decode up to here, and %.0f are "
                   "allowed: send fewer or smaller ones",
                   (double)p->pixels / 1e6, (double)MT_LIMIT_MEDIA_PICTURES_WORK / 1e6);
}

/* Starts the process that decodes all pictures of a request, where such processes are used. */
static bool begin_decoding(mt_pictures *p, mt_error *err)
{
    if (p->decoding)
        return true;
    p->decoder = mt_decode_client_new(p->limits, &p->watch, mt_picture_room_most(p->room), err);
    p->decoding = p->decoder || err->code == MT_OK;
    return p->decoding;
}

static void end_decoding(mt_pictures *p)
{
    p->prep->decoding += (double)mt_decode_client_cpu_ns(p->decoder) * 1e-9;
    mt_decode_client_free(p->decoder);
    p->decoder = NULL;
    p->decoding = false;
}

/* Decodes a picture, in the process or here. */
static bool develop(mt_pictures *p, mt_image *image, const mt_buf *bytes, mt_error *err)
{
    mt_image_info info;

    if (p->decoder)
        return mt_decode_client_image(p->decoder, image, bytes->data, bytes->len, count_pixels, p, err);
    return mt_image_probe(&info, bytes->data, bytes->len, p->limits, err) && count_pixels(p, &info, err) &&
           mt_image_decode(image, bytes->data, bytes->len, p->limits, &p->watch, err);
}

/* Fetches a picture or video and has all ready to decode it. bytes: free with mt_buf_free in any case. */
static bool fetch(mt_pictures *p, mt_chat_text url, mt_buf *bytes, mt_error *err)
{
    const bool uploaded = p->prep->uploads && mt_uploads_is(url.data, url.len);
    const size_t scheme = strlen(MT_CHAT_FILE_SCHEME);
    const bool kept = url.len > scheme && memcmp(url.data, MT_CHAT_FILE_SCHEME, scheme) == 0;

    if (kept ? !mt_documents_load(p->prep, url.data + scheme, url.len - scheme, p->limits->bytes, &p->watch, bytes,
                                  NULL, NULL, err)
        : uploaded ? !mt_uploads_load(p->prep->uploads, p->prep->account, url.data, url.len, &p->watch, bytes, err)
                   : !mt_media_load(bytes, url.data, url.len, p->limits, &p->watch, err))
        return false;
    if (p->prep->takes_long && mt_media_cost(bytes->data, bytes->len) > MT_LIMIT_MEDIA_LONG)
        p->prep->takes_long(p->prep->lane);
    return begin_decoding(p, err);
}

/* Fetches and decodes a picture. */
static bool decode(mt_pictures *p, mt_chat_text url, mt_image *image, mt_error *err)
{
    mt_buf bytes;
    bool ok;

    ok = fetch(p, url, &bytes, err) && develop(p, image, &bytes, err);
    mt_buf_free(&bytes);
    return ok;
}

static bool load_image(mt_pictures *p, const mt_chat_source *source, mt_picture **out, mt_error *err)
{
    const mt_picture_order order = order_of(p, &source->options);
    mt_image image = {0};
    bool ok;

    *out = mt_arena_alloc(p->scratch, MT_PICTURE_SIZES * sizeof(**out));
    ok = (*out || mt_fail(err, MT_E_TOO_LARGE, NO_ROOM)) && decode(p, source->urls[0], &image, err) &&
         mt_processor_image(p->processor, &image, &order, *out, err);
    mt_image_free(&image);
    return ok;
}

static bool load_video(mt_pictures *p, const mt_chat_source *source, mt_picture **out, mt_error *err)
{
    const mt_picture_order order = order_of(p, &source->options);
    mt_video *video = NULL;
    mt_buf bytes;
    bool ok;

    ok = fetch(p, source->urls[0], &bytes, err);
    if (ok)
        video = p->decoder ? mt_decode_client_video(p->decoder, bytes.data, bytes.len, err)
                           : mt_video_open(bytes.data, bytes.len, p->limits, &p->watch, err);
    ok = video && mt_processor_video(p->processor, video, &order, out, err);
    mt_video_close(video);
    mt_buf_free(&bytes);
    return ok;
}

/* A video given as a list of pictures; see load_frames. */
typedef struct frames {
    mt_pictures *p;
    const mt_chat_source *source;
} frames;

/* The callback mt_frame_list.next. */
static bool next_frame(void *ctx, size_t index, mt_image *image, mt_error *err)
{
    const frames *f = ctx;

    begin_picture(f->p);
    if (stopped(f->p))
        return cancelled(err);
    return decode(f->p, f->source->urls[index], image, err) || mt_fail_within(err, "frame %zu", index);
}

static bool load_frames(mt_pictures *p, const mt_chat_source *source, mt_picture **out, mt_error *err)
{
    const mt_picture_order order = order_of(p, &source->options);
    frames from = {.p = p, .source = source};

    return mt_processor_frames(p->processor, &(mt_frame_list){.count = source->count, .next = next_frame, .ctx = &from},
                               &order, out, err);
}

/* Prepares one part of a message. */
static bool load_part(mt_pictures *p, const mt_chat_media *media, mt_picture **out, mt_error *err)
{
    mt_chat_source source;

    if (mt_chat_source_read(&source, p->scratch, media, &p->options, err)) {
        begin_picture(p);
        if (media->type == MT_CHAT_IMAGE ? load_image(p, &source, out, err)
            : source.frames              ? load_frames(p, &source, out, err)
                                         : load_video(p, &source, out, err))
            return true;
        mt_fail_within(err, "%s", media->place); /* the reader's own errors name the part already */
    }
    err->field = media->place;
    return false;
}

/* Appends a picture, and the further ones that belong to it (picture->more), to p->at. */
static bool keep(mt_pictures *p, const mt_picture *picture, mt_error *err)
{
    const size_t more = 1 + (size_t)picture->more;

    if (p->count + more > p->room_at) {
        const size_t room = 2 * p->room_at + more;
        mt_picture *at = mt_arena_alloc(p->arena, room * sizeof(*at));

        if (!at)
            return mt_fail(err, MT_E_TOO_LARGE, NO_ROOM);
        if (p->count)
            memcpy(at, p->at, p->count * sizeof(*at));
        p->at = at;
        p->room_at = room;
    }
    memcpy(p->at + p->count, picture, more * sizeof(*picture));
    p->count += more;
    return true;
}

/* Prepares one part and keeps it; *out: where it is in p->at. */
static bool load(mt_pictures *p, const mt_chat_media *media, const mt_picture **out, mt_error *err)
{
    mt_picture *made = NULL;
    const size_t first = p->count;
    bool ok;

    p->scratch = mt_arena_new(MT_LIMIT_REQUEST_MEMORY);
    ok = load_part(p, media, &made, err) && keep(p, made, err);
    mt_arena_free(p->scratch);
    p->scratch = NULL;
    p->now = mt_arena_used(p->arena);
    if (p->has.bytes > p->now)
        mt_picture_room_give(p->room, &p->has, p->has.bytes - p->now);
    *out = ok ? &p->at[first] : NULL;
    return ok;
}

/* The text that stands for a picture in the prompt. number: of this picture among its kind. */
static bool write_text(const mt_pictures *p, const mt_picture *picture, size_t number, mt_chat_text *text,
                       mt_error *err)
{
    mt_buf out = {.limit = MT_LIMIT_TEMPLATE_OUTPUT};
    bool ok;

    ok = mt_processor_text(p->processor, picture, number, &out);
    *text = (mt_chat_text){.data = ok ? mt_arena_copy(p->arena, out.data, out.len) : NULL, .len = out.len};
    mt_buf_free(&out);
    return text->data || mt_fail(err, MT_E_TOO_LARGE, NO_ROOM);
}

static bool describe(mt_pictures *p, const mt_chat_media *media, size_t count, mt_chat_text *texts, mt_error *err)
{
    size_t numbers[2] = {0};

    for (size_t i = 0; i < count; i++) {
        const mt_picture *picture;

        if (stopped(p))
            return cancelled(err);
        if (!load(p, &media[i], &picture, err) ||
            !write_text(p, picture, numbers[media[i].type == MT_CHAT_IMAGE]++, &texts[i], err))
            return false;
    }
    return true;
}

bool mt_pictures_describe(void *ctx, const mt_chat_media *media, size_t count, mt_chat_text *texts, mt_error *err)
{
    const uint64_t begin = mt_clock_ns();
    mt_pictures *p = ctx;
    bool ok;

    if (count > MT_LIMIT_MEDIA_PARTS)
        return mt_fail(err, MT_E_TOO_LARGE, "%zu pictures; send at most %d", count, MT_LIMIT_MEDIA_PARTS);
    p->watch = (mt_media_watch){.stop = p->prep->stop, .take = take, .ctx = p};
    ok = describe(p, media, count, texts, err);
    end_decoding(p);
    if (ok)
        mt_picture_room_count(p->room, count, (double)(mt_clock_ns() - begin) * 1e-9);
    return ok;
}
