/* Functions that the vision of all Qwen families shares (qwen.h). */
#include "media/limits.h"
#include "models/family.h"
#include "models/qwen.h"
#include "weights/limits.h"

static const double clip_mean[3] = {0.48145466, 0.4578275, 0.40821073};
static const double clip_std[3] = {0.26862954, 0.26130258, 0.27577711};
static const double half[3] = {0.5, 0.5, 0.5};

static bool read_ffn(mt_vision_spec *v, const mt_config *c, int64_t fallback, mt_error *err)
{
    double ratio;
    if (fallback)
        return mt_size_read(c, "intermediate_size", fallback, MT_LIMIT_WIDTH, &v->ffn, err);
    if (!mt_config_float(c, "mlp_ratio", 4, 0.1, 64, &ratio, err))
        return false;
    v->ffn = (uint32_t)((double)v->hidden * ratio);
    return true;
}

bool mt_qwen_tower_read(mt_vision_spec *v, const mt_model_spec *s, const mt_config *c, const mt_qwen_tower *d,
                        mt_error *err)
{
    v->eps = 1e-6f;
    v->out = s->hidden;
    v->bias = true;
    v->theta = 10000;
    v->merge_activation = MT_ACT_GELU;
    if (!mt_size_read(c, d->hidden_key, d->hidden, MT_LIMIT_WIDTH, &v->hidden, err) ||
        !mt_size_read(c, "spatial_merge_size", 2, 8, &v->merge, err) ||
        !mt_size_read(c, "temporal_patch_size", 2, 8, &v->frames, err) ||
        !mt_size_read(c, "num_heads", 16, MT_LIMIT_WIDTH, &v->heads, err))
        return false;
    if (v->hidden % v->heads || v->hidden / v->heads % 4)
        return mt_fail(err, MT_E_INVALID,
                       "\"vision_config.hidden_size\" is %u for %u heads; a head must have a multiple of 4 elements",
                       v->hidden, v->heads);
    v->head_dim = v->hidden / v->heads;
    return mt_size_read(c, "depth", d->layers, MT_LIMIT_LAYERS, &v->layers, err) && read_ffn(v, c, d->ffn, err) &&
           mt_size_read(c, "patch_size", d->patch, 256, &v->patch, err) &&
           mt_tower_activation_read(c, "hidden_act", d->activation, &v->activation, err);
}

void mt_qwen_merger_bind(mt_tower_binder *t, const char *prefix, const char *const names[3], bool joined,
                         mt_merger_weights *w)
{
    const mt_vision_spec *s = t->spec;
    const size_t wide = (size_t)s->merge * s->merge * s->hidden;
    t->prefix = prefix;
    w->norm = mt_tower_norm(t, names[0], joined ? wide : s->hidden, &w->norm_bias);
    mt_tower_matrix(t, names[1], wide, wide, &w->up, &w->up_bias);
    mt_tower_matrix(t, names[2], s->out, wide, &w->down, &w->down_bias);
}

static bool read_rules(const mt_settings *s, const mt_config *c, int64_t min, int64_t max, bool edges, bool even,
                       mt_pixel_rules *rules)
{
    const mt_processor *p = s->p;
    return mt_settings_same(s, c, "patch_size", p->patch) && mt_settings_same(s, c, "merge_size", p->merge) &&
           mt_settings_same(s, c, "temporal_patch_size", p->frames) &&
           mt_settings_pixels(s, c, min, max, edges, rules) &&
           mt_settings_levels(s, c, even ? half : clip_mean, even ? half : clip_std, MT_RESAMPLE_BICUBIC, rules);
}

static bool read_sampling(const mt_settings *s, const mt_config *c, bool sample)
{
    mt_processor *p = s->p;
    int64_t fixed = 0;
    p->fps = 2;
    p->min_frames = 4;
    p->max_frames = 768;
    p->sample = c ? mt_config_bool(c, "do_sample_frames", sample) : sample;
    if (c && (!mt_config_float(c, "fps", 2, 1e-3, 1000, &p->fps, s->err) ||
              !mt_size_read(c, "min_frames", 4, MT_LIMIT_MEDIA_FRAMES, &p->min_frames, s->err) ||
              !mt_size_read(c, "max_frames", 768, MT_LIMIT_MEDIA_FRAMES, &p->max_frames, s->err) ||
              !mt_config_int(c, "num_frames", 0, 0, MT_LIMIT_MEDIA_FRAMES, &fixed, s->err)))
        return false;
    p->video_frames = (uint32_t)fixed;
    return true;
}

bool mt_qwen_processor_read(const mt_settings *s, int64_t side, bool newer)
{
    mt_processor *p = s->p;
    /* Qwen3's images use Qwen2's class, whose levels count unless a file has others. */
    if (!read_rules(s, s->image, 56 * 56, 28 * 28 * 1280, false, newer && !s->image, &p->image) ||
        !read_rules(s, s->video, 128 * side * side, 768 * side * side, newer, newer, &p->video) ||
        !read_sampling(s, s->video, newer))
        return false;
    p->together = newer;
    const uint64_t area = (uint64_t)p->patch * p->patch, frames = p->max_frames / p->frames + 1;
    const uint64_t image = p->image.max_pixels / area, video = p->video.max_pixels / area;
    const uint64_t views = newer ? video / p->frames : frames * video;
    p->patches = image > views ? image : views;
    p->image_marker = p->image_pad = mt_settings_token(s, "image_token", "<|image_pad|>");
    p->video_marker = p->video_pad = mt_settings_token(s, "video_token", "<|video_pad|>");
    p->opening = mt_settings_token(s, "vision_start_token", "<|vision_start|>");
    p->closing = mt_settings_token(s, "vision_end_token", "<|vision_end|>");
    return true;
}
