/* The Qwen families that see. Their text models are those of Qwen2 and Qwen3 with M-RoPE. */
#include <string.h>

#include "models/family.h"
#include "models/qwen.h"
#include "models/vision.h"

static const uint32_t sections2[3] = {16, 24, 24}, sections3[3] = {24, 20, 20};

static bool read_qwen2_vl(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.qkv_bias = true;
    mt_layers_repeat(s, layer);
    return mt_qwen_windows_read(s, layer, c, err) && mt_rope_read_one(s, c, 1e6, arena, err) &&
           mt_rope_axes_read(s, c, sections2, false, arena, err);
}

static bool read_qwen3_vl(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.qk_norm = true;
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    mt_layers_repeat(s, layer);
    return mt_rope_read_one(s, c, 5e5, arena, err) && mt_rope_axes_read(s, c, sections3, true, arena, err);
}

static bool read_qwen3_vl_moe(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena,
                              mt_error *err)
{
    static const mt_qwen_experts defaults = {.experts = 60, .top_k = 4, .inner = 1408, .always = true};
    return read_qwen3_vl(s, layer, c, arena, err) && mt_qwen_experts_read(s, layer, c, &defaults, err);
}

static bool read_activation(mt_vision_spec *v, const mt_config *c, const char *fallback, mt_error *err)
{
    static const struct {
        const char *name;
        mt_activation act;
    } known[] = {{"silu", MT_ACT_SILU},
                 {"gelu_pytorch_tanh", MT_ACT_GELU_TANH},
                 {"quick_gelu", MT_ACT_QUICK_GELU},
                 {"gelu", MT_ACT_GELU}};
    const char *name = mt_config_string(c, "hidden_act", fallback);
    for (size_t i = 0; i < MT_COUNT(known); i++) {
        if (strcmp(known[i].name, name) == 0) {
            v->activation = known[i].act;
            return true;
        }
    }
    return mt_fail(err, MT_E_UNSUPPORTED,
                   "\"vision_config.hidden_act\" is \"%.64s\"; known are silu, gelu, gelu_pytorch_tanh and quick_gelu",
                   name);
}

/* What all three towers have. */
static bool read_tower(mt_vision_spec *v, const mt_model_spec *s, const mt_config *c, mt_error *err)
{
    v->eps = 1e-6f;
    v->out = s->hidden;
    v->rotary = true;
    v->tokens_per_second = 1;
    if (!mt_size_read(c, "spatial_merge_size", 2, 8, &v->merge, err) ||
        !mt_size_read(c, "temporal_patch_size", 2, 8, &v->frames, err) ||
        !mt_size_read(c, "num_heads", 16, MT_LIMIT_WIDTH, &v->heads, err))
        return false;
    if (v->hidden % v->heads || v->hidden / v->heads % 4)
        return mt_fail(err, MT_E_INVALID,
                       "\"vision_config.hidden_size\" is %u for %u heads; a head must have a multiple of 4 elements",
                       v->hidden, v->heads);
    v->head_dim = v->hidden / v->heads;
    return true;
}

static bool read_vision2(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                         mt_error *err)
{
    const mt_config *c = mt_config_object(config, "vision_config");
    double ratio;
    (void)arena;
    v->names = MT_VISION_QWEN2;
    if (!mt_size_read(c, "embed_dim", 1280, MT_LIMIT_WIDTH, &v->hidden, err) || !read_tower(v, s, c, err) ||
        !mt_size_read(c, "depth", 32, MT_LIMIT_LAYERS, &v->layers, err) ||
        !mt_config_float(c, "mlp_ratio", 4, 0.1, 64, &ratio, err) ||
        !mt_size_read(c, "patch_size", 14, 256, &v->patch, err))
        return false;
    v->ffn = (uint32_t)((double)v->hidden * ratio);
    return read_activation(v, c, "quick_gelu", err);
}

static bool read_windows(mt_vision_spec *v, const mt_config *c, mt_arena *arena, mt_error *err)
{
    static const char key[] = "fullatt_block_indexes";
    uint32_t pixels;
    bool *full = mt_arena_alloc(arena, v->layers * sizeof *full);
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

static bool read_vision2_5(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                           mt_error *err)
{
    const mt_config *c = mt_config_object(config, "vision_config");
    v->names = MT_VISION_QWEN2_5;
    v->rms = v->gated = true;
    return mt_size_read(c, "hidden_size", 3584, MT_LIMIT_WIDTH, &v->hidden, err) && read_tower(v, s, c, err) &&
           mt_size_read(c, "depth", 32, MT_LIMIT_LAYERS, &v->layers, err) &&
           mt_size_read(c, "intermediate_size", 3420, MT_LIMIT_WIDTH, &v->ffn, err) &&
           mt_size_read(c, "patch_size", 14, 256, &v->patch, err) &&
           mt_size_read(c, "tokens_per_second", 4, 1 << 16, &v->tokens_per_second, err) &&
           read_activation(v, c, "silu", err) && read_windows(v, c, arena, err);
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

static bool read_table(mt_vision_spec *v, const mt_config *c, mt_error *err)
{
    uint32_t positions;
    if (!mt_size_read(c, "num_position_embeddings", 2304, MT_LIMIT_WIDTH, &positions, err))
        return false;
    while ((v->table + 1) * (v->table + 1) <= positions)
        v->table++;
    if (v->table * v->table != positions)
        return mt_fail(err, MT_E_INVALID, "\"num_position_embeddings\" is %u, which is no square", positions);
    return true;
}

bool mt_qwen_tower_read(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                        mt_error *err)
{
    const mt_config *c = mt_config_object(config, "vision_config");
    (void)arena;
    v->names = MT_VISION_QWEN3;
    v->patch_bias = true;
    return mt_size_read(c, "hidden_size", 1152, MT_LIMIT_WIDTH, &v->hidden, err) && read_tower(v, s, c, err) &&
           mt_size_read(c, "depth", 27, MT_LIMIT_LAYERS, &v->layers, err) &&
           mt_size_read(c, "intermediate_size", 4304, MT_LIMIT_WIDTH, &v->ffn, err) &&
           mt_size_read(c, "patch_size", 16, 256, &v->patch, err) && read_activation(v, c, "gelu_pytorch_tanh", err) &&
           read_table(v, c, err);
}

static bool read_vision3(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                         mt_error *err)
{
    return mt_qwen_tower_read(v, s, config, arena, err) && read_taps(v, mt_config_object(config, "vision_config"), err);
}

#define QWEN2_VL_DEFAULTS                                                                                          \
    {                                                                                                              \
        .vocab = 152064, .hidden = 8192, .layers = 80, .heads = 64, .kv_heads = 8, .ffn = 29568, .context = 32768, \
        .eps = 1e-5, .activation_key = "hidden_act", .activation = "silu"                                          \
    }

const mt_family mt_family_qwen2_vl = {.name = "qwen2_vl",
                                      .model_type = "qwen2_vl",
                                      .defaults = QWEN2_VL_DEFAULTS,
                                      .read = read_qwen2_vl,
                                      .read_vision = read_vision2};

const mt_family mt_family_qwen2_5_vl = {.name = "qwen2_5_vl",
                                        .model_type = "qwen2_5_vl",
                                        .defaults = QWEN2_VL_DEFAULTS,
                                        .read = read_qwen2_vl,
                                        .read_vision = read_vision2_5};

#define QWEN3_VL_DEFAULTS(...)                                                                                 \
    {                                                                                                          \
        .vocab = 151936, .context = 128000, .eps = 1e-6, .activation_key = "hidden_act", .activation = "silu", \
        __VA_ARGS__                                                                                            \
    }

const mt_family mt_family_qwen3_vl = {
    .name = "qwen3_vl",
    .model_type = "qwen3_vl",
    .defaults = QWEN3_VL_DEFAULTS(.hidden = 4096, .layers = 32, .heads = 32, .head_dim = 128, .ffn = 22016),
    .read = read_qwen3_vl,
    .read_vision = read_vision3};

const mt_family mt_family_qwen3_vl_moe = {.name = "qwen3_vl_moe",
                                          .model_type = "qwen3_vl_moe",
                                          .defaults =
                                              QWEN3_VL_DEFAULTS(.hidden = 2048, .layers = 24, .heads = 16, .ffn = 5632),
                                          .read = read_qwen3_vl_moe,
                                          .read_vision = read_vision3};
