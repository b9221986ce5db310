/* Reads keys that configs of the Qwen families have in common: windows and experts (qwen.h). */
#include "models/qwen.h"
#include "device/limits.h"
#include "models/family.h"
#include "sample/limits.h"
#include "weights/limits.h"

bool mt_qwen_window_read(const mt_config *c, uint32_t *out, mt_error *err)
{
    const bool none = !mt_config_bool(c, "use_sliding_window", false) ||
                      (mt_config_names(c, "sliding_window") && !mt_config_has(c, "sliding_window"));
    int64_t window = 0;
    if (!none && !mt_config_int(c, "sliding_window", 4096, 1, MT_LIMIT_CONTEXT, &window, err))
        return false;
    *out = (uint32_t)window;
    return true;
}

bool mt_qwen_windows_read(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, int64_t usual, mt_error *err)
{
    uint32_t window;
    int64_t first;
    if (!mt_qwen_window_read(c, &window, err))
        return false;
    if (!window || mt_layer_types_read(s, layer, c, window))
        return true;
    if (!mt_config_int(c, "max_window_layers", usual, 0, INT64_MAX, &first, err))
        return false;
    for (size_t i = 0; i < s->layers; i++)
        layer[i].attn.window = (int64_t)i >= first ? window : 0;
    return true;
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
