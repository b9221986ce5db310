/* Qwen2, and the windows that Qwen families share (qwen.h). */
#include "models/family.h"
#include "models/qwen.h"

bool mt_qwen_windows_read(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    int64_t window, first;
    if (!mt_config_bool(c, "use_sliding_window", false) || !mt_config_has(c, "sliding_window"))
        return true;
    if (!mt_config_int(c, "sliding_window", 0, 1, MT_LIMIT_CONTEXT, &window, err) ||
        !mt_config_int(c, "max_window_layers", 28, 0, INT64_MAX, &first, err))
        return false;
    if (!mt_layer_types_read(s, layer, c, (uint32_t)window))
        for (size_t i = 0; i < s->layers; i++)
            layer[i].attn.window = (int64_t)i >= first ? (uint32_t)window : 0;
    return true;
}

static bool read_qwen2(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.qkv_bias = true;
    mt_layers_repeat(s, layer);
    return mt_qwen_windows_read(s, layer, c, err) && mt_rope_read_one(s, c, 10000, arena, err);
}

const mt_family mt_family_qwen2 = {
    .name = "qwen2",
    .defaults =
        {.vocab = 151936, .hidden = 4096, .layers = 32, .heads = 32, .ffn = 22016, .context = 32768, .eps = 1e-6},
    .read = read_qwen2,
};
