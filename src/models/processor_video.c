/* Which frames of a video are looked at, and how they become views: as many frames as a patch holds make one. */
#include <math.h>

#include "models/processor_inside.h"

typedef struct choice {
    const mt_processor *p;
    int64_t total;
    double fps; /* of the video */
    uint32_t count;
    int64_t *index;
} choice;

static double within(double n, double least, double most)
{
    n = n > least ? n : least;
    return n < most ? n : most;
}

/* Qwen3: evenly from the first to the last. A number that is asked for may be smaller than the least that a pace
   gives, and larger than the video: then frames are seen more than once. */
static void choose_even(choice *c, double wanted, bool fixed)
{
    const double least = fixed ? 1 : within(c->p->min_frames, 1, (double)c->total);
    const double most = fixed ? c->p->max_frames : within(c->p->max_frames, 1, (double)c->total);
    c->count = (uint32_t)within(wanted, least, most);
    const double step = c->count > 1 ? (double)(c->total - 1) / (c->count - 1) : 0;
    for (uint32_t i = 0; i < c->count; i++)
        c->index[i] = i + 1 == c->count && i > 0 ? c->total - 1 : (int64_t)rint(i * step);
}

/* Qwen2: the first of each stretch of equal length; as many as fill whole patches. */
static void choose_first(choice *c, double wanted, bool fixed)
{
    const double frames = c->p->frames, total = (double)c->total;
    const double most = floor(within(c->p->max_frames, 0, total) / frames) * frames;
    double n = floor(within(wanted, fixed ? 0 : c->p->min_frames, most) / frames) * frames;
    n = n < 1 ? 1 : n;
    const double step = total / n;
    c->count = (uint32_t)within(ceil(total / step), 1, c->p->max_frames + 1);
    for (uint32_t i = 0; i < c->count; i++)
        c->index[i] = (int64_t)within((double)(float)(i * step), 0, total - 1);
}

static void choose_all(choice *c)
{
    c->count = (uint32_t)c->total;
    for (uint32_t i = 0; i < c->count; i++)
        c->index[i] = i;
}

static bool choose(choice *c, const mt_picture_wish *wish, mt_arena *arena, mt_error *err)
{
    const mt_processor *p = c->p;
    const bool third = p->names == MT_VISION_QWEN3;
    const uint32_t fixed = wish->frames ? wish->frames : wish->fps > 0 ? 0 : p->video_frames;
    const double seconds = (double)c->total / c->fps, fps = wish->fps > 0 ? wish->fps : p->fps;
    const bool all = !p->sample && wish->frames == 0 && !(wish->fps > 0) && c->total <= p->max_frames;
    double wanted = fixed ? fixed : third ? floor(seconds * fps) : seconds * fps;
    c->index = mt_arena_alloc(arena, (p->max_frames + 2) * sizeof *c->index);
    if (!c->index)
        return mt_fail(err, MT_E_TOO_LARGE, "the pictures of the request take more memory than a request may");
    if (all)
        choose_all(c);
    else if (third)
        choose_even(c, wanted, fixed > 0);
    else
        choose_first(c, fixed ? rint(wanted / p->frames) * p->frames : wanted, fixed > 0);
    return true;
}

/* Seconds from the first frame, in the middle of what a view shows. */
static bool tell_times(const choice *c, mt_arena *arena, mt_picture *out, mt_error *err)
{
    const uint32_t frames = c->p->frames;
    double *times = mt_arena_alloc(arena, out->views * sizeof *times);
    if (!times)
        return mt_fail(err, MT_E_TOO_LARGE, "the pictures of the request take more memory than a request may");
    for (uint32_t v = 0; v < out->views; v++) {
        const uint32_t first = v * frames, last = first + frames - 1 < c->count ? first + frames - 1 : c->count - 1;
        times[v] = ((double)c->index[first] / c->fps + (double)c->index[last] / c->fps) / 2;
    }
    out->times = times;
    return true;
}

/* Qwen2.5 has time pass at its own pace between views; what is less than a second of a view does not count. */
static uint32_t time_step(const choice *c)
{
    const double rate = (double)c->count / (double)c->total * c->fps, seconds = c->p->frames / rate;
    return c->p->names == MT_VISION_QWEN2_5 ? c->p->tokens_per_second * (uint32_t)within(seconds, 0, 1e6) : 1;
}

/* Where frames come from: a video, or a list. The first of a list tells the size, and waits here until it is taken. */
typedef struct frames {
    mt_video *video;
    const mt_frame_list *list;
    mt_image first;
    size_t taken; /* memory for resizing that was asked for */
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

static bool fill_frame(const choice *c, frames *from, const mt_image *image, uint32_t i, const mt_picture_order *order,
                       mt_picture *out, mt_error *err)
{
    const size_t needed = mt_picture_fill_memory(c->p, &c->p->video, image->height, image->width, out);
    if ((from->list || from->taken == 0) && !mt_media_take(order->watch, needed, err)) /* all of a video are alike */
        return false;
    from->taken = needed;
    mt_picture_fill(c->p, &c->p->video, image, i / out->frames, i % out->frames, out);
    return true;
}

static bool fill(const choice *c, frames *from, const mt_picture_order *order, mt_picture *out, mt_error *err)
{
    mt_image image = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < out->views * out->frames; i++) {
        if (i < c->count) { /* the last one fills what is left of its view */
            mt_image_free(&image);
            ok = next_frame(from, c->index[i], &image, err);
        }
        ok = ok && fill_frame(c, from, &image, i, order, out, err);
    }
    mt_image_free(&image);
    return ok;
}

static bool make(const choice *c, frames *from, uint32_t height, uint32_t width, const mt_picture_order *order,
                 mt_picture *out, mt_error *err)
{
    const mt_processor *p = c->p;
    mt_pixel_size size;
    if (!mt_pixel_size_fit(p, &p->video, &order->wish, height, width, p->names == MT_VISION_QWEN3 ? c->count : 0, &size,
                           err))
        return false;
    const uint32_t views = (c->count + p->frames - 1) / p->frames;
    if (!mt_picture_new(p, &p->video, views, size, p->frames, order, out, err))
        return false;
    out->video = true;
    out->step = time_step(c);
    if (!tell_times(c, order->arena, out, err) || !fill(c, from, order, out, err))
        return false;
    mt_picture_sign(p, out);
    return true;
}

static bool takes_video(const mt_processor *p, mt_error *err)
{
    return mt_processor_takes_video(p) ||
           mt_fail(err, MT_E_INVALID, "this model takes no videos; send single frames as images");
}

bool mt_processor_video(const mt_processor *p, mt_video *video, const mt_picture_order *order, mt_picture *out,
                        mt_error *err)
{
    const mt_video_info about = mt_video_about(video);
    choice c = {.p = p, .total = about.frames, .fps = about.fps};
    return takes_video(p, err) && choose(&c, &order->wish, order->arena, err) &&
           make(&c, &(frames){.video = video}, about.height, about.width, order, out, err);
}

bool mt_processor_frames(const mt_processor *p, const mt_frame_list *list, const mt_picture_order *order,
                         mt_picture *out, mt_error *err)
{
    const double fps = order->wish.fps;
    choice c = {.p = p, .total = (int64_t)list->count, .fps = fps > 0 ? fps : p->fps > 0 ? p->fps : 1};
    frames from = {.list = list};
    if (!takes_video(p, err))
        return false;
    if (list->count == 0)
        return mt_fail(err, MT_E_INVALID, "a list of no frames; send at least one");
    c.index = mt_arena_alloc(order->arena, list->count * sizeof *c.index);
    if (!c.index)
        return mt_fail(err, MT_E_TOO_LARGE, "the pictures of the request take more memory than a request may");
    choose_all(&c);
    const bool ok = list->next(list->ctx, 0, &from.first, err) &&
                    make(&c, &from, from.first.height, from.first.width, order, out, err);
    mt_image_free(&from.first);
    return ok;
}
