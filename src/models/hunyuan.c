/* Hunyuan 3: a dense first layer, then experts by sigmoids beside one that every row uses. */
#include <string.h>

#include "device/limits.h"
#include "models/family.h"
#include "weights/limits.h"

static const mt_tensor_names names = {.norm = "norm",
                                      .attn_norm = "input_layernorm",
                                      .mlp_norm = "post_attention_layernorm",
                                      .q_norm = "self_attn.q_norm",
                                      .k_norm = "self_attn.k_norm",
                                      .o = "self_attn.o_proj",
                                      .gate = "mlp.gate_proj",
                                      .up = "mlp.up_proj",
                                      .down = "mlp.down_proj",
                                      .correction = "mlp.expert_bias"};

static bool read_hy_v3(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    static const char types[] = "mlp_layer_types";
    mt_moe_spec moe = {.correction = true, .routing = {.kind = MT_ROUTE_SIGMOID, .renormalise = true}};
    const size_t listed = mt_config_array(c, types);
    int64_t shared;
    double scaling;
    if (!mt_size_read(c, "num_experts", 192, MT_LIMIT_EXPERTS, &moe.experts, err) ||
        !mt_size_read(c, "num_experts_per_tok", 8, MT_LIMIT_EXPERTS_PER_TOKEN, &moe.top_k, err) ||
        !mt_size_read(c, "moe_intermediate_size", 1536, MT_LIMIT_WIDTH, &moe.ffn, err) ||
        !mt_config_int(c, "num_shared_experts", 1, 1, 64, &shared, err) ||
        !mt_config_float(c, "router_scaling_factor", 2.826, 0, 1e6, &scaling, err))
        return false;
    if (moe.top_k > moe.experts)
        return mt_fail(err, MT_E_INVALID, "\"num_experts_per_tok\" is %u but there are only %u experts", moe.top_k,
                       moe.experts);
    if (listed && listed < s->layers)
        return mt_fail(err, MT_E_INVALID, "\"%s\" has %zu entries for %u layers", types, listed, s->layers);
    moe.routing.scaling = (float)scaling;
    moe.shared_ffn = (uint32_t)shared * moe.ffn;
    s->names = &names;
    layer->attn.qk_norm = MT_QK_NORM_HEADS;
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    mt_layers_repeat(s, layer);
    for (size_t i = 0; i < s->layers; i++) {
        const char *type = listed ? mt_config_array_string(c, types, i) : NULL;
        layer[i].sparse = listed ? type && strcmp(type, "sparse") == 0 : i > 0;
        layer[i].moe = moe;
    }
    return mt_rope_read_one(s, c, 11158840, arena, err);
}

const mt_family mt_family_hy_v3 = {.name = "hy_v3",
                                   .defaults = {.vocab = 120832,
                                                .hidden = 4096,
                                                .layers = 80,
                                                .heads = 64,
                                                .kv_heads = 8,
                                                .head_dim = 128,
                                                .ffn = 13312,
                                                .context = 131072,
                                                .eps = 1e-5},
                                   .read = read_hy_v3};
