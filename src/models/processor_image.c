/* Resizes pictures and cuts them into patches (processor.h, vision_family.h). */
#include <math.h>
#include <string.h>

#include "models/limits.h"
#include "models/vision_family.h"

#define MAX_RATIO 200          /* most that one side of a picture may be longer than the other */
#define LOW_PIXELS (512 * 512) /* most pixels with detail "low" */

/* Combines the checkpoint's limits, the request's and the tower's room; a patch of a video holds several frames. */
void mt_pixel_limits(const mt_processor *p, const mt_pixel_rules *rules, const mt_picture_wish *wish, bool together,
                     double *least, double *most)
{
    const uint64_t room = (uint64_t)MT_LIMIT_PATCHES * p->patch * p->patch * (together ? p->frames : 1);
    uint64_t max = wish->max_pixels ? wish->max_pixels : rules->max_pixels;
    uint64_t min = wish->min_pixels ? wish->min_pixels : rules->min_pixels;
    if (wish->low && !wish->max_pixels && max > LOW_PIXELS && !together)
        max = LOW_PIXELS;
    max = max < room ? max : room;
    *most = (double)max;
    *least = (double)(min < max ? min : max);
}

/* A side halfway between two multiples is rounded to the even one. */
bool mt_pixel_size_fit(const mt_processor *p, const mt_picture_wish *wish, uint32_t height, uint32_t width,
                       uint32_t frames, mt_pixel_size *out, mt_error *err)
{
    return mt_pixel_size_fit_frames(p, frames ? &p->video : &p->image, wish, height, width, p->together ? frames : 0,
                                    out, err);
}

bool mt_pixel_size_fit_frames(const mt_processor *p, const mt_pixel_rules *rules, const mt_picture_wish *wish,
                              uint32_t height, uint32_t width, uint32_t frames, mt_pixel_size *out, mt_error *err)
{
    const double side = (double)p->patch * p->merge, count = frames ? fmax(frames, p->frames) : 1;
    double h = height, w = width, least, most;
    mt_pixel_limits(p, rules, wish, frames > 0, &least, &most);
    if (frames && (h < side || w < side)) {
        const double scale = fmax(side / h, side / w);
        h = floor(h * scale);
        w = floor(w * scale);
    }
    if (fmax(h, w) / (h < w ? h : w) > MAX_RATIO)
        return mt_fail(err, MT_E_INVALID, "a picture of %u x %u pixels is too long; its sides may differ %d times",
                       width, height, MAX_RATIO);
    double fit_h = rint(h / side) * side, fit_w = rint(w / side) * side;
    const double shown = frames ? rint(count / p->frames) * p->frames : 1;
    if (shown * fit_h * fit_w > most) {
        const double shrink = sqrt(count * h * w / most);
        fit_h = fmax(side, floor(h / shrink / side) * side);
        fit_w = fmax(side, floor(w / shrink / side) * side);
    } else if (shown * fit_h * fit_w < least) {
        const double grow = sqrt(least / (count * h * w));
        fit_h = ceil(h * grow / side) * side;
        fit_w = ceil(w * grow / side) * side;
    }
    *out = (mt_pixel_size){.height = (uint32_t)fmax(fit_h, side), .width = (uint32_t)fmax(fit_w, side)};
    return true;
}

bool mt_picture_new(const mt_processor *p, const mt_pixel_rules *rules, uint32_t views, mt_pixel_size size,
                    uint32_t frames, const mt_picture_order *order, mt_picture *out, mt_error *err)
{
    *out = (mt_picture){.views = views,
                        .height = size.height / p->patch,
                        .width = size.width / p->patch,
                        .frames = frames,
                        .step = 1,
                        .patch_bytes = (size_t)3 * frames * p->patch * p->patch,
                        .levels = rules->levels};
    const size_t patches = mt_picture_patches(out);
    if (patches > MT_LIMIT_PATCHES)
        return mt_fail(err, MT_E_INVALID,
                       "%u x %u pixels, %u times, are %zu patches; at most %d fit: lower \"max_pixels\" or \"fps\"",
                       size.width, size.height, views, patches, MT_LIMIT_PATCHES);
    out->tokens = (uint32_t)(patches / (p->merge * p->merge));
    if (!mt_media_take(order->watch, patches * out->patch_bytes, err))
        return false;
    out->patches = mt_arena_alloc(order->arena, patches * out->patch_bytes);
    if (!out->patches)
        return mt_fail(err, MT_E_TOO_LARGE, "the pictures of the request take more memory than a request may");
    return true;
}

/* Copies one frame of a patch: pixels ordered [y][x][channel] become [channel][frame][y][x]. */
static void fill_patch(uint8_t *to, size_t frame_apart, const uint8_t *from, size_t row_bytes, size_t side)
{
    for (size_t y = 0; y < side; y++, from += row_bytes)
        for (size_t x = 0; x < side; x++)
            for (size_t c = 0; c < 3; c++)
                to[c * frame_apart + y * side + x] = from[3 * x + c];
}

/* Copies a patch that keeps the order [y][x][channel]; it holds one frame. */
static void fill_pixels(uint8_t *to, const uint8_t *from, size_t row_bytes, size_t side)
{
    for (size_t y = 0; y < side; y++)
        memcpy(to + 3 * y * side, from + y * row_bytes, 3 * side);
}

size_t mt_picture_fill_memory(const mt_processor *p, const mt_pixel_rules *rules, uint32_t height, uint32_t width,
                              const mt_picture *out)
{
    return mt_image_resize_memory(width, height, out->width * p->patch, out->height * p->patch, rules->resample);
}

void mt_picture_fill(const mt_processor *p, const mt_pixel_rules *rules, const mt_image *image, uint32_t view,
                     uint32_t frame, mt_picture *out)
{
    const size_t side = p->patch, merge = p->merge, area = side * side;
    mt_image resized;
    mt_image_resize(&resized, image, out->width * p->patch, out->height * p->patch, rules->resample);
    const size_t row_bytes = (size_t)3 * resized.width;
    uint8_t *to = (uint8_t *)out->patches + (size_t)view * out->height * out->width * out->patch_bytes + frame * area;
    for (size_t top = 0; top < out->height; top += merge)
        for (size_t left = 0; left < out->width; left += merge)
            for (size_t i = 0; i < merge * merge; i++, to += out->patch_bytes) {
                uint32_t y, x;
                mt_picture_inner(p->merge, p->nested, (uint32_t)i, &y, &x);
                const uint8_t *from = resized.pixels + (top + y) * side * row_bytes + 3 * (left + x) * side;
                if (p->pixels_last)
                    fill_pixels(to, from, row_bytes, side);
                else
                    fill_patch(to, out->frames * area, from, row_bytes, side);
            }
    mt_image_free(&resized);
}

void mt_picture_sign(const mt_processor *p, mt_picture *out)
{
    const uint32_t numbers[] = {out->video, out->views, out->height, out->width, out->frames,
                                out->step,  p->patch,   p->merge,    p->frames};
    const mt_digest_part parts[] = {{numbers, sizeof(numbers)},
                                    {out->levels, sizeof(p->image.levels)},
                                    {out->patches, mt_picture_patches(out) * out->patch_bytes}};
    mt_digest(out->digest, parts, MT_COUNT(parts));
}

bool mt_picture_tiles(const mt_processor *p, const mt_pixel_rules *rules, const mt_image *image, mt_pixel_size tile,
                      uint32_t across, uint32_t down, const mt_picture_order *order, mt_picture *out, mt_error *err)
{
    const mt_resample resample = rules->resample;
    const uint32_t width = across * tile.width, height = down * tile.height;
    mt_image whole, piece;
    if (!mt_picture_new(p, rules, across * down, tile, 1, order, out, err) ||
        !mt_media_take(order->watch,
                       mt_image_resize_memory(image->width, image->height, width, height, resample) +
                           (size_t)6 * tile.width * tile.height,
                       err))
        return false;
    out->across = across;
    mt_image_resize(&whole, image, width, height, resample);
    for (uint32_t i = 0; i < out->views; i++) {
        mt_image_crop(&piece, &whole, i % across * tile.width, i / across * tile.height, tile.width, tile.height);
        mt_picture_fill(p, rules, &piece, i, 0, out);
        mt_image_free(&piece);
    }
    mt_image_free(&whole);
    return true;
}

void mt_tile_grid(const mt_tile_rules *t, double h, double w, uint32_t *across, uint32_t *down)
{
    double nearest = INFINITY;
    *across = *down = 1;
    for (uint32_t count = t->least; count <= t->most; count++)
        for (uint32_t columns = 1; columns <= count; columns++) {
            const uint32_t rows = count / columns;
            const double apart = fabs(w / h - (double)columns / rows), area = (double)t->side * t->side * count;
            if (count % columns || apart > nearest || (apart == nearest && w * h <= 0.5 * area))
                continue;
            nearest = apart;
            *across = columns;
            *down = rows;
        }
}

static bool one_view(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                     mt_error *err)
{
    mt_pixel_size size;
    if (!p->family->size(p, &order->wish, image->height, image->width, 0, &size, err) ||
        !mt_picture_new(p, &p->image, 1, size, 1, order, out, err) ||
        !mt_media_take(order->watch, mt_picture_fill_memory(p, &p->image, image->height, image->width, out), err))
        return false;
    mt_picture_fill(p, &p->image, image, 0, 0, out);
    return true;
}

bool mt_processor_image(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                        mt_error *err)
{
    if (image->width == 0 || image->height == 0)
        return mt_fail(err, MT_E_INVALID, "a picture has no pixels");
    if (!(p->family->image ? p->family->image : one_view)(p, image, order, out, err))
        return false;
    for (uint32_t i = 0; i <= out->more; i++)
        mt_picture_sign(p, &out[i]);
    return true;
}
