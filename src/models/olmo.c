/* OLMo 2, OLMo 3 and OLMoE. Queries and keys are normed over all heads together; 2 and 3 have norms behind attention
   and MLP and none in front; 3 has windows in three of four layers. */
#include <string.h>

#include "models/family.h"
#include "models/qwen.h"
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

static void read_common(mt_layer_spec *layer, const mt_config *c)
{
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    layer->attn.qk_norm = MT_QK_NORM_WHOLE;
}

static void norm_behind(mt_model_spec *s, mt_layer_spec *layer)
{
    s->names = &names;
    layer->bare = layer->post_norms = true;
}

static bool read_olmo2(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    read_common(layer, c);
    norm_behind(s, layer);
    mt_layers_repeat(s, layer);
    return mt_rope_read_one(s, c, 10000, arena, err);
}

/* Reads two rotary embeddings: that of layers with windows is never scaled. */
static bool read_ropes(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    const mt_config *parameters = mt_rope_parameters(c), *own = NULL;
    const uint32_t dim = layer->attn.head_dim;
    mt_rope *rope = mt_arena_alloc(arena, 2 * sizeof(*rope));
    double theta;
    if (!rope)
        return mt_fail(err, MT_E_MEMORY, "no memory for the rotary embedding");
    if (parameters && mt_config_object(parameters, "full_attention")) { /* one object for each kind of layer */
        own = mt_config_object(parameters, "sliding_attention");
        parameters = mt_config_object(parameters, "full_attention");
    }
    s->ropes = rope;
    s->rope_count = 2;
    for (size_t i = 0; i < s->layers; i++)
        layer[i].attn.rope = layer[i].attn.window > 0;
    return mt_config_float(c, "rope_theta", 5e5, 1, 1e12, &theta, err) &&
           mt_rope_read(&rope[0], c, parameters, theta, dim, s->context, arena, err) &&
           mt_rope_read(&rope[1], c, own, theta, dim, s->context, arena, err);
}

static bool read_olmo3(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    int64_t window;
    if (!mt_config_int(c, "sliding_window", mt_config_names(c, "sliding_window") ? 0 : 4096, 0, MT_LIMIT_CONTEXT,
                       &window, err))
        return false;
    read_common(layer, c);
    norm_behind(s, layer);
    mt_layers_repeat(s, layer);
    if (!mt_layer_types_read(s, layer, c, (uint32_t)window))
        for (size_t i = 0; i < s->layers; i++)
            layer[i].attn.window = (i + 1) % 4 ? (uint32_t)window : 0;
    return read_ropes(s, layer, c, arena, err);
}

static bool read_olmoe(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    const mt_qwen_experts experts = {.experts = 64, .top_k = 8, .inner = layer->mlp.ffn};
    if (mt_config_has(c, "clip_qkv"))
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "\"clip_qkv\" is set: queries, keys and values that are cut off are not supported");
    read_common(layer, c);
    mt_layers_repeat(s, layer);
    return mt_qwen_experts_read(s, layer, c, &experts, err) && mt_rope_read_one(s, c, 10000, arena, err);
}

#define DEFAULTS                                                                                              \
    {                                                                                                         \
        .vocab = 50304, .hidden = 4096, .layers = 32, .heads = 32, .ffn = 11008, .context = 2048, .eps = 1e-5 \
    }

const mt_family mt_family_olmo2 = {.name = "olmo2", .defaults = DEFAULTS, .read = read_olmo2};
const mt_family mt_family_olmo3 = {.name = "olmo3", .defaults = DEFAULTS, .read = read_olmo3};
const mt_family mt_family_olmoe = {
    .name = "olmoe",
    .defaults = {.vocab = 50304, .hidden = 2048, .layers = 16, .heads = 16, .ffn = 2048, .context = 4096, .eps = 1e-5},
    .read = read_olmoe};
