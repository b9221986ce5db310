/* Phi 3, Phi 3.5 mini, Phi 4 and Phi 4 mini: queries, keys and values in one matrix, gate and up in another. */
#include "models/family.h"
#include "sample/limits.h"

static const mt_tensor_names names = {.norm = "norm",
                                      .attn_norm = "input_layernorm",
                                      .mlp_norm = "post_attention_layernorm",
                                      .o = "self_attn.o_proj",
                                      .gate = "mlp.gate_proj",
                                      .up = "mlp.up_proj",
                                      .down = "mlp.down_proj",
                                      .gate_up = "mlp.gate_up_proj"};

static bool read_phi3(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    int64_t window;
    if (!mt_config_int(c, "sliding_window", 0, 0, INT64_MAX, &window, err))
        return false;
    s->names = &names;
    layer->attn.window = window < s->context ? (uint32_t)window : 0; /* configs have windows beyond the context */
    mt_layers_repeat(s, layer);
    return mt_rope_read_first(s, c, 10000, 1, arena, err);
}

const mt_family mt_family_phi3 = {
    .name = "phi3",
    .defaults = {.vocab = 32064, .hidden = 3072, .layers = 32, .heads = 32, .ffn = 8192, .context = 4096, .eps = 1e-5},
    .read = read_phi3,
};
