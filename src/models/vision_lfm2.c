/* LFM2-VL's vision: SigLIP 2 over pictures in their own shape. A large one is cut into square tiles, which stand in the
   prompt row by row, followed by the whole picture at a smaller size. */
#include <math.h>

#include "models/family.h"
#include "models/vision_family.h"
#include "weights/limits.h"

#define MAX_TOKENS (1 << 20) /* most tokens of a picture or a tile */

static bool read_sizes(mt_vision_spec *v, const mt_config *c, mt_error *err)
{
    uint32_t places;
    double eps;
    if (!mt_size_read(c, "hidden_size", 768, MT_LIMIT_WIDTH, &v->hidden, err) ||
        !mt_size_read(c, "intermediate_size", 3072, MT_LIMIT_WIDTH, &v->ffn, err) ||
        !mt_size_read(c, "num_hidden_layers", 12, MT_LIMIT_LAYERS, &v->layers, err) ||
        !mt_size_read(c, "num_attention_heads", 12, MT_LIMIT_WIDTH, &v->heads, err) ||
        !mt_size_read(c, "patch_size", 16, 256, &v->patch, err) ||
        !mt_size_read(c, "num_patches", 256, MT_TABLE_PLACES, &places, err) ||
        !mt_config_float(c, "layer_norm_eps", 1e-6, 0, 1, &eps, err))
        return false;
    v->eps = (float)eps;
    v->table = (uint32_t)sqrt(places);
    if (v->table * v->table != places)
        return mt_fail(err, MT_E_INVALID, "\"vision_config.num_patches\" is %u, which is no square", places);
    if (v->hidden % v->heads)
        return mt_fail(err, MT_E_INVALID, "\"vision_config.hidden_size\" is %u, which %u heads do not divide",
                       v->hidden, v->heads);
    v->head_dim = v->hidden / v->heads;
    return true;
}

static bool read_tower(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                       mt_error *err)
{
    const mt_config *c = mt_config_object(config, "vision_config");
    (void)arena;
    *v = (mt_vision_spec){.frames = 1,
                          .out = s->hidden,
                          .bias = true,
                          .patch_bias = true,
                          .spread = MT_SPREAD_SMOOTH,
                          .merge_eps = 1e-5f,
                          .merge_norm = mt_config_bool(config, "projector_use_layernorm", true),
                          .merge_bias = mt_config_bool(config, "projector_bias", true)};
    return read_sizes(v, c, err) && mt_size_read(config, "downsample_factor", 2, 8, &v->merge, err) &&
           mt_size_read(config, "projector_hidden_size", 2560, MT_LIMIT_WIDTH, &v->middle, err) &&
           mt_tower_activation_read(c, "hidden_act", "gelu_pytorch_tanh", &v->activation, err) &&
           mt_tower_activation_read(config, "projector_hidden_act", "gelu", &v->merge_activation, err);
}

static void bind(mt_tower_binder *t, mt_vision_weights *w)
{
    const mt_vision_spec *s = t->spec;
    const size_t wide = (size_t)s->merge * s->merge * s->hidden;
    mt_merger_weights *m = &w->merger;
    m->norm = mt_tower_norm(t, "vision.post_layernorm", s->hidden, &m->norm_bias);
    if (s->merge_norm)
        m->joined_norm = mt_tower_norm(t, "projector.layer_norm", wide, &m->joined_norm_bias);
    mt_bind_matrix(t->b, "projector.linear_1", s->middle, wide, &m->up);
    mt_bind_matrix(t->b, "projector.linear_2", s->out, s->middle, &m->down);
    if (s->merge_bias) {
        m->up_bias = mt_bind_vector(t->b, "projector.linear_1.bias", s->middle);
        m->down_bias = mt_bind_vector(t->b, "projector.linear_2.bias", s->out);
    }
}

static bool read_count(const mt_settings *s, const char *key, int64_t fallback, int64_t max, uint32_t *out)
{
    if (s->image)
        return mt_size_read(s->image, key, fallback, max, out, s->err);
    *out = (uint32_t)fallback;
    return true;
}

static bool read_tiles(const mt_settings *s, mt_tile_rules *tiles)
{
    tiles->thumbnail = !s->image || mt_config_bool(s->image, "use_thumbnail", true);
    tiles->tolerance = 2;
    if (!read_count(s, "min_tiles", 2, MT_TILES, &tiles->least) ||
        !read_count(s, "max_tiles", 10, MT_TILES, &tiles->most) ||
        !read_count(s, "tile_size", 512, 1 << 14, &tiles->side) ||
        (s->image && !mt_config_float(s->image, "max_pixels_tolerance", 2, 0, 1e6, &tiles->tolerance, s->err)))
        return false;
    if (s->image && !mt_config_bool(s->image, "do_image_splitting", true))
        tiles->least = tiles->most = 1;
    if (tiles->least > tiles->most)
        return mt_fail(s->err, MT_E_INVALID, "\"min_tiles\" is %u, more than \"max_tiles\" %u", tiles->least,
                       tiles->most);
    if (tiles->most > 1 && tiles->side % (s->p->patch * s->p->merge))
        return mt_fail(s->err, MT_E_INVALID, "\"tile_size\" is %u, no multiple of a token's %u pixels", tiles->side,
                       s->p->patch * s->p->merge);
    return true;
}

static bool read_processor(const mt_settings *s)
{
    static const double half[3] = {0.5, 0.5, 0.5};
    mt_processor *p = s->p;
    uint32_t least, most;
    if (!mt_settings_same(s, s->image, "encoder_patch_size", p->patch) ||
        !mt_settings_same(s, s->image, "downsample_factor", p->merge) ||
        !read_count(s, "min_image_tokens", 64, MAX_TOKENS, &least) ||
        !read_count(s, "max_image_tokens", 256, MAX_TOKENS, &most) || !read_tiles(s, &p->tiles) ||
        !mt_settings_levels(s, s->image, half, half, MT_RESAMPLE_BILINEAR, &p->image))
        return false;
    const uint64_t area = (uint64_t)p->patch * p->patch * p->merge * p->merge;
    p->image.min_pixels = least * area;
    p->image.max_pixels = most * area;
    const size_t whole = (size_t)most * p->merge * p->merge, tile = p->tiles.side / p->patch;
    const size_t cut = p->tiles.most > 1 ? p->tiles.most * tile * tile : 0;
    p->patches = whole > cut ? whole : cut;
    p->image_marker = p->image_pad = mt_settings_token(s, "image_token", "<image>");
    p->opening = mt_settings_token(s, "image_start_token", "<|image_start|>");
    p->closing = mt_settings_token(s, "image_end_token", "<|image_end|>");
    p->row_end = mt_settings_token(s, "image_thumbnail_token", "<|img_thumbnail|>");
    return true;
}

/* Multiples of a token's side within the limits, of nearly the same shape. */
static mt_pixel_size fit(const mt_processor *p, const mt_picture_wish *wish, double h, double w)
{
    const double side = (double)p->patch * p->merge;
    double least, most, height = fmax(rint(h / side), 1), width = fmax(rint(w / side), 1);
    mt_pixel_limits(p, &p->image, wish, false, &least, &most);
    if (height * width * side * side > most) {
        const double shrink = sqrt(h * w / most);
        height = fmax(floor(h / shrink / side), 1);
        width = fmax(floor(w / shrink / side), 1);
    } else if (height * width * side * side < least) {
        const double grow = sqrt(least / (h * w));
        height = ceil(h * grow / side);
        width = ceil(w * grow / side);
    }
    return (mt_pixel_size){.height = (uint32_t)(height * side), .width = (uint32_t)(width * side)};
}

static bool too_large(const mt_processor *p, const mt_picture_wish *wish, double h, double w)
{
    const double side = (double)p->patch * p->merge;
    double least, most;
    mt_pixel_limits(p, &p->image, wish, false, &least, &most);
    const double height = fmax(rint(h / side) * side, p->patch), width = fmax(rint(w / side) * side, p->patch);
    return p->tiles.most > 1 && !wish->low && height * width > most * p->tiles.tolerance;
}

static bool make_views(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                       mt_error *err)
{
    const double h = image->height, w = image->width;
    const mt_pixel_size tile = {p->tiles.side, p->tiles.side};
    uint32_t across, down;
    if (too_large(p, &order->wish, h, w)) {
        mt_tile_grid(&p->tiles, h, w, &across, &down);
        if (!mt_picture_tiles(p, &p->image, image, tile, across, down, order, out, err))
            return false;
        if (!p->tiles.thumbnail || out->views == 1)
            return true;
        out->more = 1;
        out++;
    }
    return mt_picture_tiles(p, &p->image, image, fit(p, &order->wish, h, w), 1, 1, order, out, err);
}

static bool text(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out)
{
    bool ok = mt_buf_printf(out, "%s", p->opening);
    (void)number;
    for (uint32_t i = 0; ok && picture->views > 1 && i < picture->views; i++)
        ok = mt_buf_printf(out, "<|img_row_%u_col_%u|>%s", i / picture->across + 1, i % picture->across + 1,
                           p->image_pad);
    if (ok && picture->more)
        ok = mt_buf_printf(out, "%s", p->row_end);
    if (ok && (picture->views == 1 || picture->more))
        ok = mt_buf_printf(out, "%s", p->image_pad);
    return ok && mt_buf_printf(out, "%s", p->closing);
}

const mt_vision_family mt_vision_lfm2 = {.types = {"siglip2_vision_model"},
                                         .read_tower = read_tower,
                                         .names = MT_SIGLIP_NAMES,
                                         .bind = bind,
                                         .read_processor = read_processor,
                                         .image_id = 396,
                                         .image = make_views,
                                         .text = text,
                                         .run = mt_picture_view_tokens};
