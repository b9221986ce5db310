/* Qwen3 and Qwen3-MoE. */
#include "models/family.h"
#include "models/qwen.h"

static bool read_qwen3(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.qk_norm = MT_QK_NORM_HEADS;
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    mt_layers_repeat(s, layer);
    return mt_qwen_windows_read(s, layer, c, 28, err) && mt_rope_read_one(s, c, 10000, arena, err);
}

/* Where windows are switched on, every layer has one. */
static bool read_qwen3_moe(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.qk_norm = MT_QK_NORM_HEADS;
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    if (!mt_qwen_window_read(c, &layer->attn.window, err))
        return false;
    mt_layers_repeat(s, layer);
    return mt_qwen_experts_read(s, layer, c, NULL, err) && mt_rope_read_one(s, c, 10000, arena, err);
}

const mt_family mt_family_qwen3 = {
    .name = "qwen3",
    .defaults = {.vocab = 151936,
                 .hidden = 4096,
                 .layers = 32,
                 .heads = 32,
                 .head_dim = 128,
                 .ffn = 22016,
                 .context = 32768,
                 .eps = 1e-6},
    .read = read_qwen3,
};

const mt_family mt_family_qwen3_moe = {
    .name = "qwen3_moe",
    .defaults = {.vocab = 151936,
                 .hidden = 2048,
                 .layers = 24,
                 .heads = 32,
                 .kv_heads = 4,
                 .ffn = 6144,
                 .context = 32768,
                 .eps = 1e-6},
    .read = read_qwen3_moe,
};
