/* The vision of Qwen3-VL, and of Qwen3.5, which has no DeepStack and another vocabulary. */
#include <math.h>
#include <stdio.h>

#include "models/family.h"
#include "models/qwen.h"
#include "weights/limits.h"

static bool read_table(mt_vision_spec *v, const mt_config *c, mt_error *err)
{
    uint32_t positions;
    if (!mt_size_read(c, "num_position_embeddings", 2304, MT_LIMIT_WIDTH, &positions, err))
        return false;
    v->table = (uint32_t)sqrt(positions);
    if (v->table * v->table != positions)
        return mt_fail(err, MT_E_INVALID, "\"num_position_embeddings\" is %u, which is no square", positions);
    return true;
}

static bool read_tower(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                       mt_error *err)
{
    static const mt_qwen_tower defaults = {.hidden_key = "hidden_size",
                                           .hidden = 1152,
                                           .layers = 27,
                                           .ffn = 4304,
                                           .patch = 16,
                                           .activation = "gelu_pytorch_tanh"};
    const mt_config *c = mt_config_object(config, "vision_config");
    (void)arena;
    v->patch_bias = true;
    return mt_qwen_tower_read(v, s, c, &defaults, err) && read_table(v, c, err);
}

static bool read_taps(mt_vision_spec *v, const mt_config *c, mt_error *err)
{
    static const char key[] = "deepstack_visual_indexes";
    static const int64_t usual[] = {8, 16, 24};
    const bool given = mt_config_has(c, key);
    const size_t count = given ? mt_config_array(c, key) : MT_COUNT(usual);
    if (count > MT_VISION_TAPS)
        return mt_fail(err, MT_E_UNSUPPORTED, "\"%s\" names %zu layers; at most %d are supported", key, count,
                       MT_VISION_TAPS);
    for (size_t i = 0; i < count; i++) {
        const int64_t layer = given ? mt_config_array_int(c, key, i, -1) : usual[i];
        if (layer < 0 || layer >= (int64_t)v->layers || (i > 0 && layer <= (int64_t)v->taps[i - 1]))
            return mt_fail(err, MT_E_INVALID, "\"%s\" must name ascending layers below %u", key, v->layers);
        v->taps[i] = (uint32_t)layer;
    }
    v->tap_count = (uint32_t)count;
    return true;
}

static bool read_tapped_tower(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                              mt_error *err)
{
    return read_tower(v, s, config, arena, err) && read_taps(v, mt_config_object(config, "vision_config"), err);
}

static void bind(mt_tower_binder *t, mt_vision_weights *w)
{
    static const char *const names[3] = {"norm", "linear_fc1", "linear_fc2"};
    mt_qwen_merger_bind(t, "vision.merger.", names, false, &w->merger);
    for (size_t i = 0; i < t->spec->tap_count; i++) {
        char prefix[64];
        snprintf(prefix, sizeof(prefix), "vision.deepstack_merger_list.%zu.", i);
        mt_qwen_merger_bind(t, prefix, names, true, &w->tap[i]);
    }
}

static bool read_processor(const mt_settings *s)
{
    return mt_qwen_processor_read(s, 32, true);
}

/* Evenly from the first frame to the last. A number that is asked for may be below the least that a rate gives, and
   above the video's frames: then some frames are used more than once. */
static void choose(mt_frame_choice *c, double wanted, bool fixed)
{
    const double total = (double)c->total;
    const double least = fixed ? 1 : fmin(c->p->min_frames, total);
    const double most = fixed ? c->p->max_frames : fmin(c->p->max_frames, total);
    c->count = (uint32_t)fmin(fmax(floor(wanted), least), most);
    const double step = c->count > 1 ? (total - 1) / (c->count - 1) : 0;
    for (uint32_t i = 0; i < c->count; i++)
        c->index[i] = i + 1 == c->count && i > 0 ? c->total - 1 : (int64_t)rint(i * step);
}

/* Each view of a video follows its time. */
static bool text(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out)
{
    bool ok = picture->video || mt_buf_printf(out, "%s", p->image_pad);
    (void)number;
    for (uint32_t i = 0; ok && picture->video && i < picture->views; i++)
        ok = mt_buf_printf(out, "<%.1f seconds>%s%s%s", picture->times[i], p->opening, p->video_pad, p->closing);
    return ok;
}

#define EYES(tower, first)                                                                                     \
    {                                                                                                          \
        .read_tower = tower,                                                                                   \
        .names = MT_QWEN_NAMES(.table = "vision.pos_embed", .up = "mlp.linear_fc1", .down = "mlp.linear_fc2"), \
        .bind = bind, .read_processor = read_processor, .image_id = first, .video_id = (first) + 1,            \
        .size = mt_pixel_size_fit, .choose = choose, .text = text, .run = mt_picture_view_tokens, .grid = true \
    }

const mt_vision_family mt_vision_qwen3 = EYES(read_tapped_tower, 151655);
const mt_vision_family mt_vision_qwen3_5 = EYES(read_tower, 248056);
