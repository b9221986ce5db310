/* Qwen2 and Qwen2-MoE. */
#include "models/family.h"
#include "models/qwen.h"
#include "weights/limits.h"

static bool read_qwen2(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.qkv_bias = true;
    mt_layers_repeat(s, layer);
    return mt_qwen_windows_read(s, layer, c, 28, err) && mt_rope_read_one(s, c, 10000, arena, err);
}

const mt_family mt_family_qwen2 = {
    .name = "qwen2",
    .defaults =
        {.vocab = 151936, .hidden = 4096, .layers = 32, .heads = 32, .ffn = 22016, .context = 32768, .eps = 1e-6},
    .read = read_qwen2,
};

static bool read_qwen2_moe(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    mt_qwen_experts experts = {.experts = 60, .top_k = 4, .inner = 1408};
    layer->attn.qkv_bias = mt_config_bool(c, "qkv_bias", true);
    mt_layers_repeat(s, layer);
    return mt_size_read(c, "shared_expert_intermediate_size", 5632, MT_LIMIT_WIDTH, &experts.shared, err) &&
           mt_qwen_windows_read(s, layer, c, 28, err) && mt_qwen_experts_read(s, layer, c, &experts, err) &&
           mt_rope_read_one(s, c, 10000, arena, err);
}

const mt_family mt_family_qwen2_moe = {
    .name = "qwen2_moe",
    .defaults = {.vocab = 151936,
                 .hidden = 2048,
                 .layers = 24,
                 .heads = 16,
                 .kv_heads = 16,
                 .ffn = 5632,
                 .context = 32768,
                 .eps = 1e-6},
    .read = read_qwen2_moe,
};
