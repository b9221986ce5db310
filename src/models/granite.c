/* Granite: Llama with factors on embeddings, scores, results and logits. Granite 4 is the same with layers of Mamba2 in
   the place of most attention, and with experts beside an MLP that every token gets, or with that MLP alone. */
#include <string.h>

#include "device/limits.h"
#include "models/family.h"
#include "sample/limits.h"
#include "weights/limits.h"

/* Reads the factors. */
static bool read_factors(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    double embedding, scores, result, logits;
    if (!mt_config_float(c, "embedding_multiplier", 1, 1e-6, 1e6, &embedding, err) ||
        !mt_config_float(c, "attention_multiplier", 1, 1e-6, 1e6, &scores, err) ||
        !mt_config_float(c, "residual_multiplier", 1, 1e-6, 1e6, &result, err) ||
        !mt_config_float(c, "logits_scaling", 1, 1e-6, 1e6, &logits, err))
        return false;
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    layer->attn.scale = (float)scores;
    layer->residual = result == 1 ? 0 : (float)result;
    s->embed_scale = (float)embedding;
    s->logit_scale = logits == 1 ? 0 : (float)(1 / logits);
    return true;
}

static bool read_granite(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    if (!read_factors(s, layer, c, err))
        return false;
    layer->mlp.bias = mt_config_bool(c, "mlp_bias", false);
    mt_layers_repeat(s, layer);
    return mt_rope_read_one(s, c, 10000, arena, err);
}

static const mt_tensor_names hybrid_names = {.norm = "norm",
                                             .attn_norm = "input_layernorm",
                                             .mlp_norm = "post_attention_layernorm",
                                             .o = "self_attn.o_proj",
                                             .gate = "shared_mlp.gate_proj",
                                             .up = "shared_mlp.up_proj",
                                             .down = "shared_mlp.output_linear",
                                             .gate_up = "shared_mlp.input_linear",
                                             .mlp = "block_sparse_moe"};

/* An expert is as wide as the config says an MLP is; the MLP for every token has a width of its own. */
static bool read_mlps(mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    int64_t experts, top_k, shared;
    if (!mt_config_int(c, "num_local_experts", 8, 0, MT_LIMIT_EXPERTS, &experts, err) ||
        !mt_config_int(c, "num_experts_per_tok", 2, 0, MT_LIMIT_EXPERTS_PER_TOKEN, &top_k, err) ||
        !mt_config_int(c, "shared_intermediate_size", 1024, 1, MT_LIMIT_WIDTH, &shared, err))
        return false;
    if (experts && (top_k < 1 || top_k > experts))
        return mt_fail(err, MT_E_INVALID, "\"num_experts_per_tok\" is %d with %d experts", (int)top_k, (int)experts);
    layer->sparse = experts > 0;
    if (layer->sparse)
        layer->moe = (mt_moe_spec){.experts = (uint32_t)experts,
                                   .top_k = (uint32_t)top_k,
                                   .ffn = layer->mlp.ffn,
                                   .routing.renormalise = true,
                                   .shared_ffn = (uint32_t)shared};
    layer->mlp.ffn = (uint32_t)shared;
    return true;
}

/* Published configs call the list of layers "layer_types"; one that is saved again may say "layers_block_type". */
static bool read_layers(const mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    const char *key = mt_config_has(c, "layer_types") ? "layer_types" : "layers_block_type";
    const size_t listed = mt_config_array(c, key);
    if (mt_config_has(c, key) && listed < s->layers)
        return mt_fail(err, MT_E_INVALID, "\"%s\" has %zu entries for %u layers", key, listed, s->layers);
    for (size_t i = 0; i < s->layers; i++) {
        const char *type = listed ? mt_config_array_string(c, key, i) : "mamba";
        layer[i].kind = type && strcmp(type, "mamba") == 0 ? MT_LAYER_RECURRENT : MT_LAYER_ATTENTION;
    }
    return true;
}

static bool read_hybrid(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    int64_t expand;
    if (!mt_config_int(c, "mamba_expand", 2, 1, MT_LIMIT_WIDTH / s->hidden, &expand, err))
        return false;
    const mt_mamba_keys keys = {.heads = "mamba_n_heads",
                                .head_dim = "mamba_d_head",
                                .groups = "mamba_n_groups",
                                .state = "mamba_d_state",
                                .taps = "mamba_d_conv",
                                .conv_bias = "mamba_conv_bias",
                                .usual_heads = 128,
                                .usual_groups = 1,
                                .usual_state = 256,
                                .width = (uint32_t)expand * s->hidden};
    if (!read_factors(s, layer, c, err) || !read_mlps(layer, c, err) || !mt_mamba_read(s, c, &keys, err))
        return false;
    s->names = &hybrid_names;
    s->mamba.norm = true;
    s->mamba.groups = 1; /* the norm is over all of them */
    s->mamba.in_bias = s->mamba.out_bias = mt_config_bool(c, "mamba_proj_bias", false);
    const bool turned = strcmp(mt_config_string(c, "position_embedding_type", ""), "rope") == 0;
    layer->attn.rope = turned ? 0 : MT_NO_ROPE;
    mt_layers_repeat(s, layer);
    return read_layers(s, layer, c, err) && (!turned || mt_rope_read_one(s, c, 10000, arena, err));
}

const mt_family mt_family_granite = {
    .name = "granite",
    .defaults = {.vocab = 32000, .hidden = 4096, .layers = 32, .heads = 32, .ffn = 11008, .context = 2048, .eps = 1e-6},
    .read = read_granite,
};

const mt_family mt_family_granitemoehybrid = {
    .name = "granitemoehybrid",
    .defaults = {.vocab = 32000, .hidden = 4096, .layers = 32, .heads = 32, .ffn = 11008, .context = 2048, .eps = 1e-6},
    .read = read_hybrid,
};
