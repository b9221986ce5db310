/* Qwen3 and Qwen3-MoE, and the experts that Qwen families share (qwen.h). */
#include "device/limits.h"
#include "models/family.h"
#include "models/qwen.h"
#include "weights/limits.h"

static bool read_qwen3(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.qk_norm = MT_QK_NORM_HEADS;
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    mt_layers_repeat(s, layer);
    return mt_qwen_windows_read(s, layer, c, 28, err) && mt_rope_read_one(s, c, 10000, arena, err);
}

/* Whether the config lists the layer among those with a plain MLP. */
static bool dense_by_list(const mt_config *c, size_t layer)
{
    const size_t n = mt_config_array(c, "mlp_only_layers");
    for (size_t i = 0; i < n; i++)
        if (mt_config_array_int(c, "mlp_only_layers", i, -1) == (int64_t)layer)
            return true;
    return false;
}

bool mt_qwen_experts_read(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, const mt_qwen_experts *defaults,
                          mt_error *err)
{
    static const mt_qwen_experts qwen3 = {.experts = 128, .top_k = 8, .inner = 768};
    int64_t experts, top_k, inner, step;
    if (!defaults)
        defaults = &qwen3;
    const char *key =
        mt_config_has(c, "num_local_experts") ? "num_local_experts" : "num_experts"; /* some tools rename the key */
    if (!mt_config_int(c, key, defaults->experts, 0, MT_LIMIT_EXPERTS, &experts, err) ||
        !mt_config_int(c, "num_experts_per_tok", defaults->top_k, 1, MT_LIMIT_EXPERTS_PER_TOKEN, &top_k, err) ||
        !mt_config_int(c, "moe_intermediate_size", defaults->inner, 1, MT_LIMIT_WIDTH, &inner, err) ||
        !mt_config_int(c, "decoder_sparse_step", 1, 1, INT64_MAX, &step, err))
        return false;
    if (experts && top_k > experts)
        return mt_fail(err, MT_E_INVALID, "\"num_experts_per_tok\" is %d but there are only %d experts", (int)top_k,
                       (int)experts);
    const mt_moe_spec moe = {.experts = (uint32_t)experts,
                             .top_k = (uint32_t)top_k,
                             .ffn = (uint32_t)inner,
                             .routing.renormalise =
                                 defaults->always || mt_config_bool(c, "norm_topk_prob", defaults->renormalise),
                             .shared_ffn = defaults->shared,
                             .shared_gated = defaults->shared > 0};
    for (size_t i = 0; experts && i < s->layers; i++) {
        layer[i].sparse = ((int64_t)i + 1) % step == 0 && !dense_by_list(c, i);
        if (layer[i].sparse)
            layer[i].moe = moe;
    }
    return true;
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
