/* ERNIE 4.5: neighbouring elements of a head turn together; the larger models have experts, whose scores are softmaxes
   with a correction for the choice. */
#include "device/limits.h"
#include "models/family.h"
#include "weights/limits.h"

static const mt_tensor_names names = {.norm = "norm",
                                      .attn_norm = "input_layernorm",
                                      .mlp_norm = "post_attention_layernorm",
                                      .o = "self_attn.o_proj",
                                      .gate = "mlp.gate_proj",
                                      .up = "mlp.up_proj",
                                      .down = "mlp.down_proj",
                                      .correction = "mlp.moe_statics.e_score_correction_bias"};

static bool read_ernie(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    mt_rope *rope = mt_arena_alloc(arena, sizeof(*rope));
    if (!rope)
        return mt_fail(err, MT_E_MEMORY, "no memory for the rotary embedding");
    s->names = &names;
    layer->attn.qkv_bias = layer->attn.o_bias = layer->mlp.bias = mt_config_bool(c, "use_bias", false);
    mt_layers_repeat(s, layer);
    if (!mt_rope_read_one(s, c, 5e5, arena, err))
        return false;
    *rope = s->ropes[0];
    rope->pairs = true;
    s->ropes = rope;
    return true;
}

static bool read_ernie_moe(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    mt_moe_spec moe = {.correction = true, .routing.renormalise = true};
    int64_t shared, first, last, every;
    if (!mt_size_read(c, "moe_num_experts", 64, MT_LIMIT_EXPERTS, &moe.experts, err) ||
        !mt_size_read(c, "moe_k", 6, MT_LIMIT_EXPERTS_PER_TOKEN, &moe.top_k, err) ||
        !mt_size_read(c, "moe_intermediate_size", 1536, MT_LIMIT_WIDTH, &moe.ffn, err) ||
        !mt_config_int(c, "moe_num_shared_experts", 2, 0, 64, &shared, err) ||
        !mt_config_int(c, "moe_layer_start_index", 1, 0, MT_LIMIT_LAYERS, &first, err) ||
        !mt_config_int(c, "moe_layer_end_index", -1, -1, MT_LIMIT_LAYERS, &last, err) ||
        !mt_config_int(c, "moe_layer_interval", 1, 1, MT_LIMIT_LAYERS, &every, err) ||
        !read_ernie(s, layer, c, arena, err))
        return false;
    if (moe.top_k > moe.experts)
        return mt_fail(err, MT_E_INVALID, "\"moe_k\" is %u but there are only %u experts", moe.top_k, moe.experts);
    if (layer->mlp.bias)
        return mt_fail(err, MT_E_UNSUPPORTED, "\"use_bias\" is true: experts with biases are not supported");
    moe.shared_ffn = (uint32_t)shared * moe.ffn;
    for (int64_t i = first; i < s->layers && (last < 0 || i <= last); i++)
        if ((i + 1) % every == 0) {
            layer[i].sparse = true;
            layer[i].moe = moe;
        }
    return true;
}

const mt_family mt_family_ernie4_5 = {.name = "ernie4_5",
                                      .defaults = {.vocab = 103424,
                                                   .hidden = 1024,
                                                   .layers = 18,
                                                   .heads = 16,
                                                   .kv_heads = 2,
                                                   .head_dim = 128,
                                                   .ffn = 3072,
                                                   .context = 131072,
                                                   .eps = 1e-5,
                                                   .tied = true},
                                      .read = read_ernie};
const mt_family mt_family_ernie4_5_moe = {.name = "ernie4_5_moe",
                                          .defaults = {.vocab = 103424,
                                                       .hidden = 2560,
                                                       .layers = 28,
                                                       .heads = 20,
                                                       .kv_heads = 4,
                                                       .ffn = 12288,
                                                       .context = 131072,
                                                       .eps = 1e-5,
                                                       .tied = true},
                                          .read = read_ernie_moe};
