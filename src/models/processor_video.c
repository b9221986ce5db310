/* Chooses frames of a video and makes views of them (processor.h): one view has as many frames as a patch holds. */
#include <math.h>

#include "media/video.h"
#include "models/vision_family.h"

static void choose_all(mt_frame_choice *c)
{
    c->count = (uint32_t)c->total;
    for (uint32_t i = 0; i < c->count; i++)
        c->index[i] = i;
}

static bool choose(mt_frame_choice *c, const mt_picture_wish *wish, mt_arena *arena, mt_error *err)
{
    const mt_processor *p = c->p;
    const uint32_t fixed = wish->frames ? wish->frames : wish->fps > 0 ? 0 : p->video_frames;
    const double seconds = (double)c->total / c->fps, fps = wish->fps > 0 ? wish->fps : p->fps;
    const bool all = !p->sample && wish->frames == 0 && !(wish->fps > 0) && c->total <= p->max_frames;
    c->index = mt_arena_alloc(arena, (p->max_frames + 2) * sizeof(*c->index));
    if (!c->index)
        return mt_fail(err, MT_E_TOO_LARGE, "the pictures of the request take more memory than a request may");
    if (all)
        choose_all(c);
    else
        p->family->choose(c, fixed ? fixed : seconds * fps, fixed > 0);
    return true;
}

/* Sets the time of each view: seconds from the first frame, at its middle or its beginning. */
static bool tell_times(const mt_frame_choice *c, mt_arena *arena, mt_picture *out, mt_error *err)
{
    const uint32_t frames = c->p->frames;
    double *times = mt_arena_alloc(arena, out->views * sizeof(*times));
    if (!times)
        return mt_fail(err, MT_E_TOO_LARGE, "the pictures of the request take more memory than a request may");
    for (uint32_t v = 0; v < out->views; v++) {
        const uint32_t first = v * frames, last = first + frames - 1 < c->count ? first + frames - 1 : c->count - 1;
        const double begin = (double)c->index[first] / c->fps, end = (double)c->index[last] / c->fps;
        times[v] = c->p->family->early ? begin : (begin + end) / 2;
    }
    out->times = times;
    return true;
}

/* Rotary positions between two views, where these depend on time; fractions of a second are dropped. */
static uint32_t time_step(const mt_frame_choice *c)
{
    const double rate = (double)c->count / (double)c->total * c->fps, seconds = c->p->frames / rate;
    return c->p->tokens_per_second ? c->p->tokens_per_second * (uint32_t)fmin(fmax(seconds, 0), 1e6) : 1;
}

/* Where frames come from: a video, or a list of images. The first image of a list is read early for its size, and kept
   here until it is used. */
typedef struct frames {
    mt_video *video;
    const mt_frame_list *list;
    mt_image first;
    size_t taken; /* bytes of memory for resizing that were asked for */
} frames;

static bool next_frame(frames *from, int64_t index, mt_image *image, mt_error *err)
{
    if (from->video)
        return mt_video_frame(from->video, index, image, err);
    if (!from->first.pixels)
        return from->list->next(from->list->ctx, (size_t)index, image, err);
    *image = from->first;
    from->first = (mt_image){0};
    return true;
}

static bool fill_frame(const mt_frame_choice *c, frames *from, const mt_image *image, uint32_t i,
                       const mt_picture_order *order, mt_picture *out, mt_error *err)
{
    const mt_processor *p = c->p;
    const mt_pixel_rules *rules = &p->video;
    const bool twice = p->family->before != NULL;
    mt_pixel_size size = {image->height, image->width};
    size_t needed = 0;
    if (twice) {
        size = p->family->before(p, image->height, image->width);
        needed = mt_image_resize_memory(image->width, image->height, size.width, size.height, rules->resample);
    }
    needed += mt_picture_fill_memory(p, rules, size.height, size.width, out);
    /* all frames of a video have one size: asked once */
    if ((from->list || from->taken == 0) && !mt_media_take(order->watch, needed, err))
        return false;
    from->taken = needed;
    mt_image first = {0};
    if (twice)
        mt_image_resize(&first, image, size.width, size.height, rules->resample);
    mt_picture_fill(p, rules, twice ? &first : image, i / out->frames, i % out->frames, out);
    mt_image_free(&first);
    return true;
}

static bool fill(const mt_frame_choice *c, frames *from, const mt_picture_order *order, mt_picture *out, mt_error *err)
{
    mt_image image = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < out->views * out->frames; i++) {
        if (i < c->count) { /* behind the last frame, the last one fills the rest of its view */
            mt_image_free(&image);
            ok = next_frame(from, c->index[i], &image, err);
        }
        ok = ok && fill_frame(c, from, &image, i, order, out, err);
    }
    mt_image_free(&image);
    return ok;
}

/* Makes one picture whose views are the frames. */
static bool make_views(const mt_frame_choice *c, frames *from, mt_pixel_size given, const mt_picture_order *order,
                       mt_picture *out, mt_error *err)
{
    const mt_processor *p = c->p;
    mt_pixel_size size;
    if (!p->family->size(p, &order->wish, given.height, given.width, c->count, &size, err))
        return false;
    const uint32_t views = (c->count + p->frames - 1) / p->frames;
    if (!mt_picture_new(p, &p->video, views, size, p->frames, order, out, err))
        return false;
    out->video = true;
    out->step = time_step(c);
    out->seconds = (double)c->total / c->fps;
    if (!tell_times(c, order->arena, out, err) || !fill(c, from, order, out, err))
        return false;
    mt_picture_sign(p, out);
    return true;
}

/* Makes pictures of each frame, one behind the other. */
static bool make_each(const mt_frame_choice *c, frames *from, const mt_picture_order *order, mt_picture *out,
                      mt_error *err)
{
    uint32_t count = 0;
    bool ok = true;
    for (uint32_t i = 0; ok && i < c->count; i++) {
        mt_image image = {0};
        mt_picture *first = &out[count];
        ok = next_frame(from, c->index[i], &image, err) && c->p->family->frame(c->p, &image, order, first, err);
        mt_image_free(&image);
        const uint32_t made = ok ? 1 + first->more : 0;
        first->more = 0;
        for (uint32_t j = 0; j < made; j++) {
            first[j].video = true;
            mt_picture_sign(c->p, &first[j]);
        }
        count += made;
    }
    out->more = ok ? count - 1 : 0;
    return ok;
}

static bool make(const mt_frame_choice *c, frames *from, mt_pixel_size given, const mt_picture_order *order,
                 mt_picture **out, mt_error *err)
{
    const bool each = c->p->family->frame != NULL;
    *out = mt_arena_alloc(order->arena, (each ? (size_t)c->count * MT_PICTURE_SIZES : 1) * sizeof(**out));
    if (!*out)
        return mt_fail(err, MT_E_TOO_LARGE, "the pictures of the request take more memory than a request may");
    return each ? make_each(c, from, order, *out, err) : make_views(c, from, given, order, *out, err);
}

static bool takes_video(const mt_processor *p, mt_error *err)
{
    return p->family->choose || mt_fail(err, MT_E_INVALID, "this model takes no videos; send single frames as images");
}

bool mt_processor_video(const mt_processor *p, mt_video *video, const mt_picture_order *order, mt_picture **out,
                        mt_error *err)
{
    const mt_video_info about = mt_video_about(video);
    mt_frame_choice c = {.p = p, .total = about.frames, .fps = about.fps};
    return takes_video(p, err) && choose(&c, &order->wish, order->arena, err) &&
           make(&c, &(frames){.video = video}, (mt_pixel_size){about.height, about.width}, order, out, err);
}

bool mt_processor_frames(const mt_processor *p, const mt_frame_list *list, const mt_picture_order *order,
                         mt_picture **out, mt_error *err)
{
    const double fps = order->wish.fps;
    mt_frame_choice c = {.p = p, .total = (int64_t)list->count, .fps = fps > 0 ? fps : p->fps > 0 ? p->fps : 1};
    frames from = {.list = list};
    if (!takes_video(p, err))
        return false;
    if (list->count == 0)
        return mt_fail(err, MT_E_INVALID, "a list of no frames; send at least one");
    c.index = mt_arena_alloc(order->arena, list->count * sizeof(*c.index));
    if (!c.index)
        return mt_fail(err, MT_E_TOO_LARGE, "the pictures of the request take more memory than a request may");
    choose_all(&c);
    const bool ok = list->next(list->ctx, 0, &from.first, err) &&
                    make(&c, &from, (mt_pixel_size){from.first.height, from.first.width}, order, out, err);
    mt_image_free(&from.first);
    return ok;
}
