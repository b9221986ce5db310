/* Qwen2-VL, Qwen2.5-VL and Qwen3-VL: the text models of Qwen2 and Qwen3 with M-RoPE. Their vision is vision_qwen*.c. */
#include "models/family.h"
#include "models/qwen.h"

/* How many frequencies turn with time, height and width, where "mrope_section" does not say. */
static const uint32_t sections2[3] = {16, 24, 24}, sections3[3] = {24, 20, 20};

static bool read_qwen2_vl(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.qkv_bias = true;
    mt_layers_repeat(s, layer);
    return mt_qwen_windows_read(s, layer, c, 80, err) && mt_rope_read_one(s, c, 1e6, arena, err) &&
           mt_rope_axes_read(s, c, sections2, false, arena, err);
}

static bool read_qwen3_vl(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.qk_norm = MT_QK_NORM_HEADS;
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    mt_layers_repeat(s, layer);
    return mt_rope_read_one(s, c, 5e5, arena, err) && mt_rope_axes_read(s, c, sections3, true, arena, err);
}

/* The numbers are those of transformers' class; its router always renormalises. */
static bool read_qwen3_vl_moe(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena,
                              mt_error *err)
{
    static const mt_qwen_experts defaults = {.experts = 60, .top_k = 4, .inner = 1408, .always = true};
    return read_qwen3_vl(s, layer, c, arena, err) && mt_qwen_experts_read(s, layer, c, &defaults, err);
}

#define QWEN2_VL_DEFAULTS                                                                                          \
    {                                                                                                              \
        .vocab = 152064, .hidden = 8192, .layers = 80, .heads = 64, .kv_heads = 8, .ffn = 29568, .context = 32768, \
        .eps = 1e-5                                                                                                \
    }

const mt_family mt_family_qwen2_vl = {
    .name = "qwen2_vl", .defaults = QWEN2_VL_DEFAULTS, .read = read_qwen2_vl, .vision = &mt_vision_qwen2};

const mt_family mt_family_qwen2_5_vl = {
    .name = "qwen2_5_vl", .defaults = QWEN2_VL_DEFAULTS, .read = read_qwen2_vl, .vision = &mt_vision_qwen2_5};

#define QWEN3_VL_DEFAULTS(...)                                       \
    {                                                                \
        .vocab = 151936, .context = 128000, .eps = 1e-6, __VA_ARGS__ \
    }

const mt_family mt_family_qwen3_vl = {
    .name = "qwen3_vl",
    .defaults = QWEN3_VL_DEFAULTS(.hidden = 4096, .layers = 32, .heads = 32, .head_dim = 128, .ffn = 22016),
    .read = read_qwen3_vl,
    .vision = &mt_vision_qwen3};

const mt_family mt_family_qwen3_vl_moe = {.name = "qwen3_vl_moe",
                                          .defaults =
                                              QWEN3_VL_DEFAULTS(.hidden = 2048, .layers = 24, .heads = 16, .ffn = 5632),
                                          .read = read_qwen3_vl_moe,
                                          .vision = &mt_vision_qwen3};
