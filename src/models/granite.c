/* Granite: Llama with factors on embeddings, scores, results and logits. */
#include "models/family.h"

static bool read_granite(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    double embedding, scores, result, logits;
    if (!mt_config_float(c, "embedding_multiplier", 1, 1e-6, 1e6, &embedding, err) ||
        !mt_config_float(c, "attention_multiplier", 1, 1e-6, 1e6, &scores, err) ||
        !mt_config_float(c, "residual_multiplier", 1, 1e-6, 1e6, &result, err) ||
        !mt_config_float(c, "logits_scaling", 1, 1e-6, 1e6, &logits, err))
        return false;
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    layer->attn.scale = (float)scores;
    layer->mlp.bias = mt_config_bool(c, "mlp_bias", false);
    layer->residual = result == 1 ? 0 : (float)result;
    mt_layers_repeat(s, layer);
    s->embed_scale = (float)embedding;
    s->logit_scale = logits == 1 ? 0 : (float)(1 / logits);
    return mt_rope_read_one(s, c, 10000, arena, err);
}

const mt_family mt_family_granite = {
    .name = "granite",
    .defaults = {.vocab = 32000, .hidden = 4096, .layers = 32, .heads = 32, .ffn = 11008, .context = 2048, .eps = 1e-6},
    .read = read_granite,
};
