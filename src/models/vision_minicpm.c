/* MiniCPM-V 4.6's vision: SigLIP, in the middle of which squares of patches see themselves once more and become one
   row. A picture is shown whole; a large one is followed by slices of its own shape, row by row. Frames of videos are
   treated like pictures. */
#include <math.h>
#include <string.h>

#include "media/limits.h"
#include "models/family.h"
#include "models/vision_family.h"

#define SIDES 4 /* sides of pictures are multiples of so many patches */

/* Reads whether squares are not merged ("fine"), so that a picture has four times as many tokens. */
static bool read_mode(const mt_config *c, const char *usual, bool *fine, mt_error *err)
{
    const char *mode = c ? mt_config_string(c, "downsample_mode", usual) : usual;
    *fine = strcmp(mode, "4x") == 0;
    return *fine || strcmp(mode, "16x") == 0 ||
           mt_fail(err, MT_E_UNSUPPORTED, "\"downsample_mode\" is \"%.64s\"; known are 4x and 16x", mode);
}

static bool is_two(const mt_config *c, const char *key, mt_error *err)
{
    const size_t count = mt_config_array(c, key);
    for (size_t i = 0; i < count; i++)
        if (count != 2 || mt_config_array_int(c, key, i, 0) != 2)
            return mt_fail(err, MT_E_UNSUPPORTED, "\"%s\" is not 2 x 2, and nothing else is supported", key);
    return true;
}

/* Reads the layer after which squares become one row: from the outer config, whatever the tower's says. */
static bool read_squeeze(mt_vision_spec *v, const mt_config *config, mt_error *err)
{
    int64_t layer, times;
    bool fine;
    if (!mt_config_int(config, "insert_layer_id", 6, INT32_MIN, INT32_MAX, &layer, err) ||
        !mt_config_int(config, "merger_times", 1, 1, 1000, &times, err) || !read_mode(config, "16x", &fine, err))
        return false;
    if (times != 1)
        return mt_fail(err, MT_E_UNSUPPORTED, "\"merger_times\" is %d; only 1 is supported", (int)times);
    if (!fine && (layer < 0 || layer >= v->layers))
        return mt_fail(err, MT_E_INVALID, "\"insert_layer_id\" is %lld, and the tower has %u layers", (long long)layer,
                       v->layers);
    v->merge = fine ? 2 : 4;
    v->squeezed = !fine;
    v->squeeze = fine ? 0 : (uint32_t)layer;
    return true;
}

static bool read_tower(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                       mt_error *err)
{
    static const mt_siglip_sizes usual = {
        .hidden = 768, .ffn = 3072, .layers = 12, .heads = 12, .image = 224, .patch = 16};
    const mt_config *c = mt_config_object(config, "vision_config");
    (void)arena;
    *v = (mt_vision_spec){.frames = 1,
                          .out = s->hidden,
                          .bias = true,
                          .patch_bias = true,
                          .spread = MT_SPREAD_SHARES,
                          .merge_eps = 1e-6f,
                          .merge_norm = true,
                          .merge_bias = true,
                          .merge_activation = MT_ACT_GELU};
    if (!mt_siglip_read(v, c, &usual, err) || !is_two(c, "window_kernel_size", err) ||
        !is_two(config, "merge_kernel_size", err) || !read_squeeze(v, config, err) ||
        !mt_tower_activation_read(c, "hidden_act", "gelu_pytorch_tanh", &v->activation, err))
        return false;
    v->middle = MT_SQUEEZED * v->hidden;
    return true;
}

/* Binds a norm of patches side by side and an MLP over them. */
static void bind_mlp(mt_tower_binder *t, size_t middle, size_t out, mt_merger_weights *m)
{
    const size_t wide = (size_t)MT_SQUEEZED * t->spec->hidden;
    m->joined_norm = mt_tower_norm(t, "pre_norm", wide, &m->joined_norm_bias);
    mt_tower_matrix(t, "linear_1", middle, wide, &m->up, &m->up_bias);
    mt_tower_matrix(t, "linear_2", out, middle, &m->down, &m->down_bias);
}

static void bind_squeeze(mt_tower_binder *t, mt_vision_weights *w)
{
    const size_t n = t->spec->hidden;
    mt_vision_layer_weights *l = &w->near;
    /* in files of MLX it is beside the tower */
    t->prefix = mt_bind_has(t->b, "/vit_merger.linear_1") ? "/vit_merger." : "vision.vit_merger.";
    l->norm1 = mt_tower_norm(t, "layer_norm1", n, &l->norm1_bias);
    mt_tower_matrix(t, "self_attn.q_proj", n, n, &l->q, &l->q_bias);
    mt_tower_matrix(t, "self_attn.k_proj", n, n, &l->k, &l->k_bias);
    mt_tower_matrix(t, "self_attn.v_proj", n, n, &l->v, &l->v_bias);
    mt_tower_matrix(t, "self_attn.out_proj", n, n, &l->o, &l->o_bias);
    bind_mlp(t, (size_t)MT_SQUEEZED * t->spec->ffn, n, &w->squeeze);
}

static void bind(mt_tower_binder *t, mt_vision_weights *w)
{
    const mt_vision_spec *s = t->spec;
    w->merger.norm = mt_tower_norm(t, "vision.post_layernorm", s->hidden, &w->merger.norm_bias);
    if (s->squeezed)
        bind_squeeze(t, w);
    t->prefix = mt_bind_has(t->b, "/merger.mlp.0.linear_1") ? "/merger.mlp.0." : "/model.merger.mlp.0.";
    bind_mlp(t, s->middle, s->out, &w->merger);
    t->prefix = "";
}

/* Reads how images, or frames, are resized and cut; c: settings, or NULL. */
static bool read_slices(const mt_settings *s, const mt_config *c, mt_pixel_rules *rules, mt_tile_rules *tiles)
{
    static const double half[3] = {0.5, 0.5, 0.5};
    bool fine;
    tiles->least = tiles->most = 9;
    tiles->side = 448;
    if ((c && (!mt_size_read(c, "max_slice_nums", 9, MT_TILES, &tiles->most, s->err) ||
               !mt_size_read(c, "scale_resolution", 448, 1 << 14, &tiles->side, s->err))) ||
        !read_mode(c, "16x", &fine, s->err) || !mt_settings_levels(s, c, half, half, MT_RESAMPLE_BICUBIC, rules))
        return false;
    if (fine != (s->p->merge == 2))
        return mt_fail(s->err, MT_E_INVALID,
                       "the processor's \"downsample_mode\" is %s, the tower's %s; they must be the same",
                       fine ? "4x" : "16x", fine ? "16x" : "4x");
    if (c && !mt_config_bool(c, "slice_mode", true))
        tiles->most = 1;
    return true;
}

static bool read_video(const mt_settings *s, const mt_config *c)
{
    mt_processor *p = s->p;
    int64_t stacked = 1;
    p->max_frames = 128;
    p->fps = 1;
    p->sample = !c || mt_config_bool(c, "do_sample_frames", true);
    if (c && (!mt_size_read(c, "max_num_frames", 128, MT_LIMIT_MEDIA_FRAMES, &p->max_frames, s->err) ||
              !mt_config_int(c, "stack_frames", 1, 1, 1000, &stacked, s->err)))
        return false;
    return stacked == 1 ||
           mt_fail(s->err, MT_E_UNSUPPORTED, "\"stack_frames\" is %d; only 1 is supported", (int)stacked);
}

static bool read_processor(const mt_settings *s)
{
    mt_processor *p = s->p;
    const mt_config *video = s->video;
    /* older folders have one file for both */
    if ((!video && !mt_settings_file(s, "preprocessor_config.json", &video)) ||
        !mt_settings_same(s, s->image, "patch_size", p->patch) || !mt_settings_same(s, video, "patch_size", p->patch) ||
        !read_slices(s, s->image, &p->image, &p->tiles) || !read_slices(s, video, &p->video, &p->video_tiles) ||
        !read_video(s, video))
        return false;
    /* a slice of nearly square shape is at most one token longer along a side */
    const size_t along = ((size_t)(p->tiles.side - 1) / p->patch / SIDES + 2) * SIDES;
    p->patches = p->tiles.most * along * along;
    p->numbered = !s->image || mt_config_bool(s->image, "use_image_id", true);
    p->image_marker = p->image_pad = mt_settings_token(s, "image_token", "<|image_pad|>");
    p->video_marker = p->video_pad = mt_settings_token(s, "video_token", "<|video_pad|>");
    p->opening = mt_settings_token(s, "image_start_token", "<image>");
    p->closing = mt_settings_token(s, "image_end_token", "</image>");
    p->tile_opening = mt_settings_token(s, "slice_start_token", "<slice>");
    p->tile_closing = mt_settings_token(s, "slice_end_token", "</slice>");
    p->number_opening = mt_settings_token(s, "image_id_start_token", "<image_id>");
    p->number_closing = mt_settings_token(s, "image_id_end_token", "</image_id>");
    return true;
}

/* The nearest multiple of step, at least one; halfway, the even one. */
static double whole(double length, double step)
{
    return fmax(rint(length / step) * step, step);
}

/* As many pixels as a slice has, in the picture's shape; smaller pictures stay as they are unless they may grow. */
static mt_pixel_size fit(const mt_processor *p, double side, double h, double w, bool grow)
{
    const double step = (double)p->patch * SIDES;
    if (h * w > side * side || grow) {
        const double ratio = w / h;
        h = floor(side / sqrt(ratio));
        w = floor(h * ratio);
    }
    return (mt_pixel_size){.height = (uint32_t)whole(h, step), .width = (uint32_t)whole(w, step)};
}

/* Of grids with as many slices as the picture has pixels for, one more, or one fewer, the one of the nearest shape.
   False: the picture is not cut. */
static bool choose_grid(const mt_tile_rules *t, double h, double w, uint32_t *across, uint32_t *down)
{
    const double side = t->side, slices = fmin(ceil(w * h / (side * side)), t->most), shape = log(w / h);
    double nearest = INFINITY;
    *across = *down = 1;
    for (uint32_t n = (uint32_t)slices - (slices > 1); slices > 1 && n <= (uint32_t)slices + 1 && n <= t->most; n++)
        for (uint32_t columns = 1; n > 1 && columns <= n; columns++) {
            const double apart = fabs(shape - log((double)columns / (n / columns)));
            if (n % columns || apart >= nearest)
                continue;
            nearest = apart;
            *across = columns;
            *down = n / columns;
        }
    return slices > 1;
}

static bool make_views_by(const mt_processor *p, const mt_pixel_rules *rules, mt_tile_rules tiles,
                          const mt_image *image, const mt_picture_order *order, mt_picture *out, mt_error *err)
{
    const double h = image->height, w = image->width, side = tiles.side;
    const uint64_t room = order->wish.max_pixels / ((uint64_t)tiles.side * tiles.side);
    uint32_t across, down;
    if (order->wish.low || (order->wish.max_pixels && room < 2))
        tiles.most = 1;
    else if (order->wish.max_pixels && room < tiles.most)
        tiles.most = (uint32_t)room;
    const bool cut = choose_grid(&tiles, h, w, &across, &down);
    if (!mt_picture_tiles(p, rules, image, fit(p, side, h, w, !cut), 1, 1, order, out, err))
        return false;
    out->more = cut;
    const mt_pixel_size slice = fit(p, side, whole(h, down) / down, whole(w, across) / across, true);
    return !cut || mt_picture_tiles(p, rules, image, slice, across, down, order, out + 1, err);
}

static bool make_views(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                       mt_error *err)
{
    return make_views_by(p, &p->image, p->tiles, image, order, out, err);
}

static bool make_frame(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                       mt_error *err)
{
    return make_views_by(p, &p->video, p->video_tiles, image, order, out, err);
}

/* Frames at a rate, from the first on; of a video with too many, as many as allowed, at tenths of seconds. A number
   that is asked for is spread from the first frame to the last. */
static void choose(mt_frame_choice *c, double wanted, bool fixed)
{
    const double seconds = (double)c->total / c->fps, most = c->p->max_frames, last = (double)(c->total - 1);
    const double tenths = floor(seconds / 0.1), count = fmin(fixed ? floor(wanted) : ceil(wanted), most);
    const bool tight = !fixed && wanted > most;
    c->count = 0;
    for (double i = 0; i < count || i == 0; i++) {
        const double each = fmax(count - 1, 1);
        const double at = fixed   ? i * (last / each)
                          : tight ? floor(i * ((fmax(tenths, 1) - 1) / each)) / 10 * c->fps
                                  : i * c->fps * (seconds / wanted);
        c->index[c->count++] = (int64_t)fmin(floor(at), last);
    }
}

/* A picture that is cut is followed by its slices. */
static bool text(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out)
{
    const char *pad = picture->video ? p->video_pad : p->image_pad;
    bool ok = !p->numbered || mt_buf_printf(out, "%s%zu%s", p->number_opening, number, p->number_closing);
    for (uint32_t i = 0; ok && i <= picture->more; i++) {
        const uint32_t slices = picture[i].views > 1 ? picture[i].views : 0;
        ok = slices || mt_buf_printf(out, "%s%s%s", p->opening, pad, p->closing);
        for (uint32_t j = 0; ok && j < slices; j++)
            ok = mt_buf_printf(out, "%s%s%s%s", j && j % picture[i].across == 0 ? "\n" : "", p->tile_opening, pad,
                               p->tile_closing);
    }
    return ok;
}

const mt_vision_family mt_vision_minicpm = {.read_tower = read_tower,
                                            .names = MT_SIGLIP_NAMES,
                                            .bind = bind,
                                            .read_processor = read_processor,
                                            .image_id = 248056,
                                            .video_id = 248057,
                                            .image = make_views,
                                            .frame = make_frame,
                                            .choose = choose,
                                            .text = text,
                                            .run = mt_picture_view_tokens};
