/* Reads a checkpoint's processor (processor.h). Newer checkpoints have all settings in processor_config.json, older
   ones a file for images and one for videos; what no file says has the default of the class in transformers. */
#include "models/vision_family.h"

#include "models/limits.h"
#include "weights/folder.h"

#define MAX_PIXELS (INT64_C(1) << 32)

static void free_config(void *config)
{
    mt_config_free(config);
}

bool mt_settings_file(const mt_settings *s, const char *name, const mt_config **out)
{
    mt_error why = {0};
    mt_config *config = mt_folder_config(s->dir, name, &why);
    *out = NULL;
    if (!config && why.code != MT_OK)
        *s->err = why;
    if (!config)
        return why.code == MT_OK;
    if (!mt_arena_defer(s->arena, free_config, config)) {
        mt_config_free(config);
        return mt_fail(s->err, MT_E_MEMORY, "no memory for \"%s\"", name);
    }
    *out = config;
    return true;
}

/* Finds the settings of the image or video processor; *out NULL: the folder has none. Where several files have them,
   the order is that of transformers. */
static bool find_settings(const mt_settings *s, const char *file, const char *member, const mt_config **out)
{
    const mt_config *whole;
    if (!mt_settings_file(s, "processor_config.json", &whole))
        return false;
    *out = whole ? mt_config_object(whole, member) : NULL;
    return *out || mt_settings_file(s, file, out);
}

static double channel_of(const mt_config *c, const char *key, size_t channel, double fallback)
{
    return c && mt_config_array(c, key) == 3 ? mt_config_array_float(c, key, channel, fallback) : fallback;
}

static bool read_resample(const mt_settings *s, const mt_config *c, mt_resample fallback, mt_resample *out)
{
    int64_t value = fallback;
    if (c && !mt_config_int(c, "resample", fallback, 0, 5, &value, s->err))
        return false;
    if (value > MT_RESAMPLE_BICUBIC)
        return mt_fail(s->err, MT_E_UNSUPPORTED,
                       "\"resample\" is %d; known are 0, 1 (Lanczos), 2 (bilinear) and 3 (bicubic)", (int)value);
    *out = (mt_resample)value;
    return true;
}

bool mt_settings_same(const mt_settings *s, const mt_config *c, const char *key, uint32_t wanted)
{
    int64_t value = wanted;
    if (c && !mt_config_int(c, key, wanted, 1, 1 << 16, &value, s->err))
        return false;
    return value == (int64_t)wanted ||
           mt_fail(s->err, MT_E_INVALID, "the processor's \"%s\" is %d, the tower's %u; they must be of one model", key,
                   (int)value, wanted);
}

static bool read_pixels(const mt_settings *s, const mt_config *c, const char *key, const char *edge, int64_t fallback,
                        uint64_t *out)
{
    int64_t value = fallback;
    const mt_config *size = c ? mt_config_object(c, "size") : NULL;
    if ((size && !mt_config_int(size, edge, value, 1, MAX_PIXELS, &value, s->err)) ||
        (key && size && !mt_config_int(size, key, value, 1, MAX_PIXELS, &value, s->err)) ||
        (key && c && !mt_config_int(c, key, value, 1, MAX_PIXELS, &value, s->err)))
        return false;
    *out = (uint64_t)value;
    return true;
}

bool mt_settings_pixels(const mt_settings *s, const mt_config *c, int64_t min, int64_t max, bool edges,
                        mt_pixel_rules *rules)
{
    return read_pixels(s, c, edges ? NULL : "min_pixels", "shortest_edge", min, &rules->min_pixels) &&
           read_pixels(s, c, edges ? NULL : "max_pixels", "longest_edge", max, &rules->max_pixels);
}

/* Computes as transformers does: mean and deviation are scaled to bytes first, in fp32. */
bool mt_settings_levels(const mt_settings *s, const mt_config *c, const double mean[3], const double std[3],
                        mt_resample resample, mt_pixel_rules *rules)
{
    double factor = 1.0 / 255;
    if (c && !mt_config_float(c, "rescale_factor", factor, 1e-9, 1e9, &factor, s->err))
        return false;
    const bool rescale = !c || mt_config_bool(c, "do_rescale", true);
    const bool normalise = !c || mt_config_bool(c, "do_normalize", true);
    const float scale = rescale ? (float)(1.0 / factor) : 1;
    for (size_t i = 0; i < 3; i++) {
        const float m = scale * (float)channel_of(c, "image_mean", i, mean[i]);
        const float d = scale * (float)channel_of(c, "image_std", i, std[i]);
        if (normalise && !(d > 0))
            return mt_fail(s->err, MT_E_INVALID, "\"image_std\" has a number that is not more than 0");
        for (size_t byte = 0; byte < 256; byte++)
            rules->levels[i][byte] = normalise ? ((float)byte - m) / d
                                     : rescale ? (float)byte * (float)factor
                                               : (float)byte;
    }
    return read_resample(s, c, resample, &rules->resample);
}

const char *mt_settings_token(const mt_settings *s, const char *key, const char *fallback)
{
    const mt_config *c = s->tokens, *extra = c ? mt_config_object(c, "extra_special_tokens") : NULL;
    const char *text = extra ? mt_config_string(extra, key, NULL) : NULL;
    if (!text && c)
        text = mt_config_string(c, key, NULL);
    return text && *text ? mt_arena_strdup(s->arena, text) : fallback;
}

/* Reads a pad token's id; older configs call it an index. */
static bool read_id(const mt_settings *s, const char *key, const char *older, uint32_t fallback, uint32_t *out)
{
    int64_t id;
    const char *which = mt_config_has(s->config, older) && !mt_config_has(s->config, key) ? older : key;
    if (!mt_config_int(s->config, which, fallback, 0, (int64_t)s->spec->vocab - 1, &id, s->err))
        return false;
    *out = (uint32_t)id;
    return true;
}

static bool read_video_id(const mt_settings *s, const mt_vision_family *f)
{
    if (!f->one_pad)
        return read_id(s, "video_token_id", "video_token_index", f->video_id, &s->p->video_id);
    s->p->video_id = s->p->image_id;
    return true;
}

static bool read_all(mt_settings *s, const mt_vision_family *f)
{
    return find_settings(s, "preprocessor_config.json", "image_processor", &s->image) &&
           (!f->choose || find_settings(s, "video_preprocessor_config.json", "video_processor", &s->video)) &&
           mt_settings_file(s, "tokenizer_config.json", &s->tokens) && f->read_processor(s) &&
           read_id(s, "image_token_id", "image_token_index", f->image_id, &s->p->image_id) &&
           (!f->choose || read_video_id(s, f));
}

mt_processor *mt_processor_read(const char *dir, const mt_config *config, const mt_model_spec *spec, mt_arena *arena,
                                mt_error *err)
{
    const mt_vision_spec *v = spec->vision;
    mt_processor *p = mt_arena_alloc(arena, sizeof(*p));
    if (!p) {
        mt_fail(err, MT_E_MEMORY, "no memory for the processor");
        return NULL;
    }
    *p = (mt_processor){.family = v->family,
                        .patch = v->patch,
                        .frames = v->frames,
                        .merge = v->merge,
                        .tokens_per_second = v->tokens_per_second,
                        .block = v->block,
                        .pixels_last = v->pixels_last,
                        .nested = v->squeezed,
                        .places = v->places};
    mt_settings s = {.dir = dir, .config = config, .spec = spec, .arena = arena, .p = p, .err = err};
    return read_all(&s, v->family) ? p : NULL;
}

size_t mt_processor_patches(const mt_processor *p)
{
    return p->patches < MT_LIMIT_PATCHES ? p->patches : MT_LIMIT_PATCHES;
}

uint64_t mt_processor_pixels(const mt_processor *p)
{
    return (uint64_t)p->patches * p->patch * p->patch;
}
