/* EXAONE 4: norms behind attention and MLP and none in front. K-EXAONE (exaone_moe): the usual norms, and experts by
   sigmoids beside a shared one. Where the config has a window, layers of both that do not use it have no rotary
   embedding. */
#include <string.h>

#include "models/family.h"
#include "sample/limits.h"

static const mt_tensor_names names = {.norm = "norm",
                                      .attn_post_norm = "post_attention_layernorm",
                                      .mlp_post_norm = "post_feedforward_layernorm",
                                      .q_norm = "self_attn.q_norm",
                                      .k_norm = "self_attn.k_norm",
                                      .o = "self_attn.o_proj",
                                      .gate = "mlp.gate_proj",
                                      .up = "mlp.up_proj",
                                      .down = "mlp.down_proj"};

static const mt_tensor_names moe_names = {.norm = "norm",
                                          .attn_norm = "input_layernorm",
                                          .mlp_norm = "post_attention_layernorm",
                                          .q_norm = "self_attn.q_norm",
                                          .k_norm = "self_attn.k_norm",
                                          .o = "self_attn.o_proj",
                                          .gate = "mlp.gate_proj",
                                          .up = "mlp.up_proj",
                                          .down = "mlp.down_proj",
                                          .correction = "mlp.e_score_correction_bias"};

/* Whether a layer has a window. "sliding_window_pattern" is a number (every so many layers, one has none) or letters
   that repeat, L for a window. Where it is letters, the last layer has no window. */
static bool has_window(const mt_model_spec *s, const char *letters, int64_t every, size_t i)
{
    if (*letters)
        return i + 1 < s->layers && letters[i % strlen(letters)] == 'L';
    return every > 0 && (int64_t)(i + 1) % every != 0;
}

static bool read_windows(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    static const char key[] = "sliding_window_pattern";
    const char *letters = mt_config_string(c, key, "");
    int64_t window, every = 0;
    if (!mt_config_int(c, "sliding_window", mt_config_names(c, "sliding_window") ? 0 : 4096, 0, MT_LIMIT_CONTEXT,
                       &window, err) ||
        (!*letters && !mt_config_int(c, key, mt_config_names(c, key) ? 0 : 4, 0, INT32_MAX, &every, err)))
        return false;
    if (!mt_layer_types_read(s, layer, c, (uint32_t)window))
        for (size_t i = 0; i < s->layers; i++)
            layer[i].attn.window = has_window(s, letters, every, i) ? (uint32_t)window : 0;
    for (size_t i = 0; window && i < s->layers; i++)
        layer[i].attn.rope = layer[i].attn.window ? 0 : MT_NO_ROPE;
    return true;
}

static bool read_exaone4(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    s->names = &names;
    layer->bare = layer->post_norms = true;
    layer->attn.qk_norm = MT_QK_NORM_HEADS;
    mt_layers_repeat(s, layer);
    return read_windows(s, layer, c, err) && mt_rope_read_one(s, c, 10000, arena, err);
}

const mt_family mt_family_exaone4 = {.name = "exaone4",
                                     .defaults = {.vocab = 102400,
                                                  .hidden = 4096,
                                                  .layers = 32,
                                                  .heads = 32,
                                                  .kv_heads = 32,
                                                  .ffn = 16384,
                                                  .context = 2048,
                                                  .eps = 1e-5},
                                     .read = read_exaone4};

static bool read_exaone_moe(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    static const mt_expert_defaults experts = {.experts_key = "num_experts",
                                               .shared_key = "num_shared_experts",
                                               .experts = 64,
                                               .top_k = 8,
                                               .ffn = 1024,
                                               .groups = 1,
                                               .top_groups = 1,
                                               .dense = 1,
                                               .scaling = 2.5};
    s->names = &moe_names;
    layer->attn.qk_norm = MT_QK_NORM_HEADS;
    mt_layers_repeat(s, layer);
    return read_windows(s, layer, c, err) && mt_scored_experts_read(s, layer, c, &experts, err) &&
           mt_rope_read_one(s, c, 10000, arena, err);
}

const mt_family mt_family_exaone_moe = {.name = "exaone_moe",
                                        .defaults = {.vocab = 102400,
                                                     .hidden = 4096,
                                                     .layers = 32,
                                                     .heads = 32,
                                                     .kv_heads = 32,
                                                     .ffn = 16384,
                                                     .context = 2048,
                                                     .eps = 1e-5},
                                        .read = read_exaone_moe};
