/* Qwen3-Next and Qwen3.5: three layers of GatedDeltaNet to one of gated attention. The two differ in how the recurrent
   layers' projections are stored, which the tensors' names tell (weights.c). */
#include <string.h>

#include "device/limits.h"
#include "models/family.h"
#include "models/qwen.h"
#include "weights/limits.h"

/* Reads which layers have attention: from a list of layer types, or every n-th layer. */
static bool read_layers(const mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    int64_t every;
    const size_t listed = mt_config_array(c, "layer_types");
    if (listed && listed < s->layers)
        return mt_fail(err, MT_E_INVALID, "\"layer_types\" has %zu entries for %u layers", listed, s->layers);
    if (!mt_config_int(c, "full_attention_interval", 4, 1, MT_LIMIT_LAYERS, &every, err))
        return false;
    for (size_t i = 0; i < s->layers; i++) {
        const char *type = listed ? mt_config_array_string(c, "layer_types", i) : NULL;
        const bool recurrent = listed ? type && strcmp(type, "linear_attention") == 0 : (i + 1) % (size_t)every != 0;
        layer[i].kind = recurrent ? MT_LAYER_RECURRENT : MT_LAYER_ATTENTION;
    }
    return true;
}

static bool read_state(mt_state_shape *state, const mt_config *c, mt_error *err)
{
    int64_t key_heads, value_heads, key_dim, value_dim, taps;
    if (!mt_config_int(c, "linear_num_key_heads", 16, 1, MT_LIMIT_STATE_HEADS, &key_heads, err) ||
        !mt_config_int(c, "linear_num_value_heads", 32, 1, MT_LIMIT_STATE_HEADS, &value_heads, err) ||
        !mt_config_int(c, "linear_key_head_dim", 128, 1, MT_LIMIT_HEAD_DIM, &key_dim, err) ||
        !mt_config_int(c, "linear_value_head_dim", 128, 1, MT_LIMIT_HEAD_DIM, &value_dim, err) ||
        !mt_config_int(c, "linear_conv_kernel_dim", 4, 2, MT_LIMIT_CONV_TAPS, &taps, err))
        return false;
    if (value_heads % key_heads)
        return mt_fail(err, MT_E_INVALID,
                       "\"linear_num_value_heads\" is %d, which is no multiple of \"linear_num_key_heads\" %d",
                       (int)value_heads, (int)key_heads);
    *state = (mt_state_shape){.key_heads = (size_t)key_heads,
                              .value_heads = (size_t)value_heads,
                              .key_dim = (size_t)key_dim,
                              .value_dim = (size_t)value_dim,
                              .taps = (size_t)taps};
    return true;
}

/* Reads the rotary embedding, which turns only the first part of a head. Qwen3.5 has M-RoPE. */
static bool read_rope(mt_model_spec *s, const mt_config *c, bool axes, mt_arena *arena, mt_error *err)
{
    static const uint32_t sections[3] = {11, 11, 10};
    return mt_rope_read_first(s, c, 10000, 0.25, arena, err) &&
           (!axes || mt_rope_axes_read(s, c, sections, true, arena, err));
}

static bool read_text(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, bool axes, mt_arena *arena,
                      mt_error *err)
{
    layer->attn.qk_norm = MT_QK_NORM_HEADS;
    layer->attn.gate = true;
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    mt_layers_repeat(s, layer);
    s->norm_offset = 1;
    return read_layers(s, layer, c, err) && read_state(&s->state, c, err) && read_rope(s, c, axes, arena, err);
}

static bool read_dense(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    return read_text(s, layer, c, true, arena, err);
}

static bool read_moe(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_qwen_experts experts, bool axes,
                     mt_arena *arena, mt_error *err)
{
    return read_text(s, layer, c, axes, arena, err) &&
           mt_size_read(c, "shared_expert_intermediate_size", 512, MT_LIMIT_WIDTH, &experts.shared, err) &&
           mt_qwen_experts_read(s, layer, c, &experts, err);
}

static bool read_next(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    const mt_qwen_experts defaults = {.experts = 512, .top_k = 10, .inner = 512, .renormalise = true};
    return read_moe(s, layer, c, defaults, false, arena, err);
}

/* Qwen3.5's router always renormalises, whatever the config says. */
static bool read_5_moe(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    const mt_qwen_experts defaults = {.experts = 256, .top_k = 8, .inner = 512, .always = true};
    return read_moe(s, layer, c, defaults, true, arena, err);
}

#define DEFAULTS(...)                                                            \
    {                                                                            \
        .heads = 16, .head_dim = 256, .context = 32768, .eps = 1e-6, __VA_ARGS__ \
    }
#define NEXT_DEFAULTS DEFAULTS(.vocab = 151936, .hidden = 2048, .layers = 48, .kv_heads = 2, .ffn = 5632)
#define DENSE_DEFAULTS DEFAULTS(.vocab = 248320, .hidden = 4096, .layers = 32, .kv_heads = 4, .ffn = 12288)
#define MOE_DEFAULTS DEFAULTS(.vocab = 248320, .hidden = 2048, .layers = 40, .kv_heads = 2, .ffn = 512)

const mt_family mt_family_qwen3_next = {.name = "qwen3_next", .defaults = NEXT_DEFAULTS, .read = read_next};
const mt_family mt_family_qwen3_5 = {
    .name = "qwen3_5", .defaults = DENSE_DEFAULTS, .read = read_dense, .vision = &mt_vision_qwen3_5};
const mt_family mt_family_qwen3_5_text = {.name = "qwen3_5_text", .defaults = DENSE_DEFAULTS, .read = read_dense};
const mt_family mt_family_qwen3_5_moe = {
    .name = "qwen3_5_moe", .defaults = MOE_DEFAULTS, .read = read_5_moe, .vision = &mt_vision_qwen3_5};
const mt_family mt_family_qwen3_5_moe_text = {.name = "qwen3_5_moe_text", .defaults = MOE_DEFAULTS, .read = read_5_moe};
