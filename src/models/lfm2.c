/* LFM2: gated short convolutions between attention layers. Of a convolution only its last inputs are kept as state. */
#include <string.h>

#include "device/limits.h"
#include "models/family.h"
#include "weights/limits.h"

static const mt_tensor_names names = {.norm = "embedding_norm",
                                      .attn_norm = "operator_norm",
                                      .mlp_norm = "ffn_norm",
                                      .q_norm = "self_attn.q_layernorm",
                                      .k_norm = "self_attn.k_layernorm",
                                      .o = "self_attn.out_proj",
                                      .gate = "feed_forward.w1",
                                      .up = "feed_forward.w3",
                                      .down = "feed_forward.w2",
                                      .mlp = "feed_forward",
                                      .correction = "feed_forward.expert_bias"};

/* Reads the MLP's width. The config may give the width of an MLP without a gate: then two thirds of it are used, times
   a factor, rounded up to a multiple. */
static bool read_ffn(mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    double factor;
    int64_t ffn, step;
    if (!mt_config_int(c, "block_ff_dim", layer->mlp.ffn, 1, MT_LIMIT_WIDTH, &ffn, err) ||
        !mt_config_int(c, "block_multiple_of", 256, 1, MT_LIMIT_WIDTH, &step, err) ||
        !mt_config_float(c, "block_ffn_dim_multiplier", 1, 0, 1e3, &factor, err))
        return false;
    if (mt_config_bool(c, "block_auto_adjust_ff_dim", true)) {
        ffn = (int64_t)((double)(2 * ffn) / 3);
        if (mt_config_has(c, "block_ffn_dim_multiplier") || !mt_config_names(c, "block_ffn_dim_multiplier"))
            ffn = ((int64_t)(factor * (double)ffn) + step - 1) / step * step;
    }
    if (ffn < 1 || ffn > MT_LIMIT_WIDTH)
        return mt_fail(err, MT_E_INVALID, "the MLP comes to %lld elements, which is not between 1 and %d",
                       (long long)ffn, MT_LIMIT_WIDTH);
    layer->mlp.ffn = (uint32_t)ffn;
    return true;
}

static bool listed(const mt_config *c, const char *key, size_t layer)
{
    const size_t n = mt_config_array(c, key);
    for (size_t i = 0; i < n; i++)
        if (mt_config_array_int(c, key, i, -1) == (int64_t)layer)
            return true;
    return false;
}

/* Reads which layers have attention: from a list of types, or of indices; where there is neither, all have it. */
static bool read_layers(const mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    static const char types[] = "layer_types", attend[] = "full_attn_idxs";
    const bool typed = mt_config_has(c, types);
    if (typed && mt_config_array(c, types) < s->layers)
        return mt_fail(err, MT_E_INVALID, "\"%s\" has %zu entries for %u layers", types, mt_config_array(c, types),
                       s->layers);
    for (size_t i = 0; i < s->layers; i++) {
        const char *type = typed ? mt_config_array_string(c, types, i) : NULL;
        const bool attends =
            typed ? type && strcmp(type, "full_attention") == 0 : !mt_config_has(c, attend) || listed(c, attend, i);
        if (typed && !attends && (!type || strcmp(type, "conv") != 0))
            return mt_fail(err, MT_E_UNSUPPORTED, "layer %zu has the type \"%.64s\"; known are full_attention and conv",
                           i, type ? type : "");
        layer[i].kind = attends ? MT_LAYER_ATTENTION : MT_LAYER_RECURRENT;
    }
    return true;
}

static bool read_any(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    double eps;
    int64_t taps;
    if (!mt_config_float(c, "norm_eps", 1e-5, 0, 1, &eps, err) ||
        !mt_config_int(c, "conv_L_cache", 3, 2, MT_LIMIT_CONV_TAPS, &taps, err))
        return false;
    s->eps = (float)eps;
    s->names = &names;
    s->tied = mt_config_bool(c, "tie_embedding", s->tied);
    s->state = (mt_state_shape){.key_heads = 1, .value_heads = 1, .value_dim = s->hidden, .taps = (size_t)taps};
    s->state_bias = mt_config_bool(c, "conv_bias", false);
    layer->attn.qk_norm = MT_QK_NORM_HEADS;
    mt_layers_repeat(s, layer);
    return read_layers(s, layer, c, err) && mt_rope_read_one(s, c, 1e6, arena, err);
}

static bool read_lfm2(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    return read_ffn(layer, c, err) && read_any(s, layer, c, arena, err);
}

/* The first layers are dense; the others have experts, chosen by sigmoids with a correction. */
static bool read_moe(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    mt_moe_spec moe = {.correction = mt_config_bool(c, "use_expert_bias", true)};
    double scaling;
    int64_t dense;
    if (!mt_size_read(c, "num_experts", 32, MT_LIMIT_EXPERTS, &moe.experts, err) ||
        !mt_size_read(c, "num_experts_per_tok", 4, MT_LIMIT_EXPERTS_PER_TOKEN, &moe.top_k, err) ||
        !mt_size_read(c, "moe_intermediate_size", 1792, MT_LIMIT_WIDTH, &moe.ffn, err) ||
        !mt_config_float(c, "routed_scaling_factor", 1, 0, 1e6, &scaling, err) ||
        !mt_config_int(c, "num_dense_layers", 2, 0, s->layers, &dense, err) || !read_any(s, layer, c, arena, err))
        return false;
    if (moe.top_k > moe.experts)
        return mt_fail(err, MT_E_INVALID, "\"num_experts_per_tok\" is %u but there are only %u experts", moe.top_k,
                       moe.experts);
    moe.routing = (mt_routing){.kind = MT_ROUTE_SIGMOID,
                               .renormalise = mt_config_bool(c, "norm_topk_prob", true),
                               .scaling = scaling == 1 ? 0 : (float)scaling};
    for (size_t i = (size_t)dense; i < s->layers; i++) {
        layer[i].sparse = true;
        layer[i].moe = moe;
    }
    return true;
}

const mt_family mt_family_lfm2 = {.name = "lfm2",
                                  .defaults = {.vocab = 65536,
                                               .hidden = 2560,
                                               .layers = 32,
                                               .heads = 32,
                                               .kv_heads = 8,
                                               .ffn = 12288,
                                               .context = 128000,
                                               .eps = 1e-5,
                                               .tied = true},
                                  .read = read_lfm2};
const mt_family mt_family_lfm2_vl = {
    .name = "lfm2_vl", .vision = &mt_vision_lfm2, .beneath = {&mt_family_lfm2, &mt_family_lfm2_moe}};
const mt_family mt_family_lfm2_moe = {.name = "lfm2_moe",
                                      .defaults = {.vocab = 65536,
                                                   .hidden = 2048,
                                                   .layers = 32,
                                                   .heads = 32,
                                                   .kv_heads = 8,
                                                   .ffn = 7168,
                                                   .context = 128000,
                                                   .eps = 1e-5,
                                                   .tied = true},
                                      .read = read_moe};
