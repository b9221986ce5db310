/* The vision of Qwen2-VL and Qwen2.5-VL. */
#include <math.h>

#include "models/family.h"
#include "models/qwen.h"

static bool read_tower2(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                        mt_error *err)
{
    static const mt_qwen_tower defaults = {
        .hidden_key = "embed_dim", .hidden = 1280, .layers = 32, .patch = 14, .activation = "quick_gelu"};
    (void)arena;
    return mt_qwen_tower_read(v, s, mt_config_object(config, "vision_config"), &defaults, err);
}

static bool read_windows(mt_vision_spec *v, const mt_config *c, mt_arena *arena, mt_error *err)
{
    static const char key[] = "fullatt_block_indexes";
    uint32_t pixels;
    bool *full = mt_arena_alloc(arena, v->layers * sizeof(*full));
    if (!full)
        return mt_fail(err, MT_E_MEMORY, "no memory for the layers of the tower");
    if (!mt_size_read(c, "window_size", 112, 1 << 20, &pixels, err))
        return false;
    v->window = pixels / v->patch / v->merge * v->merge;
    if (v->window == 0)
        return mt_fail(err, MT_E_INVALID, "\"vision_config.window_size\" is %u, which is less than %u pixels", pixels,
                       v->patch * v->merge);
    v->full = full;
    for (size_t l = 0; l < v->layers && !mt_config_has(c, key); l++)
        full[l] = l % 8 == 7 && l < 32;
    for (size_t i = 0; i < mt_config_array(c, key); i++) {
        const int64_t layer = mt_config_array_int(c, key, i, -1);
        if (layer >= 0 && layer < (int64_t)v->layers)
            full[layer] = true;
    }
    return true;
}

static bool read_tower2_5(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                          mt_error *err)
{
    static const mt_qwen_tower defaults = {
        .hidden_key = "hidden_size", .hidden = 3584, .layers = 32, .ffn = 3420, .patch = 14, .activation = "silu"};
    const mt_config *c = mt_config_object(config, "vision_config");
    v->rms = v->gated = true;
    return mt_qwen_tower_read(v, s, c, &defaults, err) &&
           mt_size_read(c, "tokens_per_second", 4, 1 << 16, &v->tokens_per_second, err) &&
           read_windows(v, c, arena, err);
}

static void bind(mt_tower_binder *t, mt_vision_weights *w)
{
    mt_qwen_merger_bind(t, "vision.merger.", (const char *[]){"ln_q", "mlp.0", "mlp.2"}, false, &w->merger);
}

/* Folders older than video processors have one file for images and videos. */
static bool read_processor(const mt_settings *s)
{
    mt_settings own = *s;
    return (own.video || mt_settings_file(s, "preprocessor_config.json", &own.video)) &&
           mt_qwen_processor_read(&own, 28, false);
}

/* The first frame of each stretch of equal length; the number of frames fills whole patches. */
static void choose(mt_frame_choice *c, double wanted, bool fixed)
{
    const double frames = c->p->frames, total = (double)c->total;
    const double most = floor(fmin(c->p->max_frames, total) / frames) * frames;
    wanted = fixed ? rint(wanted / frames) * frames : fmax(wanted, c->p->min_frames);
    const double n = fmax(floor(fmin(wanted, most) / frames) * frames, 1), step = total / n;
    c->count = (uint32_t)fmin(fmax(ceil(total / step), 1), c->p->max_frames + 1);
    for (uint32_t i = 0; i < c->count; i++)
        c->index[i] = (int64_t)fmin((double)(float)(i * step), total - 1);
}

#define EYES(tower, ...)                                                                                          \
    {                                                                                                             \
        .read_tower = tower, .names = MT_QWEN_NAMES(__VA_ARGS__), .bind = bind, .read_processor = read_processor, \
        .image_id = 151655, .video_id = 151656, .size = mt_pixel_size_fit, .choose = choose, .grid = true         \
    }

const mt_vision_family mt_vision_qwen2 = EYES(read_tower2, .up = "mlp.fc1", .down = "mlp.fc2");
const mt_vision_family mt_vision_qwen2_5 =
    EYES(read_tower2_5, .gate = "mlp.gate_proj", .up = "mlp.up_proj", .down = "mlp.down_proj");
