/* PaddleOCR-VL's vision: SigLIP over pictures in their own shape, with rotary positions besides the learned ones. */
#include <math.h>

#include "models/family.h"
#include "models/vision_family.h"

static const double clip_mean[3] = {0.48145466, 0.4578275, 0.40821073};
static const double clip_std[3] = {0.26862954, 0.26130258, 0.27577711};

static bool read_tower(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                       mt_error *err)
{
    static const mt_siglip_sizes usual = {
        .hidden = 1152, .ffn = 4304, .layers = 27, .heads = 16, .image = 384, .patch = 14};
    const mt_config *c = mt_config_object(config, "vision_config");
    (void)arena;
    *v = (mt_vision_spec){.frames = 1,
                          .out = s->hidden,
                          .bias = true,
                          .patch_bias = true,
                          .theta = 10000,
                          .merge_activation = MT_ACT_GELU,
                          .merge_eps = 1e-5f};
    if (!mt_siglip_read(v, c, &usual, err) || !mt_size_read(c, "spatial_merge_size", 2, 8, &v->merge, err))
        return false;
    if (v->head_dim % 4)
        return mt_fail(err, MT_E_INVALID, "\"vision_config\" has heads of %u elements, which must be a multiple of 4",
                       v->head_dim);
    return mt_tower_activation_read(c, "hidden_act", "gelu_pytorch_tanh", &v->activation, err);
}

static void bind(mt_tower_binder *t, mt_vision_weights *w)
{
    const mt_vision_spec *s = t->spec;
    const size_t wide = (size_t)s->merge * s->merge * s->hidden;
    mt_merger_weights *m = &w->merger;
    w->norm = mt_tower_norm(t, "vision.post_layernorm", s->hidden, &w->norm_bias);
    m->norm = mt_tower_norm(t, "projector.pre_norm", s->hidden, &m->norm_bias);
    mt_tower_matrix(t, "projector.linear_1", wide, wide, &m->up, &m->up_bias);
    mt_tower_matrix(t, "projector.linear_2", s->out, wide, &m->down, &m->down_bias);
}

static bool read_processor(const mt_settings *s)
{
    mt_processor *p = s->p;
    if (!mt_settings_same(s, s->image, "patch_size", p->patch) ||
        !mt_settings_same(s, s->image, "merge_size", p->merge) ||
        !mt_settings_same(s, s->image, "temporal_patch_size", 1) ||
        !mt_settings_pixels(s, s->image, 384 * 384, 1536 * 1536, false, &p->image) ||
        !mt_settings_levels(s, s->image, clip_mean, clip_std, MT_RESAMPLE_BICUBIC, &p->image))
        return false;
    p->patches = p->image.max_pixels / ((uint64_t)p->patch * p->patch);
    p->image_marker = p->image_pad = mt_settings_token(s, "image_token", "<|IMAGE_PLACEHOLDER|>");
    return true;
}

/* A picture that is smaller than a token in one direction is enlarged to a token first, and keeps its shape. */
static bool fit(const mt_processor *p, const mt_picture_wish *wish, uint32_t height, uint32_t width, uint32_t frames,
                mt_pixel_size *out, mt_error *err)
{
    const uint32_t side = p->patch * p->merge;
    double h = height, w = width;
    (void)frames;
    if (h < side) {
        w = rint(w * side / h);
        h = side;
    }
    if (w < side) {
        h = rint(h * side / w);
        w = side;
    }
    return mt_pixel_size_fit_frames(p, &p->image, wish, (uint32_t)fmin(h, UINT32_MAX), (uint32_t)fmin(w, UINT32_MAX), 0,
                                    out, err);
}

const mt_vision_family mt_vision_paddleocr = {.read_tower = read_tower,
                                              .names = MT_SIGLIP_NAMES,
                                              .bind = bind,
                                              .read_processor = read_processor,
                                              .image_id = 100295,
                                              .size = fit,
                                              .grid = true};
