/* InternVL's vision: InternViT over squares. Each square has a summary row besides its patches, of which no token is
   made. A picture is cut into the grid of tiles nearest to its shape, and shown whole, too; of videos each frame is one
   square. */
#include <math.h>
#include <string.h>

#include "media/limits.h"
#include "models/family.h"
#include "models/limits.h"
#include "models/vision_family.h"

#define ROW_EPS 1e-6f         /* of the norms of queries and keys, whatever the config's eps is */
#define MERGE_EPS 1e-5f       /* of the norm of joined patches */
#define MOST_SIDE (1 << 14)   /* pixels */
#define MOST_PIXELS (1 << 28) /* a request's max_pixels above this is no number of tiles */

static bool read_norms(mt_vision_spec *v, const mt_config *c, mt_error *err)
{
    const char *kind = mt_config_string(c, "norm_type", "layer_norm");
    v->rms = strcmp(kind, "rms_norm") == 0;
    if (!v->rms && strcmp(kind, "layer_norm") != 0)
        return mt_fail(err, MT_E_UNSUPPORTED, "\"norm_type\" is \"%.64s\"; known are layer_norm and rms_norm", kind);
    v->row_eps = mt_config_bool(c, "use_qk_norm", false) ? ROW_EPS : 0;
    v->merge_bare = mt_config_bool(c, "use_mean_pooling", true);
    if (!mt_config_bool(c, "use_absolute_position_embeddings", true))
        v->table = 0;
    return true;
}

/* Reads how many patches along a side become a token. */
static bool read_merge(mt_vision_spec *v, const mt_config *config, mt_error *err)
{
    double ratio;
    if (!mt_config_float(config, "downsample_ratio", 0.5, 0.125, 1, &ratio, err))
        return false;
    v->merge = (uint32_t)(1 / ratio);
    return v->merge * ratio == 1 ||
           mt_fail(err, MT_E_UNSUPPORTED, "\"downsample_ratio\" is %g; it must be 1 divided by a whole number", ratio);
}

static bool read_choice(const mt_config *config, mt_error *err)
{
    int64_t layer;
    const char *rows = mt_config_string(config, "vision_feature_select_strategy", "default");
    if (!mt_config_int(config, "vision_feature_layer", -1, -1000, 1000, &layer, err))
        return false;
    if (layer != -1 || mt_config_array(config, "vision_feature_layer"))
        return mt_fail(err, MT_E_UNSUPPORTED, "\"vision_feature_layer\" is %d; only -1, the last one, is supported",
                       (int)layer);
    return strcmp(rows, "default") == 0 ||
           mt_fail(err, MT_E_UNSUPPORTED,
                   "\"vision_feature_select_strategy\" is \"%.64s\"; only default, patches alone, is supported", rows);
}

static bool read_tower(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                       mt_error *err)
{
    static const mt_siglip_sizes usual = {
        .hidden = 1024, .ffn = 4096, .layers = 24, .heads = 16, .image = 448, .patch = 14};
    const mt_config *c = mt_config_object(config, "vision_config");
    (void)arena;
    *v = (mt_vision_spec){.frames = 1,
                          .out = s->hidden,
                          .middle = s->hidden,
                          .bias = true,
                          .qkv_plain = !mt_config_bool(c, "attention_bias", false),
                          .patch_bias = true,
                          .scaled = true,
                          .summary = true,
                          .spread = MT_SPREAD_CUBIC,
                          .merge_eps = MERGE_EPS,
                          .merge_norm = true,
                          .merge_bias = true};
    return read_choice(config, err) && mt_siglip_read(v, c, &usual, err) && read_norms(v, c, err) &&
           read_merge(v, config, err) && mt_tower_activation_read(c, "hidden_act", "gelu", &v->activation, err) &&
           mt_tower_activation_read(config, "projector_hidden_act", "gelu", &v->merge_activation, err);
}

static void bind(mt_tower_binder *t, mt_vision_weights *w)
{
    const mt_vision_spec *s = t->spec;
    const size_t wide = (size_t)s->merge * s->merge * s->hidden, places = (size_t)s->table * s->table;
    mt_merger_weights *m = &w->merger;
    mt_mat first = {0}, table = {0};
    const bool found =
        !places || mt_bind_planes(t->b, "vision.embeddings.position_embeddings", 1, 1 + places, s->hidden, &table);
    if (mt_bind_planes(t->b, "vision.embeddings.cls_token", 1, 1, s->hidden, &first) && found)
        w->summary = mt_bind_first_rows(t->b, &first, &table);
    if (places && found)
        w->table = mt_mat_rows(&table, 1, places);
    if (!s->merge_bare) {
        m->norm = mt_bind_vector(t->b, "vision.layernorm", s->hidden);
        m->norm_bias = mt_bind_vector(t->b, "vision.layernorm.bias", s->hidden);
    }
    m->joined_norm = mt_bind_vector(t->b, "projector.layer_norm", wide);
    m->joined_norm_bias = mt_bind_vector(t->b, "projector.layer_norm.bias", wide);
    mt_bind_matrix(t->b, "projector.linear_1", s->out, wide, &m->up);
    mt_bind_matrix(t->b, "projector.linear_2", s->out, s->out, &m->down);
    m->up_bias = mt_bind_vector(t->b, "projector.linear_1.bias", s->out);
    m->down_bias = mt_bind_vector(t->b, "projector.linear_2.bias", s->out);
}

/* Reads the side of a tile or frame in pixels, and checks that it makes `tokens` tokens; 0: not checked. */
static bool read_square(const mt_settings *s, const mt_config *c, uint32_t tokens, mt_pixel_rules *rules)
{
    static const double mean[3] = {0.48145466, 0.4578275, 0.40821073}, std[3] = {0.26862954, 0.26130258, 0.27577711};
    const mt_config *size = c ? mt_config_object(c, "size") : NULL;
    const uint32_t token = s->p->patch * s->p->merge;
    rules->height = rules->width = 384;
    if ((size && (!mt_size_read(size, "height", 384, MOST_SIDE, &rules->height, s->err) ||
                  !mt_size_read(size, "width", 384, MOST_SIDE, &rules->width, s->err))) ||
        !mt_settings_levels(s, c, mean, std, MT_RESAMPLE_BICUBIC, rules))
        return false;
    if (rules->height != rules->width || rules->width % token)
        return mt_fail(s->err, MT_E_INVALID, "\"size\" is %u x %u, no square of tokens of %u pixels", rules->width,
                       rules->height, token);
    const uint32_t along = rules->width / token;
    return tokens == 0 || along * along == tokens ||
           mt_fail(s->err, MT_E_INVALID, "\"image_seq_length\" is %u, but %u x %u pixels make %u tokens", tokens,
                   rules->width, rules->height, along * along);
}

static bool read_tiles(const mt_settings *s, mt_tile_rules *tiles)
{
    tiles->thumbnail = true;
    tiles->side = s->p->image.width;
    tiles->least = 1;
    tiles->most = 12;
    if (s->image && (!mt_size_read(s->image, "min_patches", 1, MT_TILES, &tiles->least, s->err) ||
                     !mt_size_read(s->image, "max_patches", 12, MT_TILES, &tiles->most, s->err)))
        return false;
    return tiles->least <= tiles->most ||
           mt_fail(s->err, MT_E_INVALID, "\"min_patches\" is %u, more than \"max_patches\" %u", tiles->least,
                   tiles->most);
}

/* Reads how frames are chosen: all, a number, or a rate; and which frame is the first: the middle one of its share, or
   a given one. */
static bool read_video(const mt_settings *s, const mt_config *c)
{
    mt_processor *p = s->p;
    mt_error no_number;
    int64_t frames = 0;
    const uint32_t along = p->video.width / p->patch;
    const uint64_t room = MT_LIMIT_PATCHES / ((uint64_t)along * along);
    p->max_frames = room < 1 ? 1 : (uint32_t)room;
    p->shift = -1;
    p->sample = c && mt_config_bool(c, "do_sample_frames", false);
    if (c && (!mt_config_int(c, "num_frames", 0, 0, MT_LIMIT_MEDIA_FRAMES, &frames, s->err) ||
              !mt_config_float(c, "fps", 0, 0, 1000, &p->fps, s->err)))
        return false;
    p->video_frames = p->sample && frames ? (uint32_t)frames : 0;
    if (c && !mt_config_float(c, "initial_shift", -1, 0, 1e6, &p->shift, &no_number))
        p->shift = mt_config_bool(c, "initial_shift", true) ? -1 : 0;
    return true;
}

static bool read_processor(const mt_settings *s)
{
    mt_processor *p = s->p;
    const mt_config *whole, *video = s->video;
    uint32_t tokens = 0;
    if (!mt_settings_file(s, "processor_config.json", &whole) ||
        /* older folders have one file for both */
        (!video && !mt_settings_file(s, "preprocessor_config.json", &video)) ||
        (whole && mt_config_has(whole, "image_seq_length") &&
         !mt_size_read(whole, "image_seq_length", 256, 1 << 16, &tokens, s->err)) ||
        !read_square(s, s->image, tokens, &p->image) || !read_square(s, video, tokens, &p->video) ||
        !read_tiles(s, &p->tiles) || !read_video(s, video))
        return false;
    const size_t along = p->image.width / p->patch, cell = (size_t)p->merge * p->merge;
    p->patches = p->tiles.most * (along * along + cell);
    p->image_marker = p->image_pad = p->video_pad = mt_settings_token(s, "context_image_token", "<IMG_CONTEXT>");
    p->video_marker = mt_settings_token(s, "video_token", "<video>");
    p->opening = mt_settings_token(s, "start_image_token", "<img>");
    p->closing = mt_settings_token(s, "end_image_token", "</img>");
    return true;
}

static bool fit(const mt_processor *p, const mt_picture_wish *wish, uint32_t height, uint32_t width, uint32_t frames,
                mt_pixel_size *out, mt_error *err)
{
    const mt_pixel_rules *rules = frames ? &p->video : &p->image;
    (void)wish, (void)height, (void)width, (void)err;
    *out = (mt_pixel_size){rules->height, rules->width};
    return true;
}

/* A request with a small max_pixels gets as many tiles as fit, or only the whole picture. */
static bool make_views(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                       mt_error *err)
{
    const mt_pixel_size tile = {p->tiles.side, p->tiles.side};
    mt_tile_rules tiles = p->tiles;
    uint32_t across, down;
    if (order->wish.max_pixels && order->wish.max_pixels < MOST_PIXELS) {
        const uint64_t room = order->wish.max_pixels / ((uint64_t)tile.width * tile.height);
        tiles.most = room < 1 ? 1 : room < tiles.most ? (uint32_t)room : tiles.most;
    }
    if (order->wish.low)
        tiles.most = 1;
    tiles.least = tiles.least < tiles.most ? tiles.least : tiles.most;
    mt_tile_grid(&tiles, image->height, image->width, &across, &down);
    if (!mt_picture_tiles(p, &p->image, image, tile, across, down, order, out, err))
        return false;
    out->more = out->views > 1;
    return !out->more || mt_picture_tiles(p, &p->image, image, tile, 1, 1, order, out + 1, err);
}

/* Evenly spaced frames; indices are computed in float, as in torch. */
static void choose(mt_frame_choice *c, double wanted, bool fixed)
{
    (void)fixed;
    const double most = (double)c->total < c->p->max_frames ? (double)c->total : c->p->max_frames;
    const double count = wanted >= 1 ? fmin(floor(wanted), most) : wanted > 0 ? 1 : most;
    const double step = (double)c->total / count, first = c->p->shift < 0 ? step / 2 : c->p->shift;
    c->count = 0;
    for (double i = 0; first + i * step < (double)c->total && c->count < c->p->max_frames; i++)
        c->index[c->count++] = (int64_t)fminf((float)(first + i * step), (float)(c->total - 1));
    if (c->count == 0)
        c->index[c->count++] = c->total - 1;
}

static bool text(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out)
{
    bool ok = true;
    (void)number;
    for (uint32_t i = 0; ok && picture->video && i < picture->views; i++)
        ok = mt_buf_printf(out, "%sFrame%u: %s%s%s", i ? "\n" : "", i + 1, p->opening, p->image_pad, p->closing);
    return ok && (picture->video || mt_buf_printf(out, "%s%s%s%s", p->opening, p->image_pad,
                                                  picture->more ? p->image_pad : "", p->closing));
}

static uint32_t run(const mt_processor *p, const mt_picture *picture)
{
    return picture->video ? mt_picture_view_tokens(p, picture) : picture->tokens;
}

const mt_vision_family mt_vision_internvl = {.types = {"internvl_vision"},
                                             .read_tower = read_tower,
                                             .names = {.patch = "vision.embeddings.patch_embeddings.projection",
                                                       .layer = "vision.encoder.layer.",
                                                       .norm1 = "layernorm_before",
                                                       .norm2 = "layernorm_after",
                                                       .q = "attention.q_proj",
                                                       .k = "attention.k_proj",
                                                       .v = "attention.v_proj",
                                                       .o = "attention.projection_layer",
                                                       .q_norm = "attention.q_norm",
                                                       .k_norm = "attention.k_norm",
                                                       .scale1 = "lambda_1",
                                                       .scale2 = "lambda_2",
                                                       .up = "mlp.fc1",
                                                       .down = "mlp.fc2"},
                                             .bind = bind,
                                             .read_processor = read_processor,
                                             .image_id = 151667,
                                             .size = fit,
                                             .image = make_views,
                                             .choose = choose,
                                             .text = text,
                                             .run = run,
                                             .one_pad = true,
                                             .early = true};
