/* GLM: text models (GLM-4, GLM-4.5 to 4.7) and those that take pictures (GLM-4.1V, GLM-4.5V, GLM-4.6V, GLM-OCR). Dense
   ones turn neighbouring elements of a head and, but for the first, have norms behind attention and MLP; those with
   experts turn halves of a head and have a shared expert. */
#include <string.h>

#include "device/limits.h"
#include "models/family.h"
#include "weights/limits.h"

static const mt_tensor_names names = {.norm = "norm",
                                      .attn_norm = "input_layernorm",
                                      .attn_post_norm = "post_self_attn_layernorm",
                                      .mlp_norm = "post_attention_layernorm",
                                      .mlp_post_norm = "post_mlp_layernorm",
                                      .q_norm = "self_attn.q_norm",
                                      .k_norm = "self_attn.k_norm",
                                      .o = "self_attn.o_proj",
                                      .gate = "mlp.gate_proj",
                                      .up = "mlp.up_proj",
                                      .down = "mlp.down_proj",
                                      .gate_up = "mlp.gate_up_proj"};

/* Reads the rotary embedding. axes: of pictures, too (M-RoPE). */
static bool read_rope(mt_model_spec *s, const mt_config *c, double part, bool pairs, bool axes, mt_arena *arena,
                      mt_error *err)
{
    static const uint32_t sections[3] = {8, 12, 12};
    mt_rope *rope = mt_arena_alloc(arena, sizeof(*rope));
    if (!rope)
        return mt_fail(err, MT_E_MEMORY, "no memory for the rotary embedding");
    if (!mt_rope_read_first(s, c, 10000, part, arena, err) ||
        (axes && !mt_rope_axes_read(s, c, sections, false, arena, err)))
        return false;
    *rope = s->ropes[0];
    rope->pairs = pairs;
    s->ropes = rope;
    return true;
}

static bool read_dense(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, bool bias, mt_arena *arena,
                       mt_error *err)
{
    s->names = &names;
    layer->attn.qkv_bias = bias;
    layer->post_norms = true;
    mt_layers_repeat(s, layer);
    return read_rope(s, c, 1, true, true, arena, err);
}

static const mt_expert_defaults experts = {
    .experts = 128, .top_k = 8, .ffn = 1408, .groups = 1, .top_groups = 1, .dense = 1, .scaling = 1};

static bool read_moe(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.qkv_bias = mt_config_bool(c, "attention_bias", true);
    mt_layers_repeat(s, layer);
    return mt_scored_experts_read(s, layer, c, &experts, err) && read_rope(s, c, 0.5, false, true, arena, err);
}

static bool read_glm4v(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    return read_dense(s, layer, c, true, arena, err);
}

static bool read_glm_ocr(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    return read_dense(s, layer, c, false, arena, err);
}

static bool read_glm46v(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    const char *type = mt_config_string(c, "model_type", "glm4v_text");
    if (strcmp(type, "glm4v_text") == 0)
        return read_glm4v(s, layer, c, arena, err);
    if (strcmp(type, "glm4v_moe_text") == 0)
        return read_moe(s, layer, c, arena, err);
    return mt_fail(err, MT_E_UNSUPPORTED,
                   "the text model of glm46v has the type \"%.64s\"; known are glm4v_text and glm4v_moe_text", type);
}

/* GLM-4 from 2024 on, without pictures. `behind`: it has norms behind attention and MLP, as the models of 2025 have. */
static bool read_text(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, bool behind, mt_arena *arena,
                      mt_error *err)
{
    s->names = &names;
    layer->attn.qkv_bias = mt_config_bool(c, "attention_bias", true);
    layer->post_norms = behind;
    mt_layers_repeat(s, layer);
    return read_rope(s, c, 0.5, true, false, arena, err);
}

static bool read_glm(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    return read_text(s, layer, c, false, arena, err);
}

static bool read_glm4(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    return read_text(s, layer, c, true, arena, err);
}

static bool read_glm4_moe(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.qkv_bias = mt_config_bool(c, "attention_bias", false);
    layer->attn.qk_norm = mt_config_bool(c, "use_qk_norm", false) ? MT_QK_NORM_HEADS : MT_QK_NORM_NONE;
    mt_layers_repeat(s, layer);
    return mt_scored_experts_read(s, layer, c, &experts, err) && read_rope(s, c, 0.5, false, false, arena, err);
}

#define DENSE_DEFAULTS                                                                                             \
    {                                                                                                              \
        .vocab = 151552, .hidden = 4096, .layers = 40, .heads = 32, .kv_heads = 2, .ffn = 13696, .context = 32768, \
        .eps = 1e-5                                                                                                \
    }

const mt_family mt_family_glm4v = {
    .name = "glm4v", .defaults = DENSE_DEFAULTS, .read = read_glm4v, .vision = &mt_vision_glm4v};
const mt_family mt_family_glm46v = {
    .name = "glm46v", .defaults = DENSE_DEFAULTS, .read = read_glm46v, .vision = &mt_vision_glm46v};
const mt_family mt_family_glm4v_moe = {.name = "glm4v_moe",
                                       .defaults = {.vocab = 151424,
                                                    .hidden = 4096,
                                                    .layers = 46,
                                                    .heads = 96,
                                                    .kv_heads = 8,
                                                    .ffn = 10944,
                                                    .context = 65536,
                                                    .eps = 1e-5},
                                       .read = read_moe,
                                       .vision = &mt_vision_glm4v_moe};
const mt_family mt_family_glm_ocr = {.name = "glm_ocr",
                                     .defaults = {.vocab = 59392,
                                                  .hidden = 1024,
                                                  .layers = 16,
                                                  .heads = 16,
                                                  .kv_heads = 8,
                                                  .ffn = 4096,
                                                  .context = 131072,
                                                  .eps = 1e-5},
                                     .read = read_glm_ocr,
                                     .vision = &mt_vision_glm_ocr};

#define TEXT_DEFAULTS                                                                                             \
    {                                                                                                             \
        .vocab = 151552, .hidden = 4096, .layers = 40, .heads = 32, .kv_heads = 2, .head_dim = 128, .ffn = 13696, \
        .context = 131072, .eps = 1.5625e-7                                                                       \
    }

const mt_family mt_family_glm = {.name = "glm", .defaults = TEXT_DEFAULTS, .read = read_glm};
const mt_family mt_family_glm4 = {.name = "glm4", .defaults = TEXT_DEFAULTS, .read = read_glm4};
const mt_family mt_family_glm4_moe = {.name = "glm4_moe",
                                      .defaults = {.vocab = 151552,
                                                   .hidden = 4096,
                                                   .layers = 46,
                                                   .heads = 96,
                                                   .kv_heads = 8,
                                                   .ffn = 10944,
                                                   .context = 131072,
                                                   .eps = 1e-5},
                                      .read = read_glm4_moe};
