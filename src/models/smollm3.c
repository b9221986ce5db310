/* SmolLM3: Llama in which every fourth layer does not turn queries and keys. */
#include "models/family.h"
#include "sample/limits.h"
#include "weights/limits.h"

static bool read_turned(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    static const char key[] = "no_rope_layers"; /* 0: such a layer, 1: another */
    const size_t listed = mt_config_array(c, key);
    int64_t every;
    if (listed && listed < s->layers)
        return mt_fail(err, MT_E_INVALID, "\"%s\" has %zu entries for %u layers", key, listed, s->layers);
    if (!mt_config_int(c, "no_rope_layer_interval", 4, 1, MT_LIMIT_LAYERS, &every, err))
        return false;
    for (size_t i = 0; i < s->layers; i++)
        if (listed ? mt_config_array_int(c, key, i, 1) == 0 : (int64_t)(i + 1) % every == 0)
            layer[i].attn.rope = MT_NO_ROPE;
    return true;
}

/* Windows, where they are switched on, are those of layers that do not turn, or as layer_types says. */
static bool read_windows(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    int64_t window = 0;
    if (!mt_config_bool(c, "use_sliding_window", false))
        return true;
    if (!mt_config_int(c, "sliding_window", 0, 0, MT_LIMIT_CONTEXT, &window, err))
        return false;
    if (!mt_layer_types_read(s, layer, c, (uint32_t)window))
        for (size_t i = 0; i < s->layers; i++)
            layer[i].attn.window = layer[i].attn.rope == MT_NO_ROPE ? (uint32_t)window : 0;
    return true;
}

static bool read_smollm3(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    layer->mlp.bias = mt_config_bool(c, "mlp_bias", false);
    mt_layers_repeat(s, layer);
    return read_turned(s, layer, c, err) && read_windows(s, layer, c, err) && mt_rope_read_one(s, c, 2e6, arena, err);
}

const mt_family mt_family_smollm3 = {.name = "smollm3",
                                     .defaults = {.vocab = 128256,
                                                  .hidden = 2048,
                                                  .layers = 36,
                                                  .heads = 16,
                                                  .kv_heads = 4,
                                                  .ffn = 11008,
                                                  .context = 32768,
                                                  .eps = 1e-6,
                                                  .tied = true},
                                     .read = read_smollm3};
