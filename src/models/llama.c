/* Llama: nothing but what all families have. Seed-OSS is a Llama whose projections have biases. */
#include "models/family.h"

static bool read_llama(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    layer->mlp.bias = mt_config_bool(c, "mlp_bias", false);
    mt_layers_repeat(s, layer);
    return mt_rope_read_one(s, c, 10000, arena, err);
}

const mt_family mt_family_llama = {
    .name = "llama",
    .defaults = {.vocab = 32000, .hidden = 4096, .layers = 32, .heads = 32, .ffn = 11008, .context = 2048, .eps = 1e-6},
    .read = read_llama,
};

static bool read_seed_oss(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.qkv_bias = mt_config_bool(c, "attention_bias", true);
    layer->attn.o_bias = mt_config_bool(c, "attention_out_bias", false);
    layer->mlp.bias = mt_config_bool(c, "mlp_bias", false);
    mt_layers_repeat(s, layer);
    return mt_rope_read_one(s, c, 10000, arena, err);
}

const mt_family mt_family_seed_oss = {
    .name = "seed_oss",
    .defaults = {.vocab = 155136,
                 .hidden = 4096,
                 .layers = 64,
                 .heads = 80,
                 .kv_heads = 8,
                 .head_dim = 128,
                 .ffn = 27648,
                 .context = 524288,
                 .eps = 1e-6},
    .read = read_seed_oss,
};
