/* Nemotron H: each layer is one of Mamba2, attention without positions, an MLP or experts. Experts and MLPs have no
   gate. Experts may read a narrower row than the layer, which the router and the expert for every token read whole. */
#include <math.h>
#include <string.h>

#include "device/limits.h"
#include "models/family.h"
#include "sample/limits.h"
#include "weights/limits.h"

static const mt_tensor_names names = {.norm = "norm_f",
                                      .attn_norm = "norm",
                                      .mlp_norm = "norm",
                                      .o = "mixer.o_proj",
                                      .gate = "mixer.gate_proj",
                                      .up = "mixer.up_proj",
                                      .down = "mixer.down_proj",
                                      .mlp = "mixer",
                                      .correction = "mixer.gate.e_score_correction_bias",
                                      .attention = "mixer",
                                      .embed = "embeddings",
                                      .mamba = "mixer"};

static bool read_experts(mt_moe_spec *m, const mt_config *c, mt_error *err)
{
    int64_t latent;
    double scaling;
    if (!mt_size_read(c, "n_routed_experts", 8, MT_LIMIT_EXPERTS, &m->experts, err) ||
        !mt_size_read(c, "num_experts_per_tok", 2, MT_LIMIT_EXPERTS_PER_TOKEN, &m->top_k, err) ||
        !mt_size_read(c, "moe_intermediate_size", 7688, MT_LIMIT_WIDTH, &m->ffn, err) ||
        !mt_size_read(c, "moe_shared_expert_intermediate_size", 7688, MT_LIMIT_WIDTH, &m->shared_ffn, err) ||
        !mt_size_read(c, "n_group", 1, m->experts, &m->routing.groups, err) ||
        !mt_size_read(c, "topk_group", 1, m->routing.groups, &m->routing.top_groups, err) ||
        !mt_config_int(c, "moe_latent_size", 0, 0, MT_LIMIT_WIDTH, &latent, err) ||
        !mt_config_float(c, "routed_scaling_factor", 1, 0, 1e6, &scaling, err))
        return false;
    if (m->top_k > m->experts)
        return mt_fail(err, MT_E_INVALID, "\"num_experts_per_tok\" is %u but there are only %u experts", m->top_k,
                       m->experts);
    if (m->experts % m->routing.groups)
        return mt_fail(err, MT_E_INVALID, "%u experts cannot be divided into %u groups", m->experts, m->routing.groups);
    if (m->routing.groups == 1)
        m->routing.groups = m->routing.top_groups = 0;
    m->latent = (uint32_t)latent;
    m->correction = true;
    m->routing.kind = MT_ROUTE_SIGMOID;
    m->routing.renormalise = mt_config_bool(c, "norm_topk_prob", true);
    m->routing.scaling = scaling == 1 ? 0 : (float)scaling;
    return true;
}

/* Sets a layer's kind by its letter: M, *, E or -. */
static bool set_kind(mt_layer_spec *l, char letter, size_t i, mt_error *err)
{
    l->no_mlp = letter == 'M' || letter == '*';
    l->sparse = letter == 'E';
    l->kind = letter == 'M' ? MT_LAYER_RECURRENT : letter == '*' ? MT_LAYER_ATTENTION : MT_LAYER_ALONE;
    return (letter && strchr("M*E-", letter)) ||
           mt_fail(err, MT_E_UNSUPPORTED,
                   "layer %zu is of no kind that is known: mamba, attention, moe and mlp, or M, *, E and -", i);
}

/* The letter of a layer in a list of names. */
static char letter_of(const char *type)
{
    return !type                            ? 0
           : strcmp(type, "mamba") == 0     ? 'M'
           : strcmp(type, "attention") == 0 ? '*'
           : strcmp(type, "moe") == 0       ? 'E'
           : strcmp(type, "mlp") == 0       ? '-'
                                            : 0;
}

/* Published configs have a letter for each layer, newer ones a list of names, which decides how many there are. */
static bool read_layers(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    const char *pattern = mt_config_string(c, "hybrid_override_pattern", "");
    const char *key = mt_config_has(c, "layers_block_type") ? "layers_block_type" : "layer_types";
    const size_t listed = mt_config_array(c, key), count = listed ? listed : strlen(pattern);
    if (count < 1 || count > s->layers)
        return mt_fail(err, MT_E_INVALID, "the config lists the kinds of %zu layers for %u", count, s->layers);
    s->layers = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        if (!set_kind(&layer[i], listed ? letter_of(mt_config_array_string(c, key, i)) : pattern[i], i, err))
            return false;
    return true;
}

static bool read_nemotron(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    static const mt_mamba_keys keys = {.heads = "mamba_num_heads",
                                       .head_dim = "mamba_head_dim",
                                       .groups = "n_groups",
                                       .state = "ssm_state_size",
                                       .taps = "conv_kernel",
                                       .conv_bias = "use_conv_bias",
                                       .usual_heads = 128,
                                       .usual_groups = 8,
                                       .usual_state = 128,
                                       .usual_dim = 64};
    double eps, low;
    (void)arena;
    if (!mt_config_float(c, "layer_norm_epsilon", 1e-5, 0, 1, &eps, err) ||
        !mt_config_float(c, "time_step_min", 0.001, 0, 1e6, &low, err) || !mt_mamba_read(s, c, &keys, err) ||
        !read_experts(&layer->moe, c, err))
        return false;
    s->eps = (float)eps;
    s->names = &names;
    s->mamba.norm = true;
    s->mamba.in_bias = s->mamba.out_bias = mt_config_bool(c, "use_bias", false);
    s->mamba.low = (float)low; /* transformers heeds this bound and not "time_step_limit" */
    s->mamba.high = INFINITY;
    layer->attn.rope = MT_NO_ROPE;
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    layer->mlp.bias = mt_config_bool(c, "mlp_bias", false);
    mt_layers_repeat(s, layer);
    return read_layers(s, layer, c, err);
}

const mt_family mt_family_nemotron_h = {.name = "nemotron_h",
                                        .defaults = {.vocab = 131072,
                                                     .hidden = 4096,
                                                     .layers = MT_LIMIT_LAYERS, /* a list says how many there are */
                                                     .heads = 32,
                                                     .kv_heads = 8,
                                                     .head_dim = 128,
                                                     .ffn = 21504,
                                                     .context = 4096,
                                                     .eps = 1e-5,
                                                     .activation_key = "mlp_hidden_act",
                                                     .activation = "relu2"},
                                        .read = read_nemotron};
