/* Pixtral's vision, which Mistral 3 has: pictures keep their shape, and each row of tokens ends with a token of its
   own. In Pixtral itself, which is published as LLaVA, a patch is a token. */
#include <math.h>
#include <string.h>

#include "device/limits.h"
#include "models/family.h"
#include "models/vision_family.h"
#include "weights/limits.h"

#define NORM_EPS 1e-5f /* of the tower's norms; in no config */

static const double clip_mean[3] = {0.48145466, 0.4578275, 0.40821073};
static const double clip_std[3] = {0.26862954, 0.26130258, 0.27577711};

static bool read_sizes(mt_vision_spec *v, const mt_config *c, mt_error *err)
{
    uint32_t side;
    if (!mt_size_read(c, "hidden_size", 1024, MT_LIMIT_WIDTH, &v->hidden, err) ||
        !mt_size_read(c, "intermediate_size", 4096, MT_LIMIT_WIDTH, &v->ffn, err) ||
        !mt_size_read(c, "num_hidden_layers", 24, MT_LIMIT_LAYERS, &v->layers, err) ||
        !mt_size_read(c, "num_attention_heads", 16, MT_LIMIT_WIDTH, &v->heads, err) ||
        !mt_size_read(c, "patch_size", 16, 256, &v->patch, err) ||
        !mt_size_read(c, "image_size", 1024, 1 << 16, &side, err))
        return false;
    if (v->hidden % v->heads || v->hidden / v->heads % 4 || v->hidden / v->heads > MT_LIMIT_HEAD_DIM)
        return mt_fail(
            err, MT_E_INVALID,
            "\"vision_config.hidden_size\" is %u for %u heads; a head must have a multiple of 4 elements, at "
            "most %d",
            v->hidden, v->heads, MT_LIMIT_HEAD_DIM);
    if (side < v->patch)
        return mt_fail(err, MT_E_INVALID, "\"vision_config.image_size\" is %u, less than a patch of %u", side,
                       v->patch);
    v->head_dim = v->hidden / v->heads;
    v->side = side / v->patch;
    return true;
}

static bool read_theta(mt_vision_spec *v, const mt_config *c, mt_error *err)
{
    const mt_config *p = mt_rope_parameters(c);
    const char *type = p ? mt_config_string(p, "rope_type", "default") : "default";
    if (strcmp(type, "default") != 0)
        return mt_fail(err, MT_E_UNSUPPORTED, "the tower's \"rope_type\" is \"%.64s\"; only default is known", type);
    return mt_config_float(p && mt_config_has(p, "rope_theta") ? p : c, "rope_theta", 10000, 1, 1e12, &v->theta, err);
}

/* Checks that tokens are made of the tower's last layer; usual: which layer they are made of where the config does not
   say. */
static bool check_layer(const mt_config *config, int64_t usual, mt_error *err)
{
    int64_t layer;
    if (mt_config_array(config, "vision_feature_layer") > 0)
        return mt_fail(err, MT_E_UNSUPPORTED, "features of several layers of the tower are not supported");
    if (!mt_config_int(config, "vision_feature_layer", usual, -MT_LIMIT_LAYERS, MT_LIMIT_LAYERS, &layer, err))
        return false;
    return layer == -1 || mt_fail(err, MT_E_UNSUPPORTED,
                                  "\"vision_feature_layer\" is %d; only -1, the last one, is supported", (int)layer);
}

/* Reads what is beside vision_config: how patches become tokens. */
static bool read_merger(mt_vision_spec *v, const mt_config *config, mt_error *err)
{
    v->merge_bias = mt_config_bool(config, "multimodal_projector_bias", false);
    return check_layer(config, -1, err) && mt_size_read(config, "spatial_merge_size", 2, 8, &v->merge, err) &&
           mt_tower_activation_read(config, "projector_hidden_act", "gelu", &v->merge_activation, err);
}

/* The same of Pixtral itself, where a patch is a token. */
static bool read_projector(mt_vision_spec *v, const mt_config *config, mt_error *err)
{
    const char *chosen = mt_config_string(config, "vision_feature_select_strategy", "default");
    if (strcmp(chosen, "full") != 0)
        return mt_fail(err, MT_E_UNSUPPORTED, "\"vision_feature_select_strategy\" is \"%.64s\"; full is known", chosen);
    v->merge = 1;
    v->merge_kind = MT_MERGE_MLP;
    v->merge_bare = true;
    v->middle = v->out;
    v->merge_bias = mt_config_bool(config, "multimodal_projector_bias", true);
    return check_layer(config, -2, err) &&
           mt_tower_activation_read(config, "projector_hidden_act", "gelu", &v->merge_activation, err);
}

/* Reads the tower, but how patches become tokens. */
static bool read_layers(mt_vision_spec *v, const mt_model_spec *s, const mt_config *c, mt_error *err)
{
    *v = (mt_vision_spec){.frames = 1,
                          .out = s->hidden,
                          .eps = NORM_EPS,
                          .rms = true,
                          .gated = true,
                          .first_norm = true,
                          .by_turns = true,
                          .merge_kind = MT_MERGE_INTERLEAVED,
                          .merge_eps = s->eps};
    return read_sizes(v, c, err) && read_theta(v, c, err) &&
           mt_tower_activation_read(c, "hidden_act", "gelu", &v->activation, err);
}

static bool read_tower(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                       mt_error *err)
{
    (void)arena;
    return read_layers(v, s, mt_config_object(config, "vision_config"), err) && read_merger(v, config, err);
}

static bool read_alone(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                       mt_error *err)
{
    (void)arena;
    return read_layers(v, s, mt_config_object(config, "vision_config"), err) && read_projector(v, config, err);
}

static void bind(mt_tower_binder *t, mt_vision_weights *w)
{
    const mt_vision_spec *s = t->spec;
    mt_merger_weights *m = &w->merger;
    w->first_norm = mt_bind_vector(t->b, "vision.ln_pre", s->hidden);
    if (s->merge_kind == MT_MERGE_INTERLEAVED) {
        m->norm = mt_bind_vector(t->b, "projector.norm", s->hidden);
        mt_bind_matrix(t->b, "projector.patch_merger.merging_layer", s->hidden, (size_t)s->merge * s->merge * s->hidden,
                       &m->join);
    }
    mt_bind_matrix(t->b, "projector.linear_1", s->out, s->hidden, &m->up);
    mt_bind_matrix(t->b, "projector.linear_2", s->out, s->out, &m->down);
    if (s->merge_bias) {
        m->up_bias = mt_bind_vector(t->b, "projector.linear_1.bias", s->out);
        m->down_bias = mt_bind_vector(t->b, "projector.linear_2.bias", s->out);
    }
}

/* Reads the longest side of a picture, or the longest of each side. */
static bool read_size(const mt_settings *s, mt_pixel_rules *rules)
{
    const mt_config *size = s->image ? mt_config_object(s->image, "size") : NULL;
    uint32_t longest = 1024;
    if (size && mt_config_has(size, "longest_edge")) {
        if (!mt_size_read(size, "longest_edge", 0, 1 << 16, &longest, s->err))
            return false;
    } else if (size && mt_config_has(size, "height")) {
        return mt_size_read(size, "height", 0, 1 << 16, &rules->height, s->err) &&
               mt_size_read(size, "width", 0, 1 << 16, &rules->width, s->err);
    } else if (s->image && !size &&
               /* a plain number is possible, too */
               !mt_size_read(s->image, "size", longest, 1 << 16, &longest, s->err)) {
        return false;
    }
    rules->height = rules->width = longest;
    return true;
}

/* Patches along a side of so many pixels; the last token is padded. */
static uint32_t patches_along(const mt_processor *p, uint32_t pixels)
{
    return ((pixels - 1) / (p->patch * p->merge) + 1) * p->merge;
}

static bool read_processor(const mt_settings *s)
{
    const mt_vision_spec *v = s->spec->vision;
    const mt_config *whole;
    mt_processor *p = s->p;
    if (!mt_settings_file(s, "processor_config.json", &whole) || !mt_settings_same(s, whole, "patch_size", v->patch) ||
        !mt_settings_same(s, whole, "spatial_merge_size", v->merge) || !read_size(s, &p->image) ||
        !mt_settings_levels(s, s->image, clip_mean, clip_std, MT_RESAMPLE_BICUBIC, &p->image))
        return false;
    const uint32_t rows = patches_along(p, p->image.height), columns = patches_along(p, p->image.width);
    if (v->side && (rows > v->side || columns > v->side))
        return mt_fail(s->err, MT_E_INVALID,
                       "the processor makes pictures of up to %u x %u patches, the tower has places for %u x %u; they "
                       "must be of one model",
                       columns, rows, v->side, v->side);
    p->patches = (size_t)rows * columns;
    p->image_marker = p->image_pad = whole ? mt_config_string(whole, "image_token", "[IMG]") : "[IMG]";
    p->row_end = whole ? mt_config_string(whole, "image_break_token", "[IMG_BREAK]") : "[IMG_BREAK]";
    p->closing = whole ? mt_config_string(whole, "image_end_token", "[IMG_END]") : "[IMG_END]";
    return true;
}

/* Pictures are made smaller until they fit, never larger; then their last tokens are padded, unless the request has a
   limit of its own. */
static bool fit(const mt_processor *p, const mt_picture_wish *wish, uint32_t height, uint32_t width, uint32_t frames,
                mt_pixel_size *out, mt_error *err)
{
    const uint32_t side = p->patch * p->merge;
    const double most = wish->max_pixels ? (double)wish->max_pixels : wish->low ? 512.0 * 512 : INFINITY;
    double h = height, w = width, ratio = fmax(h / p->image.height, w / p->image.width);
    (void)frames;
    if (ratio > 1) {
        h = floor(h / ratio);
        w = floor(w / ratio);
    }
    if (h < 1 || w < 1)
        return mt_fail(err, MT_E_INVALID, "a picture of %u x %u pixels is too long for %u x %u", width, height,
                       p->image.width, p->image.height);
    double rows = floor((h - 1) / side) + 1, columns = floor((w - 1) / side) + 1;
    if (rows * columns * side * side > most) {
        const double shrink = fmin(sqrt(most / (h * w)), 1);
        rows = fmax(floor(h * shrink / side), 1);
        columns = fmax(floor(w * shrink / side), 1);
    }
    *out = (mt_pixel_size){.height = (uint32_t)rows * side, .width = (uint32_t)columns * side};
    return true;
}

static bool text(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out)
{
    const uint32_t rows = picture->height / p->merge;
    bool ok = true;
    (void)number;
    for (uint32_t i = 0; ok && i < rows; i++)
        ok = mt_buf_printf(out, "%s%s", p->image_pad, i + 1 < rows ? p->row_end : p->closing);
    return ok;
}

static uint32_t row_tokens(const mt_processor *p, const mt_picture *picture)
{
    return picture->width / p->merge;
}

#define NAMES                                                                                           \
    {                                                                                                   \
        .patch = "vision.patch_conv", .layer = "vision.transformer.layers.", .norm1 = "attention_norm", \
        .norm2 = "ffn_norm", .q = "attention.q_proj", .k = "attention.k_proj", .v = "attention.v_proj", \
        .o = "attention.o_proj", .gate = "feed_forward.gate_proj", .up = "feed_forward.up_proj",        \
        .down = "feed_forward.down_proj"                                                                \
    }
#define PIXTRAL                                                                                                        \
    .types = {"pixtral"}, .names = NAMES, .bind = bind, .read_processor = read_processor, .image_id = 10, .size = fit, \
    .text = text, .run = row_tokens

const mt_vision_family mt_vision_pixtral = {.read_tower = read_tower, PIXTRAL};
const mt_vision_family mt_vision_pixtral_alone = {.read_tower = read_alone, PIXTRAL};
