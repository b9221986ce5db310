/* Gemma 4's vision: pictures keep their shape and become as many tokens as a budget allows. The tower norms and turns
   each head; the unified model has no tower layers, and projects raw squares of pixels. */
#include <math.h>
#include <string.h>

#include "device/limits.h"
#include "models/family.h"
#include "models/vision_family.h"
#include "weights/limits.h"

#define LAYER_EPS 1e-5f /* of layer norms; in no config */
#define VIDEO_FPS 24    /* frames per second of a list of frames without times */
#define MAX_FRAMES 768  /* most frames of a video */

/* The budgets: most tokens of a picture. */
static const uint32_t budgets[] = {70, 140, 280, 560, 1120};

/* Tokens of the largest picture, where the positions of a picture see each other; else 0. */
static uint32_t block_of(const mt_config *config, const char *usual)
{
    const mt_config *text = mt_config_object(config, "text_config");
    const char *seen = text && mt_config_names(text, "use_bidirectional_attention")
                           ? mt_config_string(text, "use_bidirectional_attention", "")
                           : usual;
    return strcmp(seen, "vision") == 0 ? budgets[MT_COUNT(budgets) - 1] : 0;
}

static bool read_theta(mt_vision_spec *v, const mt_config *c, mt_error *err)
{
    const mt_config *p = mt_config_object(c, "rope_parameters");
    const char *type = p ? mt_config_string(p, "rope_type", "default") : "default";
    if (strcmp(type, "default") != 0)
        return mt_fail(err, MT_E_UNSUPPORTED, "the tower's \"rope_type\" is \"%.64s\"; only default is known", type);
    return mt_config_float(p ? p : c, "rope_theta", 100, 1, 1e12, &v->theta, err);
}

static bool read_sizes(mt_vision_spec *v, const mt_config *c, mt_error *err)
{
    double eps;
    if (!mt_size_read(c, "hidden_size", 768, MT_LIMIT_WIDTH, &v->hidden, err) ||
        !mt_size_read(c, "intermediate_size", 3072, MT_LIMIT_WIDTH, &v->ffn, err) ||
        !mt_size_read(c, "num_hidden_layers", 16, MT_LIMIT_LAYERS, &v->layers, err) ||
        !mt_size_read(c, "num_attention_heads", 12, MT_LIMIT_WIDTH, &v->heads, err) ||
        !mt_size_read(c, "num_key_value_heads", 12, MT_LIMIT_WIDTH, &v->kv_heads, err) ||
        !mt_size_read(c, "head_dim", 64, MT_LIMIT_HEAD_DIM, &v->head_dim, err) ||
        !mt_size_read(c, "patch_size", 16, 256, &v->patch, err) ||
        !mt_size_read(c, "pooling_kernel_size", 3, 8, &v->merge, err) ||
        !mt_size_read(c, "position_embedding_size", 10240, 1 << 20, &v->places, err) ||
        !mt_config_float(c, "rms_norm_eps", 1e-6, 0, 1, &eps, err))
        return false;
    if (v->head_dim % 4 || v->heads % v->kv_heads || (size_t)v->heads * v->head_dim > MT_LIMIT_WIDTH)
        return mt_fail(err, MT_E_INVALID,
                       "\"vision_config\" has %u heads of %u elements for %u key heads; a head must have a multiple of "
                       "4 elements",
                       v->heads, v->head_dim, v->kv_heads);
    v->eps = (float)eps;
    v->side = v->places;
    return true;
}

static bool read_tower(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                       mt_error *err)
{
    const mt_config *c = mt_config_object(config, "vision_config");
    (void)arena;
    if (mt_config_bool(c, "attention_bias", false))
        return mt_fail(err, MT_E_UNSUPPORTED, "\"vision_config.attention_bias\" is true, which is not supported");
    *v = (mt_vision_spec){.frames = 1,
                          .out = s->hidden,
                          .rms = true,
                          .gated = true,
                          .post_norms = true,
                          .head_norms = true,
                          .halves = true,
                          .pixels_last = true,
                          .clipped = mt_config_bool(c, "use_clipped_linears", false),
                          .standard = mt_config_bool(c, "standardize", false),
                          .merge_kind = MT_MERGE_PLAIN,
                          .block = block_of(config, "")};
    if (!read_sizes(v, c, err) || !read_theta(v, c, err) ||
        !mt_tower_activation_read(c, "hidden_activation", "gelu_pytorch_tanh", &v->activation, err))
        return false;
    v->merge_scale = sqrtf((float)v->hidden);
    return true;
}

static bool read_unified(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                         mt_error *err)
{
    const mt_config *c = mt_config_object(config, "vision_config");
    uint32_t patch, merge, width;
    double eps;
    (void)arena;
    *v = (mt_vision_spec){.frames = 1,
                          .merge = 1,
                          .out = s->hidden,
                          .layer_eps = LAYER_EPS,
                          .rms = true,
                          .patch_bias = true,
                          .layered = true,
                          .pixels_last = true,
                          .places_interleaved = true,
                          .merge_kind = MT_MERGE_PLAIN,
                          .merge_scale = 1,
                          .block = block_of(config, "vision")};
    if (!mt_size_read(c, "patch_size", 16, 64, &patch, err) ||
        !mt_size_read(c, "pooling_kernel_size", 3, 8, &merge, err) ||
        !mt_size_read(c, "mm_embed_dim", 3840, MT_LIMIT_WIDTH, &v->hidden, err) ||
        !mt_size_read(c, "output_proj_dims", v->hidden, MT_LIMIT_WIDTH, &width, err) ||
        !mt_size_read(c, "mm_posemb_size", 1120, 1 << 20, &v->places, err) ||
        !mt_config_float(c, "rms_norm_eps", 1e-6, 0, 1, &eps, err))
        return false;
    if (width != v->hidden)
        return mt_fail(err, MT_E_INVALID, "\"output_proj_dims\" is %u, but \"mm_embed_dim\" %u", width, v->hidden);
    v->eps = (float)eps;
    v->patch = patch * merge;
    v->side = v->places;
    return true;
}

static void bind(mt_tower_binder *t, mt_vision_weights *w)
{
    const mt_vision_spec *s = t->spec;
    mt_merger_weights *m = &w->merger;
    mt_bind_matrix(t->b, "projector.embedding_projection", s->out, s->hidden, &m->down);
    if (s->standard) {
        m->standard_bias = mt_bind_vector(t->b, "vision.std_bias", s->hidden);
        m->standard_scale = mt_bind_vector(t->b, "vision.std_scale", s->hidden);
    }
}

static void bind_unified(mt_tower_binder *t, mt_vision_weights *w)
{
    const mt_vision_spec *s = t->spec;
    const size_t pixels = (size_t)3 * s->patch * s->patch;
    w->pixel_norm = mt_bind_vector(t->b, "vision.patch_ln1", pixels);
    w->pixel_norm_bias = mt_bind_vector(t->b, "vision.patch_ln1.bias", pixels);
    w->patch_norm = mt_bind_vector(t->b, "vision.patch_ln2", s->hidden);
    w->patch_norm_bias = mt_bind_vector(t->b, "vision.patch_ln2.bias", s->hidden);
    w->first_norm = mt_bind_vector(t->b, "vision.pos_norm", s->hidden);
    w->first_norm_bias = mt_bind_vector(t->b, "vision.pos_norm.bias", s->hidden);
    bind(t, w);
}

/* ---- the processor ---- */

/* Pixels along a token. */
static uint32_t side_of(const mt_processor *p)
{
    return p->patch * p->merge;
}

static bool known_budget(int64_t tokens)
{
    for (size_t i = 0; i < MT_COUNT(budgets); i++)
        if (budgets[i] == tokens)
            return true;
    return false;
}

/* Reads the rules for pixels. tower: the class maps values from [0, 1] to [-1, 1] before the patch embedding. */
static bool read_rules(const mt_settings *s, const mt_config *c, int64_t usual, bool tower, mt_pixel_rules *rules)
{
    static const double none[3] = {0, 0, 0}, all[3] = {1, 1, 1};
    int64_t tokens = usual;
    if ((c && !mt_config_int(c, "max_soft_tokens", usual, 1, 1 << 16, &tokens, s->err)) ||
        !mt_settings_levels(s, c, none, all, MT_RESAMPLE_BICUBIC, rules))
        return false;
    if (!known_budget(tokens))
        return mt_fail(s->err, MT_E_INVALID, "\"max_soft_tokens\" is %d; known are 70, 140, 280, 560 and 1120",
                       (int)tokens);
    for (size_t byte = 0; byte < 256; byte++)
        for (size_t i = 0; i < 3; i++) {
            if (tower)
                rules->levels[i][byte] = 2 * (rules->levels[i][byte] - 0.5f);
            if (rules->levels[i][byte] != rules->levels[0][byte])
                return mt_fail(s->err, MT_E_UNSUPPORTED,
                               "\"image_mean\" or \"image_std\" differ by channel, which Gemma 4's do not");
        }
    rules->max_pixels = (uint64_t)tokens * side_of(s->p) * side_of(s->p);
    return true;
}

static bool read_processor(const mt_settings *s)
{
    const mt_vision_spec *v = s->spec->vision;
    const bool tower = v->layers > 0;
    const uint32_t most = budgets[MT_COUNT(budgets) - 1];
    mt_processor *p = s->p;
    int64_t frames = 32;
    if ((tower && (!mt_settings_same(s, s->image, "patch_size", v->patch) ||
                   !mt_settings_same(s, s->image, "pooling_kernel_size", v->merge))) ||
        !read_rules(s, s->image, 280, tower, &p->image) || !read_rules(s, s->video, 70, tower, &p->video) ||
        (s->video && !mt_config_int(s->video, "num_frames", frames, 1, MAX_FRAMES, &frames, s->err)))
        return false;
    p->sample = !s->video || mt_config_bool(s->video, "do_sample_frames", true);
    p->video_frames = (uint32_t)frames;
    p->fps = VIDEO_FPS;
    p->min_frames = 1;
    p->max_frames = MAX_FRAMES;
    p->patches = (size_t)most * p->merge * p->merge;
    if (p->patches < (size_t)frames * budgets[0] * p->merge * p->merge)
        p->patches = (size_t)frames * budgets[0] * p->merge * p->merge;
    p->image_marker = p->image_pad = mt_settings_token(s, "image_token", "<|image|>");
    p->video_marker = p->video_pad = "<|video|>";
    p->opening = mt_settings_token(s, "boi_token", "<|image>");
    p->closing = mt_settings_token(s, "eoi_token", "<image|>");
    return true;
}

/* Pixels of the largest budget within the request's max_pixels, or of the smallest that has its min_pixels. */
static double wanted_pixels(const mt_processor *p, const mt_pixel_rules *rules, const mt_picture_wish *wish)
{
    const uint64_t token = (uint64_t)side_of(p) * side_of(p);
    const uint64_t most = wish->max_pixels ? wish->max_pixels : wish->low ? 512 * 512 : 0;
    uint64_t tokens = rules->max_pixels / token;
    size_t i = MT_COUNT(budgets) - 1;
    if (most && (wish->max_pixels || tokens * token > most)) {
        while (i > 0 && budgets[i] * token > most)
            i--;
        tokens = budgets[i];
    }
    for (i = 0; wish->min_pixels && i < MT_COUNT(budgets); i++)
        if (tokens * token < wish->min_pixels && budgets[i] > tokens && (!most || budgets[i] * token <= most))
            tokens = budgets[i];
    return (double)(tokens * token);
}

/* As large as the budget allows, in whole tokens, of nearly the same shape; a very long picture is one token high. */
static bool fit(const mt_processor *p, const mt_picture_wish *wish, uint32_t height, uint32_t width, uint32_t frames,
                mt_pixel_size *out, mt_error *err)
{
    const mt_pixel_rules *rules = frames ? &p->video : &p->image;
    const double side = side_of(p), pixels = wanted_pixels(p, rules, wish);
    const double factor = sqrt(pixels / ((double)height * width)), longest = pixels / (side * side);
    double rows = floor(factor * height / side), columns = floor(factor * width / side);
    if (rows < 1) {
        rows = 1;
        columns = fmin(width / height, longest);
    } else if (columns < 1) {
        columns = 1;
        rows = fmin(height / width, longest);
    }
    const double most = fmax(rows, columns) * p->merge;
    if (most > p->places)
        return mt_fail(err, MT_E_INVALID,
                       "a picture of %u x %u pixels is too long; the tower has places for %u patches", width, height,
                       p->places);
    *out = (mt_pixel_size){.height = (uint32_t)(rows * side), .width = (uint32_t)(columns * side)};
    return true;
}

/* Evenly spread from the first frame on, rounded as torch does. */
static void choose(mt_frame_choice *c, double wanted, bool fixed)
{
    const double total = (double)c->total, count = fmin(fmax(floor(wanted), 1), fmin(total, c->p->max_frames));
    const double step = total / count;
    (void)fixed;
    c->count = (uint32_t)fmin(ceil(total / step), c->p->max_frames);
    for (uint32_t i = 0; i < c->count; i++)
        c->index[i] = (int64_t)(float)(i * step);
}

static bool text(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out)
{
    (void)number;
    if (!picture->video)
        return mt_buf_printf(out, "%s%s%s", p->opening, p->image_pad, p->closing);
    bool ok = true;
    for (uint32_t i = 0; ok && i < picture->views; i++) {
        const uint32_t seconds = (uint32_t)picture->times[i];
        ok = mt_buf_printf(out, "%s%02u:%02u %s%s%s", i ? " " : "", seconds / 60, seconds % 60, p->opening,
                           p->video_pad, p->closing);
    }
    return ok;
}

#define EYES(tower, others)                                                                                        \
    .read_tower = tower, .bind = others, .read_processor = read_processor, .image_id = 258880, .video_id = 258884, \
    .size = fit, .choose = choose, .text = text, .run = mt_picture_view_tokens

const mt_vision_family mt_vision_gemma4 = {EYES(read_tower, bind),
                                           .names = {.patch = "vision.patch_embedder.input_proj",
                                                     .table = "vision.patch_embedder.position_embedding_table",
                                                     .layer = "vision.encoder.layers.",
                                                     .norm1 = "input_layernorm",
                                                     .norm2 = "pre_feedforward_layernorm",
                                                     .post1 = "post_attention_layernorm",
                                                     .post2 = "post_feedforward_layernorm",
                                                     .q = "self_attn.q_proj",
                                                     .k = "self_attn.k_proj",
                                                     .v = "self_attn.v_proj",
                                                     .o = "self_attn.o_proj",
                                                     .q_norm = "self_attn.q_norm",
                                                     .k_norm = "self_attn.k_norm",
                                                     .gate = "mlp.gate_proj",
                                                     .up = "mlp.up_proj",
                                                     .down = "mlp.down_proj",
                                                     .inner = ".linear"}};

const mt_vision_family mt_vision_gemma4_unified = {
    EYES(read_unified, bind_unified), .names = {.patch = "vision.patch_dense", .table = "vision.pos_embedding"}};
