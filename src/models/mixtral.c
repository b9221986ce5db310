/* Mixtral and MiniMax M2: experts instead of MLPs in every layer, in a module and by names of their own. */
#include "device/limits.h"
#include "models/family.h"
#include "sample/limits.h"
#include "weights/limits.h"

static const mt_tensor_names names = {.norm = "norm",
                                      .attn_norm = "input_layernorm",
                                      .mlp_norm = "post_attention_layernorm",
                                      .q_norm = "self_attn.q_norm",
                                      .k_norm = "self_attn.k_norm",
                                      .o = "self_attn.o_proj",
                                      .mlp = "block_sparse_moe",
                                      .correction = "block_sparse_moe.e_score_correction_bias"};

/* Reads how many experts there are. They are as wide as the config says an MLP is. */
static bool read_experts(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, int64_t experts, int64_t top_k,
                         mt_error *err)
{
    mt_moe_spec *moe = &layer->moe;
    if (!mt_size_read(c, "num_local_experts", experts, MT_LIMIT_EXPERTS, &moe->experts, err) ||
        !mt_size_read(c, "num_experts_per_tok", top_k, MT_LIMIT_EXPERTS_PER_TOKEN, &moe->top_k, err))
        return false;
    if (moe->top_k > moe->experts)
        return mt_fail(err, MT_E_INVALID, "\"num_experts_per_tok\" is %u but there are only %u experts", moe->top_k,
                       moe->experts);
    moe->ffn = layer->mlp.ffn;
    moe->routing.renormalise = true;
    layer->sparse = true;
    s->names = &names;
    return true;
}

static bool read_mixtral(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    int64_t window;
    if (!mt_config_int(c, "sliding_window", 0, 0, MT_LIMIT_CONTEXT, &window, err) ||
        !read_experts(s, layer, c, 8, 2, err))
        return false;
    layer->attn.window = (uint32_t)window;
    mt_layers_repeat(s, layer);
    return mt_rope_read_one(s, c, 1e6, arena, err);
}

/* The first part of a head turns; published configs give its width. */
static bool read_minimax(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    int64_t turned;
    if (!read_experts(s, layer, c, 256, 8, err) ||
        !mt_config_int(c, "rotary_dim", layer->attn.head_dim, 2, layer->attn.head_dim, &turned, err))
        return false;
    layer->moe.routing.kind = MT_ROUTE_SIGMOID;
    layer->moe.correction = true;
    layer->attn.qk_norm = MT_QK_NORM_WHOLE;
    mt_layers_repeat(s, layer);
    return mt_rope_read_first(s, c, 5e6, (double)turned / layer->attn.head_dim, arena, err);
}

const mt_family mt_family_mixtral = {.name = "mixtral",
                                     .defaults = {.vocab = 32000,
                                                  .hidden = 4096,
                                                  .layers = 32,
                                                  .heads = 32,
                                                  .kv_heads = 8,
                                                  .ffn = 14336,
                                                  .context = 131072,
                                                  .eps = 1e-5},
                                     .read = read_mixtral};
const mt_family mt_family_minimax_m2 = {.name = "minimax_m2",
                                        .defaults = {.vocab = 200064,
                                                     .hidden = 3072,
                                                     .layers = 62,
                                                     .heads = 48,
                                                     .kv_heads = 8,
                                                     .head_dim = 128,
                                                     .ffn = 1536,
                                                     .context = 196608,
                                                     .eps = 1e-6},
                                        .read = read_minimax};
