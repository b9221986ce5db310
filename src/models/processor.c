/* What the files of a checkpoint say of its processor. Newer checkpoints have all of it in processor_config.json, older
   ones a file for images and one for videos; what neither says is what the class in transformers has. */
#include "models/processor_inside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_PIXELS (UINT64_C(1) << 32)

typedef struct reader {
    const char *dir;
    mt_arena *arena;
    mt_processor *p;
    mt_error *err;
} reader;

typedef struct defaults {
    int64_t min_pixels, max_pixels, video_min_pixels, video_max_pixels;
    bool third; /* Qwen3's videos: all levels from -1 to 1, and only some frames */
} defaults;

static const double clip_mean[3] = {0.48145466, 0.4578275, 0.40821073};
static const double clip_std[3] = {0.26862954, 0.26130258, 0.27577711};
static const double half[3] = {0.5, 0.5, 0.5};

static const defaults qwen2 = {.min_pixels = 56 * 56,
                               .max_pixels = 28 * 28 * 1280,
                               .video_min_pixels = 128 * 28 * 28,
                               .video_max_pixels = 28 * 28 * 768};
static const defaults qwen3 = {.min_pixels = 56 * 56,
                               .max_pixels = 28 * 28 * 1280,
                               .video_min_pixels = 128 * 32 * 32,
                               .video_max_pixels = 32 * 32 * 768,
                               .third = true};

static void free_config(void *config)
{
    mt_config_free(config);
}

/* *out stays NULL where there is no such file. */
static bool read_file(const reader *r, const char *name, const mt_config **out)
{
    char path[MT_LIMIT_PATH];
    struct stat st;
    const int len = snprintf(path, sizeof path, "%s/%s", r->dir, name);
    *out = NULL;
    if (len < 0 || (size_t)len >= sizeof path || stat(path, &st) != 0)
        return true;
    mt_config *config = mt_config_read(path, r->err);
    if (!config)
        return false;
    if (!mt_arena_defer(r->arena, free_config, config)) {
        mt_config_free(config);
        return mt_fail(r->err, MT_E_MEMORY, "no memory for \"%s\"", name);
    }
    *out = config;
    return true;
}

/* The settings of the image or the video processor; NULL where the folder has none. Where several files have them,
   the first of these counts, as in transformers. */
static bool find_settings(const reader *r, const char *file, const char *member, const mt_config **out)
{
    const mt_config *whole;
    if (!read_file(r, "processor_config.json", &whole))
        return false;
    *out = whole ? mt_config_object(whole, member) : NULL;
    return *out || read_file(r, file, out);
}

/* Folders older than video processors, which are Qwen2's, have one file for images and videos. */
static bool find_video_settings(const reader *r, bool older, const mt_config **out)
{
    return find_settings(r, "video_preprocessor_config.json", "video_processor", out) &&
           (*out || !older || read_file(r, "preprocessor_config.json", out));
}

/* key: NULL where the class knows only the edges. */
static bool read_pixels(const reader *r, const mt_config *c, const char *key, const char *edge, int64_t fallback,
                        uint64_t *out)
{
    int64_t value = fallback;
    const mt_config *size = c ? mt_config_object(c, "size") : NULL;
    if (size && !mt_config_int(size, edge, fallback, 1, (int64_t)MAX_PIXELS, &value, r->err))
        return false;
    if (key && size && !mt_config_int(size, key, value, 1, (int64_t)MAX_PIXELS, &value, r->err))
        return false;
    if (key && c && !mt_config_int(c, key, value, 1, (int64_t)MAX_PIXELS, &value, r->err))
        return false;
    *out = (uint64_t)value;
    return true;
}

static double channel_of(const mt_config *c, const char *key, size_t channel, double fallback)
{
    return c && mt_config_array(c, key) == 3 ? mt_config_array_float(c, key, channel, fallback) : fallback;
}

/* As transformers computes it: mean and deviation are scaled to bytes first, in fp32. */
static bool read_levels(const reader *r, const mt_config *c, const double mean[3], const double std[3],
                        mt_pixel_rules *rules)
{
    double factor = 1.0 / 255;
    if (c && !mt_config_float(c, "rescale_factor", factor, 1e-9, 1e9, &factor, r->err))
        return false;
    const bool rescale = !c || mt_config_bool(c, "do_rescale", true);
    const bool normalise = !c || mt_config_bool(c, "do_normalize", true);
    for (size_t i = 0; i < 3; i++) {
        float m = (float)channel_of(c, "image_mean", i, mean[i]), s = (float)channel_of(c, "image_std", i, std[i]);
        if (rescale) {
            m *= (float)(1.0 / factor);
            s *= (float)(1.0 / factor);
        }
        if (normalise && !(s > 0))
            return mt_fail(r->err, MT_E_INVALID, "\"image_std\" has a number that is not more than 0");
        for (size_t byte = 0; byte < 256; byte++)
            rules->levels[i][byte] = normalise ? ((float)byte - m) / s
                                     : rescale ? (float)byte * (float)factor
                                               : (float)byte;
    }
    return true;
}

static bool read_resample(const reader *r, const mt_config *c, mt_resample fallback, mt_resample *out)
{
    int64_t value = fallback;
    if (c && !mt_config_int(c, "resample", fallback, 0, 5, &value, r->err))
        return false;
    if (value != MT_RESAMPLE_NEAREST && value != MT_RESAMPLE_BILINEAR && value != MT_RESAMPLE_BICUBIC)
        return mt_fail(r->err, MT_E_UNSUPPORTED, "\"resample\" is %d; known are 0, 2 (bilinear) and 3 (bicubic)",
                       (int)value);
    *out = (mt_resample)value;
    return true;
}

/* The tower decides how patches are cut; a processor that cuts them otherwise belongs to another model. */
static bool check_patch(const reader *r, const mt_config *c, const char *key, uint32_t wanted)
{
    int64_t value;
    if (!c || !mt_config_has(c, key))
        return true;
    if (!mt_config_int(c, key, wanted, 1, 1 << 16, &value, r->err))
        return false;
    if (value != (int64_t)wanted)
        return mt_fail(r->err, MT_E_INVALID, "the processor's \"%s\" is %d, the tower's %u; they must be of one model",
                       key, (int)value, wanted);
    return true;
}

static bool read_qwen_rules(const reader *r, const mt_config *c, const defaults *d, bool video, mt_pixel_rules *rules)
{
    const mt_processor *p = r->p;
    /* Qwen3's images go through Qwen2's class, whose levels a file has to name to have others. */
    const bool even = d->third && (video || !c), edges = d->third && video;
    return check_patch(r, c, "patch_size", p->patch) && check_patch(r, c, "merge_size", p->merge) &&
           check_patch(r, c, "temporal_patch_size", p->frames) &&
           read_pixels(r, c, edges ? NULL : "min_pixels", "shortest_edge", video ? d->video_min_pixels : d->min_pixels,
                       &rules->min_pixels) &&
           read_pixels(r, c, edges ? NULL : "max_pixels", "longest_edge", video ? d->video_max_pixels : d->max_pixels,
                       &rules->max_pixels) &&
           read_levels(r, c, even ? half : clip_mean, even ? half : clip_std, rules) &&
           read_resample(r, c, MT_RESAMPLE_BICUBIC, &rules->resample);
}

static bool read_sampling(const reader *r, const mt_config *c, bool sample)
{
    mt_processor *p = r->p;
    int64_t least = 4, most = 768, fixed = 0;
    p->fps = 2;
    p->sample = c ? mt_config_bool(c, "do_sample_frames", sample) : sample;
    if (c && (!mt_config_float(c, "fps", 2, 1e-3, 1000, &p->fps, r->err) ||
              !mt_config_int(c, "min_frames", 4, 1, MT_LIMIT_MEDIA_FRAMES, &least, r->err) ||
              !mt_config_int(c, "max_frames", 768, 1, MT_LIMIT_MEDIA_FRAMES, &most, r->err) ||
              !mt_config_int(c, "num_frames", 0, 0, MT_LIMIT_MEDIA_FRAMES, &fixed, r->err)))
        return false;
    p->min_frames = (uint32_t)least;
    p->max_frames = (uint32_t)most;
    p->video_frames = (uint32_t)fixed;
    return true;
}

/* How a special token is written: the tokenizer's settings may rename it. */
static const char *token_text(const reader *r, const mt_config *c, const char *key, const char *fallback)
{
    const mt_config *extra = c ? mt_config_object(c, "extra_special_tokens") : NULL;
    const char *text = extra ? mt_config_string(extra, key, NULL) : NULL;
    if (!text && c)
        text = mt_config_string(c, key, NULL);
    return text && *text ? mt_arena_strdup(r->arena, text) : fallback;
}

static bool read_id(const reader *r, const mt_config *config, const char *key, const char *older, int64_t fallback,
                    const mt_model_spec *spec, uint32_t *out)
{
    int64_t id;
    const char *which = mt_config_has(config, key) || !older ? key : older;
    if (!mt_config_int(config, which, fallback, 0, (int64_t)spec->vocab - 1, &id, r->err))
        return false;
    *out = (uint32_t)id;
    return true;
}

static bool read_qwen(const reader *r, const mt_config *config, const mt_model_spec *spec)
{
    mt_processor *p = r->p;
    const defaults *d = p->names == MT_VISION_QWEN3 ? &qwen3 : &qwen2;
    const int64_t first = spec->state.layers ? 248056 : 151655; /* Qwen3.5 has a vocabulary of its own */
    const mt_config *image, *video, *tokens;
    if (!find_settings(r, "preprocessor_config.json", "image_processor", &image) ||
        !find_video_settings(r, !d->third, &video) || !read_file(r, "tokenizer_config.json", &tokens) ||
        !read_qwen_rules(r, image, d, false, &p->image) || !read_qwen_rules(r, video, d, true, &p->video) ||
        !read_sampling(r, video, d->third) || !read_id(r, config, "image_token_id", NULL, first, spec, &p->image_id) ||
        !read_id(r, config, "video_token_id", NULL, first + 1, spec, &p->video_id))
        return false;
    p->image_marker = p->image_pad = token_text(r, tokens, "image_token", "<|image_pad|>");
    p->video_marker = p->video_pad = token_text(r, tokens, "video_token", "<|video_pad|>");
    p->opening = token_text(r, tokens, "vision_start_token", "<|vision_start|>");
    p->closing = token_text(r, tokens, "vision_end_token", "<|vision_end|>");
    return true;
}

static bool read_gemma(const reader *r, const mt_config *config, const mt_model_spec *spec)
{
    mt_processor *p = r->p;
    const mt_config *image, *tokens;
    const int64_t side = (int64_t)spec->vision->table * spec->vision->patch;
    int64_t height = side, width = side;
    if (!find_settings(r, "preprocessor_config.json", "image_processor", &image) ||
        !read_file(r, "tokenizer_config.json", &tokens) || !read_levels(r, image, half, half, &p->image) ||
        !read_resample(r, image, MT_RESAMPLE_BILINEAR, &p->image.resample) ||
        !read_id(r, config, "image_token_id", "image_token_index", 262144, spec, &p->image_id))
        return false;
    const mt_config *size = image ? mt_config_object(image, "size") : NULL;
    if (size && (!mt_config_int(size, "height", side, 1, 1 << 16, &height, r->err) ||
                 !mt_config_int(size, "width", side, 1, 1 << 16, &width, r->err)))
        return false;
    if (height != side || width != side)
        return mt_fail(r->err, MT_E_INVALID,
                       "the processor makes images of %d x %d pixels, the tower takes %d x %d; they must be of one "
                       "model",
                       (int)width, (int)height, (int)side, (int)side);
    p->image.height = (uint32_t)height;
    p->image.width = (uint32_t)width;
    p->image_marker = p->opening = token_text(r, tokens, "boi_token", "<start_of_image>");
    p->image_pad = token_text(r, tokens, "image_token", "<image_soft_token>");
    p->closing = token_text(r, tokens, "eoi_token", "<end_of_image>");
    return true;
}

mt_processor *mt_processor_read(const char *dir, const mt_config *config, const mt_model_spec *spec, mt_arena *arena,
                                mt_error *err)
{
    const mt_vision_spec *v = spec->vision;
    reader r = {.dir = dir, .arena = arena, .p = mt_arena_alloc(arena, sizeof *r.p), .err = err};
    if (!r.p) {
        mt_fail(err, MT_E_MEMORY, "no memory for the processor");
        return NULL;
    }
    *r.p = (mt_processor){.names = v->names,
                          .patch = v->patch,
                          .frames = v->frames,
                          .merge = v->merge,
                          .tokens_per_second = v->tokens_per_second};
    const bool ok = v->names == MT_VISION_SIGLIP ? read_gemma(&r, config, spec) : read_qwen(&r, config, spec);
    return ok ? r.p : NULL;
}

bool mt_processor_takes_video(const mt_processor *p)
{
    return p->names != MT_VISION_SIGLIP;
}

static size_t least(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

size_t mt_processor_patches(const mt_processor *p)
{
    const uint64_t area = (uint64_t)p->patch * p->patch;
    if (p->names == MT_VISION_SIGLIP)
        return least(p->image.height * (uint64_t)p->image.width / area * (1 + MT_CROPS), MT_LIMIT_PATCHES);
    const uint64_t image = p->image.max_pixels / area, frames = p->max_frames / p->frames + 1;
    const uint64_t video =
        p->names == MT_VISION_QWEN3 ? p->video.max_pixels / area / p->frames : frames * (p->video.max_pixels / area);
    return least(image > video ? image : video, MT_LIMIT_PATCHES);
}
