/* The eyes of SmolVLM: SigLIP over squares. A picture is made so long that its tiles are as large as it is wanted to be
   seen, cut into them, and seen whole besides. */
#include <math.h>

#include "models/family.h"
#include "models/vision_family.h"

#define MOST_PIXELS 4096 /* of a side, whatever files say */

static bool read_tower(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                       mt_error *err)
{
    static const mt_siglip_sizes usual = {
        .hidden = 1152, .ffn = 3072, .layers = 12, .heads = 16, .image = 224, .patch = 32};
    const mt_config *c = mt_config_object(config, "vision_config");
    (void)arena;
    *v = (mt_vision_spec){
        .frames = 1, .out = s->hidden, .bias = true, .patch_bias = true, .spread = MT_SPREAD_STEPS, .middle = 1};
    return mt_siglip_read(v, c, &usual, err) && mt_size_read(config, "scale_factor", 2, 8, &v->merge, err) &&
           mt_tower_activation_read(c, "hidden_act", "gelu_pytorch_tanh", &v->activation, err);
}

static void bind(mt_tower_binder *t, mt_vision_weights *w)
{
    const mt_vision_spec *s = t->spec;
    w->merger.norm = mt_tower_norm(t, "vision.post_layernorm", s->hidden, &w->merger.norm_bias);
    mt_bind_matrix(t->b, "projector.modality_projection.proj", s->out, (size_t)s->merge * s->merge * s->hidden,
                   &w->merger.down);
}

static bool read_edge(const mt_settings *s, const char *key, int64_t fallback, uint32_t *out)
{
    const mt_config *size = s->image ? mt_config_object(s->image, key) : NULL;
    *out = (uint32_t)fallback;
    return !size || mt_size_read(size, "longest_edge", fallback, 1 << 14, out, s->err);
}

static bool read_processor(const mt_settings *s)
{
    static const double half[3] = {0.5, 0.5, 0.5};
    mt_processor *p = s->p;
    if (!read_edge(s, "size", INT64_C(4) * 364, &p->image.width) ||
        !read_edge(s, "max_image_size", 364, &p->tiles.side) ||
        !mt_settings_levels(s, s->image, half, half, MT_RESAMPLE_LANCZOS, &p->image))
        return false;
    if (p->tiles.side % (p->patch * p->merge))
        return mt_fail(s->err, MT_E_INVALID, "\"max_image_size\" is %u, no multiple of a token's %u pixels",
                       p->tiles.side, p->patch * p->merge);
    const size_t along = p->tiles.side / p->patch, most = (p->image.width - 1) / p->tiles.side + 2;
    p->tiles.thumbnail = true;
    p->tiles.most = !s->image || mt_config_bool(s->image, "do_image_splitting", true) ? (uint32_t)(most * most) : 1;
    p->patches = p->tiles.most * along * along;
    p->image_marker = p->image_pad = mt_settings_token(s, "image_token", "<image>");
    p->opening = p->closing = mt_settings_token(s, "fake_image_token", "<fake_token_around_image>");
    p->row_end = mt_settings_token(s, "global_image_token", "<global-img>");
    return true;
}

/* The longer side as long as it is wanted, the other of an even number of pixels. */
static mt_pixel_size lengthen(double height, double width, double longest)
{
    const double ratio = width / height;
    double h = longest, w = longest;
    if (width >= height)
        h = floor(w / ratio);
    else
        w = floor(h * ratio);
    h = fmax(width >= height && fmod(h, 2) != 0 ? h + 1 : h, 1);
    w = fmax(width < height && fmod(w, 2) != 0 ? w + 1 : w, 1);
    const double now = w / h;
    if (w >= h && w > MOST_PIXELS) {
        w = MOST_PIXELS;
        h = fmax(floor(w / now), 1);
    } else if (h > w && h > MOST_PIXELS) {
        h = MOST_PIXELS;
        w = fmax(floor(h * now), 1);
    }
    return (mt_pixel_size){.height = (uint32_t)h, .width = (uint32_t)w};
}

/* Whole tiles: the longer side is filled up, and the other one with what its shape makes of it. */
static void choose_grid(mt_pixel_size size, double side, uint32_t *across, uint32_t *down)
{
    const double ratio = (double)size.width / size.height;
    if (size.width >= size.height) {
        *across = (uint32_t)ceil(size.width / side);
        *down = (uint32_t)fmax(ceil(floor(*across * side / ratio) / side), 1);
    } else {
        *down = (uint32_t)ceil(size.height / side);
        *across = (uint32_t)fmax(ceil(floor(*down * side * ratio) / side), 1);
    }
}

static bool resize(const mt_processor *p, const mt_image *in, uint32_t width, uint32_t height,
                   const mt_picture_order *order, mt_image *out, mt_error *err)
{
    const mt_resample resample = p->image.resample;
    const mt_resize_like like = mt_pixel_like(&p->image);
    if (!mt_media_take(order->watch, mt_image_resize_memory(in->width, in->height, width, height, resample, like), err))
        return false;
    mt_image_resize(out, in, width, height, resample, like);
    return true;
}

static bool cut(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                mt_error *err)
{
    const mt_pixel_size tile = {p->tiles.side, p->tiles.side};
    uint32_t across, down;
    choose_grid((mt_pixel_size){image->height, image->width}, tile.width, &across, &down);
    if (across * down == 1)
        return mt_picture_tiles(p, &p->image, image, tile, 1, 1, order, out, err);
    mt_image whole;
    if (!resize(p, image, across * tile.width, down * tile.height, order, &whole, err))
        return false;
    const bool ok = mt_picture_tiles(p, &p->image, &whole, tile, across, down, order, out, err) &&
                    mt_picture_tiles(p, &p->image, &whole, tile, 1, 1, order, out + 1, err);
    out->more = 1;
    mt_image_free(&whole);
    return ok;
}

/* A request that wishes for few pixels sees the whole alone. */
static bool show(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                 mt_error *err)
{
    const mt_picture_wish *wish = &order->wish;
    const mt_pixel_size tile = {p->tiles.side, p->tiles.side};
    const mt_pixel_size size = lengthen(image->height, image->width, p->image.width);
    const bool few = wish->low || (wish->max_pixels && wish->max_pixels < (uint64_t)size.width * size.height);
    mt_image longer;
    if (!resize(p, image, size.width, size.height, order, &longer, err))
        return false;
    const bool ok = p->tiles.most > 1 && !few ? cut(p, &longer, order, out, err)
                                              : mt_picture_tiles(p, &p->image, &longer, tile, 1, 1, order, out, err);
    mt_image_free(&longer);
    return ok;
}

static bool text(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out)
{
    bool ok = true;
    (void)number;
    for (uint32_t i = 0; ok && picture->more && i < picture->views; i++)
        ok = mt_buf_printf(out, "%s<row_%u_col_%u>%s%s", p->opening, i / picture->across + 1, i % picture->across + 1,
                           p->image_pad, (i + 1) % picture->across ? "" : "\n");
    return ok && mt_buf_printf(out, "%s%s%s%s%s", picture->more ? "\n" : "", p->opening, p->row_end, p->image_pad,
                               p->closing);
}

const mt_vision_family mt_vision_smolvlm = {.read_tower = read_tower,
                                            .names = MT_SIGLIP_NAMES,
                                            .bind = bind,
                                            .read_processor = read_processor,
                                            .image_id = 128257,
                                            .image = show,
                                            .text = text,
                                            .run = mt_picture_view_tokens};
