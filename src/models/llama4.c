/* Llama 4: three of four layers turn neighbouring elements of queries and keys, norm them without weights, and see the
   keys of their own chunk; the others see all, do not turn, and multiply queries by a factor that grows with the
   position. Experts stand beside one that every row uses, and their weights multiply what they read. Pictures are not
   seen. */
#include <math.h>
#include <string.h>

#include "device/limits.h"
#include "models/family.h"
#include "sample/limits.h"
#include "weights/limits.h"

static const mt_tensor_names names = {.norm = "norm",
                                      .attn_norm = "input_layernorm",
                                      .mlp_norm = "post_attention_layernorm",
                                      .o = "self_attn.o_proj",
                                      .gate = "feed_forward.gate_proj",
                                      .up = "feed_forward.up_proj",
                                      .down = "feed_forward.down_proj",
                                      .mlp = "feed_forward"};

/* Factors on queries, one for each position: they change before a multiple of "floor_scale", not at it. */
static bool read_stretch(mt_model_spec *s, const mt_config *c, mt_arena *arena, mt_error *err)
{
    int64_t every;
    double scale;
    if (!mt_config_int(c, "floor_scale", 8192, 1, MT_LIMIT_CONTEXT, &every, err) ||
        !mt_config_float(c, "attn_scale", 0.1, -1e3, 1e3, &scale, err))
        return false;
    float *factor = mt_arena_alloc(arena, s->context * sizeof(*factor));
    if (!factor)
        return mt_fail(err, MT_E_MEMORY, "no memory for the factors of queries");
    for (uint32_t i = 0; i < s->context; i++)
        factor[i] = (float)(1 + scale * log1p((double)(((int64_t)i + 1) / every)));
    s->stretch = (mt_stretch){.factor = factor, .count = s->context, .every = 1};
    return true;
}

/* Sets for each layer whether it rotates queries and keys, and whether its tokens see their own chunk only: so do the
   layers that "layer_types" calls "chunked_attention" or, without that list, those that rotate. */
static bool read_layers(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    static const char turns[] = "no_rope_layers", types[] = "layer_types"; /* no_rope_layers: 1 where a layer turns */
    const size_t listed = mt_config_array(c, turns), typed = mt_config_array(c, types);
    const bool normed = mt_config_bool(c, "use_qk_norm", true),
               tuned = mt_config_bool(c, "attn_temperature_tuning", true);
    int64_t every, chunk;
    if (!mt_config_int(c, "no_rope_layer_interval", 4, 1, MT_LIMIT_LAYERS, &every, err) ||
        !mt_config_int(c, "attention_chunk_size", mt_config_names(c, "attention_chunk_size") ? 0 : 8192, 0, INT64_MAX,
                       &chunk, err))
        return false;
    if ((listed && listed < s->layers) || (typed && typed < s->layers))
        return mt_fail(err, MT_E_INVALID, "\"%s\" has %zu entries for %u layers",
                       listed && listed < s->layers ? turns : types, listed && listed < s->layers ? listed : typed,
                       s->layers);
    for (size_t i = 0; i < s->layers; i++) {
        mt_attn_spec *a = &layer[i].attn;
        const bool turned = listed ? mt_config_array_int(c, turns, i, 1) != 0 : (int64_t)(i + 1) % every != 0;
        const char *type = typed ? mt_config_array_string(c, types, i) : NULL;
        const bool chunked = typed ? type && strcmp(type, "chunked_attention") == 0 : turned;
        a->rope = turned ? 0 : MT_NO_ROPE;
        a->qk_norm = turned && normed ? MT_QK_NORM_PLAIN : MT_QK_NORM_NONE;
        a->stretched = tuned && !turned;
        a->chunk = chunked && chunk < s->context ? (uint32_t)chunk : 0;
    }
    return true;
}

static bool lists(const mt_config *c, const char *key, size_t number)
{
    for (size_t i = 0; i < mt_config_array(c, key); i++)
        if (mt_config_array_int(c, key, i, -1) == (int64_t)number)
            return true;
    return false;
}

static bool read_experts(const mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    mt_moe_spec moe = {.ffn = s->layer[0].mlp.ffn,
                       .shared_ffn = s->layer[0].mlp.ffn,
                       .routing = {.kind = MT_ROUTE_SIGMOID, .on_input = true}};
    const bool listed = mt_config_has(c, "moe_layers");
    uint32_t dense;
    int64_t every;
    if (!mt_size_read(c, "num_local_experts", 16, MT_LIMIT_EXPERTS, &moe.experts, err) ||
        !mt_size_read(c, "num_experts_per_tok", 1, MT_LIMIT_EXPERTS_PER_TOKEN, &moe.top_k, err) ||
        !mt_size_read(c, "intermediate_size_mlp", 16384, MT_LIMIT_WIDTH, &dense, err) ||
        !mt_config_int(c, "interleave_moe_layer_step", 1, 1, MT_LIMIT_LAYERS, &every, err))
        return false;
    if (moe.top_k > moe.experts)
        return mt_fail(err, MT_E_INVALID, "\"num_experts_per_tok\" is %u but there are only %u experts", moe.top_k,
                       moe.experts);
    for (size_t i = 0; i < s->layers; i++) {
        layer[i].sparse = listed ? lists(c, "moe_layers", i) : (int64_t)(i + 1) % every == 0;
        if (layer[i].sparse)
            layer[i].moe = moe;
        else
            layer[i].mlp.ffn = dense;
    }
    return true;
}

static bool read_llama4(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    mt_rope *rope = mt_arena_alloc(arena, sizeof(*rope));
    if (!rope)
        return mt_fail(err, MT_E_MEMORY, "no memory for the rotary embedding");
    s->names = &names;
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    mt_layers_repeat(s, layer);
    if (!mt_rope_read_one(s, c, 5e5, arena, err))
        return false;
    *rope = s->ropes[0];
    rope->pairs = true;
    s->ropes = rope;
    return read_experts(s, layer, c, err) && read_stretch(s, c, arena, err) && read_layers(s, layer, c, err);
}

const mt_family mt_family_llama4_text = {.name = "llama4_text",
                                         .defaults = {.vocab = 202048,
                                                      .hidden = 5120,
                                                      .layers = 48,
                                                      .heads = 40,
                                                      .kv_heads = 8,
                                                      .head_dim = 128,
                                                      .ffn = 8192,
                                                      .context = 131072,
                                                      .eps = 1e-5},
                                         .read = read_llama4};
const mt_family mt_family_llama4 = {.name = "llama4", .beneath = {&mt_family_llama4_text}};
