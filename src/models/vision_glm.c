/* GLM's vision. GLM-OCR has no learned positions, but norms of queries and keys. Older processors write whole seconds
   behind each pair of frames and take two frames a second; newer ones write the time in full, and take frames by the
   video's length. */
#include <math.h>
#include <string.h>

#include "media/limits.h"
#include "models/family.h"
#include "models/vision_family.h"
#include "weights/limits.h"

#define MOST_FRAMES 640   /* most frames, where the video's length decides */
#define MOST_SECONDS 2400 /* seconds of a video that are used at most */

static const double clip_mean[3] = {0.48145466, 0.4578275, 0.40821073};
static const double clip_std[3] = {0.26862954, 0.26130258, 0.27577711};

/* Defaults of a tower's sizes. */
typedef struct tower_sizes {
    int64_t hidden, heads, out, ffn;
    bool bias;
} tower_sizes;

static bool read_sizes(mt_vision_spec *v, const mt_config *c, const tower_sizes *d, mt_error *err)
{
    uint32_t side, out;
    double eps;
    if (!mt_size_read(c, "hidden_size", d->hidden, MT_LIMIT_WIDTH, &v->hidden, err) ||
        !mt_size_read(c, "num_heads", d->heads, MT_LIMIT_WIDTH, &v->heads, err) ||
        !mt_size_read(c, "depth", 24, MT_LIMIT_LAYERS, &v->layers, err) ||
        !mt_size_read(c, "intermediate_size", d->ffn, MT_LIMIT_WIDTH, &v->ffn, err) ||
        !mt_size_read(c, "out_hidden_size", d->out, MT_LIMIT_WIDTH, &out, err) ||
        !mt_size_read(c, "patch_size", 14, 256, &v->patch, err) ||
        !mt_size_read(c, "temporal_patch_size", 2, 8, &v->frames, err) ||
        !mt_size_read(c, "spatial_merge_size", 2, 8, &v->merge, err) ||
        !mt_size_read(c, "image_size", 336, 1 << 14, &side, err) ||
        !mt_config_float(c, "rms_norm_eps", 1e-5, 0, 1, &eps, err))
        return false;
    if (v->hidden % v->heads || v->hidden / v->heads % 4 || side < v->patch)
        return mt_fail(err, MT_E_INVALID,
                       "\"vision_config\" has %u elements for %u heads, which must get a multiple of 4, and patches of "
                       "%u for %u pixels",
                       v->hidden, v->heads, v->patch, side);
    if (out != v->out)
        return mt_fail(err, MT_E_INVALID, "the tower gives %u elements, the text model takes %u", out, v->out);
    v->head_dim = v->hidden / v->heads;
    v->table = side / v->patch;
    v->eps = (float)eps;
    return true;
}

static bool read_any(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, const tower_sizes *sizes,
                     mt_error *err)
{
    const mt_config *c = mt_config_object(config, "vision_config");
    *v = (mt_vision_spec){.out = s->hidden,
                          .rms = true,
                          .gated = true,
                          .patch_bias = true,
                          .qkv_bias = mt_config_bool(c, "attention_bias", sizes->bias),
                          .theta = 10000,
                          .spread = MT_SPREAD_CUBIC,
                          .merge_kind = MT_MERGE_GATED,
                          .merge_eps = 1e-5f};
    if (!read_sizes(v, c, sizes, err) || !mt_tower_activation_read(c, "hidden_act", "silu", &v->activation, err))
        return false;
    v->merge_activation = v->activation;
    return true;
}

/* The MLP of its layers is as wide as the text model; the merger's MLP is as wide as the config's intermediate_size. */
static bool read_tower(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                       mt_error *err)
{
    static const tower_sizes sizes = {.hidden = 1536, .heads = 12, .out = 4096, .ffn = 13696};
    (void)arena;
    if (!read_any(v, s, config, &sizes, err))
        return false;
    v->middle = v->ffn;
    v->ffn = v->out;
    v->first_norm = true;
    return true;
}

static bool read_ocr_tower(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                           mt_error *err)
{
    static const tower_sizes sizes = {.hidden = 1024, .heads = 16, .out = 1536, .ffn = 4096, .bias = true};
    (void)arena;
    if (!read_any(v, s, config, &sizes, err))
        return false;
    v->middle = 3 * v->out;
    v->bias = v->qkv_bias;
    v->qk_norm = true;
    v->table = 0;
    return true;
}

static void bind(mt_tower_binder *t, mt_vision_weights *w)
{
    const mt_vision_spec *s = t->spec;
    mt_merger_weights *m = &w->merger;
    if (s->first_norm)
        w->first_norm = mt_bind_vector(t->b, "vision.post_conv_layernorm", s->hidden);
    m->norm = mt_bind_vector(t->b, "vision.post_layernorm", s->hidden);
    mt_bind_patches(t->b, "vision.downsample", s->out, s->hidden, 1, s->merge, &m->join);
    m->join_bias = mt_bind_vector(t->b, "vision.downsample.bias", s->out);
    mt_bind_matrix(t->b, "vision.merger.proj", s->out, s->out, &m->proj);
    m->joined_norm = mt_bind_vector(t->b, "vision.merger.post_projection_norm", s->out);
    m->joined_norm_bias = mt_bind_vector(t->b, "vision.merger.post_projection_norm.bias", s->out);
    mt_bind_matrix(t->b, "vision.merger.gate_proj", s->middle, s->out, &m->gate);
    mt_bind_matrix(t->b, "vision.merger.up_proj", s->middle, s->out, &m->up);
    mt_bind_matrix(t->b, "vision.merger.down_proj", s->out, s->middle, &m->down);
}

static bool read_rules(const mt_settings *s, const mt_config *c, int64_t most, mt_pixel_rules *rules)
{
    const mt_processor *p = s->p;
    return mt_settings_same(s, c, "patch_size", p->patch) && mt_settings_same(s, c, "merge_size", p->merge) &&
           mt_settings_same(s, c, "temporal_patch_size", p->frames) &&
           mt_settings_pixels(s, c, 112 * 112, most, true, rules) &&
           mt_settings_levels(s, c, clip_mean, clip_std, MT_RESAMPLE_BICUBIC, rules);
}

/* Whether the class that a file names is a newer one; where it names none, `usual`. */
static bool is_newer(const mt_config *c, const char *key, bool usual)
{
    const char *name = c ? mt_config_string(c, key, NULL) : NULL;
    return name ? strncmp(name, "Glm46V", 6) == 0 : usual;
}

static bool read_video(const mt_settings *s, const mt_config *c, bool newer)
{
    mt_processor *p = s->p;
    p->sample = !c || mt_config_bool(c, "do_sample_frames", true);
    p->max_seconds = 300;
    p->fps = 2;
    if (c && (!mt_config_float(c, "fps", 2, 1e-3, 1000, &p->fps, s->err) ||
              !mt_config_float(c, "max_duration", 300, 1, 1e6, &p->max_seconds, s->err)))
        return false;
    if (newer)
        p->fps = 0;
    p->max_frames = newer ? MOST_FRAMES : (uint32_t)fmin(fmax(p->max_seconds * p->fps, 768), MT_LIMIT_MEDIA_FRAMES);
    return true;
}

static bool read_files(const mt_settings *s, bool newer)
{
    mt_processor *p = s->p;
    const mt_config *whole, *video = s->video;
    if (!mt_settings_file(s, "processor_config.json", &whole) ||
        /* older folders have one file for both */
        (!video && !mt_settings_file(s, "preprocessor_config.json", &video)) ||
        !read_rules(s, s->image, 28 * 28 * 15000, &p->image) ||
        !read_rules(s, video, INT64_C(28) * 28 * 2 * 30000, &p->video))
        return false;
    p->spelt = is_newer(whole, "processor_class", is_newer(s->image, "processor_class", newer));
    newer = is_newer(s->video, "video_processor_type", is_newer(s->image, "image_processor_type", newer));
    if (!read_video(s, video, newer))
        return false;
    const uint64_t area = (uint64_t)p->patch * p->patch * p->frames;
    const uint64_t image = p->image.max_pixels / area, frames = p->video.max_pixels / area;
    p->together = true;
    p->patches = image > frames ? image : frames;
    p->image_marker = p->image_pad = p->video_pad = mt_settings_token(s, "image_token", "<|image|>");
    p->video_marker = mt_settings_token(s, "video_token", "<|video|>");
    p->opening = "<|begin_of_image|>";
    p->closing = "<|end_of_image|>";
    return true;
}

static bool read_processor(const mt_settings *s)
{
    return read_files(s, false);
}

static bool read_newer_processor(const mt_settings *s)
{
    return read_files(s, true);
}

/* An image counts as `frames` equal frames in the checkpoint's limits, but as one in the request's. */
static bool fit(const mt_processor *p, const mt_picture_wish *wish, uint32_t height, uint32_t width, uint32_t frames,
                mt_pixel_size *out, mt_error *err)
{
    mt_picture_wish both = *wish;
    if (frames)
        return mt_pixel_size_fit_frames(p, &p->video, wish, height, width, frames, out, err);
    both.min_pixels *= p->frames;
    both.max_pixels *= p->frames;
    if (wish->low && !wish->max_pixels && p->image.max_pixels > UINT64_C(512) * 512 * p->frames)
        both.max_pixels = UINT64_C(512) * 512 * p->frames;
    return mt_pixel_size_fit_frames(p, &p->image, &both, height, width, p->frames, out, err);
}

static void add(mt_frame_choice *c, double index)
{
    const int64_t at = (int64_t)fmin(fmax(index, 0), (double)(c->total - 1));
    if (c->count < c->p->max_frames && (c->count == 0 || c->index[c->count - 1] < at))
        c->index[c->count++] = at;
}

/* Chooses `count` frames evenly from `from` to `to`, both included. */
static void spread(mt_frame_choice *c, double from, double to, double count)
{
    c->count = 0;
    for (double i = 0; i < count; i++)
        add(c, floor(count > 1 ? from + i * ((to - from) / (count - 1)) : from));
}

/* Six frames a second of a short video, two up to five minutes, one beyond; that number is kept even where the first
   frames chosen do not reach the video's end. */
static void choose_by_length(mt_frame_choice *c)
{
    const double seconds = (double)c->total / c->fps, looked = fmin(seconds, MOST_SECONDS);
    const double pace = (looked <= 30 ? 3 : looked <= 300 ? 1 : 0.5) * c->p->frames;
    const double count = fmin(floor(looked * pace), MOST_FRAMES), last = (double)(c->total - 1);
    double next = 0;
    if ((double)c->total < count) {
        spread(c, 0, last, count);
        return;
    }
    size_t found = 0;
    double first_found = 0, last_found = 0;
    for (int64_t i = 0; i < c->total; i++) {
        if ((double)i * (1 / c->fps) < next)
            continue;
        next += 1 / pace;
        first_found = found++ ? first_found : (double)i;
        last_found = (double)i;
        add(c, last_found);
        if (next >= floor(seconds))
            break;
    }
    if ((double)found < count)
        spread(c, first_found, last_found, count);
    else if ((double)found > count)
        spread(c, 0, last, count);
}

static void choose_by_pace(mt_frame_choice *c, double wanted)
{
    const double seconds = (double)c->total / c->fps, pace = wanted / seconds, most = c->p->max_seconds;
    const double few = floor(most * pace);
    if (seconds <= most) {
        for (double i = 0; i < floor(wanted); i++)
            add(c, ceil(i * c->fps / pace - 1e-9));
    } else if (few >= (double)c->total) {
        spread(c, 0, (double)(c->total - 1), (double)c->total);
    } else {
        for (double i = 0; i < few; i++)
            add(c, ceil((few > 1 ? i * (seconds / (few - 1)) : 0) * c->fps - 1e-9));
    }
}

/* wanted 0: the class has no frame rate. Frames come in pairs. */
static void choose(mt_frame_choice *c, double wanted, bool fixed)
{
    c->count = 0;
    if (wanted > 0 && fixed)
        spread(c, 0, (double)(c->total - 1), floor(wanted));
    else if (wanted > 0)
        choose_by_pace(c, wanted);
    else
        choose_by_length(c);
    if (c->count == 0)
        add(c, 0);
    if (c->count % 2) {
        c->index[c->count] = c->index[c->count - 1];
        c->count++;
    }
}

static bool text(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out)
{
    bool ok = picture->video || mt_buf_printf(out, "%s", p->image_pad);
    (void)number;
    for (uint32_t i = 0; ok && picture->video && i < picture->views; i++) {
        ok = mt_buf_printf(out, "%s%s%s", p->opening, p->image_pad, p->closing) &&
             (p->spelt ? mt_buf_printf(out, "%.1f seconds", picture->times[i])
                       : mt_buf_printf(out, "%d", (int)picture->times[i]));
    }
    return ok;
}

#define EYES(tower, processor, id, type, other)                                                                 \
    {                                                                                                           \
        .types = {type, other}, .read_tower = tower,                                                            \
        .names = {.patch = "vision.patch_embed.proj",                                                           \
                  .table = "vision.embeddings.position_embedding",                                              \
                  .layer = "vision.blocks.",                                                                    \
                  .norm1 = "norm1",                                                                             \
                  .norm2 = "norm2",                                                                             \
                  .q = "attn.q",                                                                                \
                  .qkv = "attn.qkv",                                                                            \
                  .q_norm = "attn.q_norm",                                                                      \
                  .k_norm = "attn.k_norm",                                                                      \
                  .o = "attn.proj",                                                                             \
                  .gate = "mlp.gate_proj",                                                                      \
                  .up = "mlp.up_proj",                                                                          \
                  .down = "mlp.down_proj"},                                                                     \
        .bind = bind, .read_processor = processor, .image_id = id, .size = fit, .choose = choose, .text = text, \
        .run = mt_picture_view_tokens, .one_pad = true, .early = true, .grid = true                             \
    }

const mt_vision_family mt_vision_glm4v = EYES(read_tower, read_processor, 151343, NULL, NULL);
const mt_vision_family mt_vision_glm46v =
    EYES(read_tower, read_newer_processor, 151343, "glm4v_vision", "glm4v_moe_vision");
const mt_vision_family mt_vision_glm4v_moe = EYES(read_tower, read_processor, 151363, NULL, NULL);
const mt_vision_family mt_vision_glm_ocr = EYES(read_ocr_tower, read_newer_processor, 59280, NULL, NULL);
