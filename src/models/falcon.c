/* Falcon H1: in each layer, Mamba2 and attention read the same row side by side. Factors are everywhere: those on what
   attention reads and on keys become a part of the scale of scores, and that on values one of attention's result. */
#include "device/limits.h"
#include "models/family.h"
#include "weights/limits.h"

static const mt_tensor_names names = {.norm = "final_layernorm",
                                      .attn_norm = "input_layernorm",
                                      .mlp_norm = "pre_ff_layernorm",
                                      .o = "self_attn.o_proj",
                                      .gate = "feed_forward.gate_proj",
                                      .up = "feed_forward.up_proj",
                                      .down = "feed_forward.down_proj"};

static bool factor(const mt_config *c, const char *key, double *out, mt_error *err)
{
    return mt_config_float(c, key, 1, -1e6, 1e6, out, err);
}

static bool read_attention(mt_model_spec *s, mt_attn_spec *a, const mt_config *c, mt_error *err)
{
    double in, out, keys;
    if (!factor(c, "attention_in_multiplier", &in, err) || !factor(c, "attention_out_multiplier", &out, err) ||
        !factor(c, "key_multiplier", &keys, err))
        return false;
    a->qkv_bias = a->o_bias = mt_config_bool(c, "attention_bias", false);
    if (a->qkv_bias && in != 1)
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "%s with \"attention_bias\" and an \"attention_in_multiplier\" is not known", s->family);
    a->scale *= (float)(in * in * keys);
    a->result = in * out == 1 ? 0 : (float)(in * out);
    return true;
}

static bool read_mlp(mt_mlp_spec *m, const mt_config *c, mt_error *err)
{
    static const char key[] = "mlp_multipliers";
    (void)err;
    m->bias = mt_config_bool(c, "mlp_bias", false);
    if (mt_config_array(c, key) < 2)
        return true;
    const double gate = mt_config_array_float(c, key, 0, 1), down = mt_config_array_float(c, key, 1, 1);
    m->gate = gate == 1 ? 0 : (float)gate;
    m->result = down == 1 ? 0 : (float)down;
    return true;
}

static bool read_mamba(mt_model_spec *s, const mt_config *c, mt_error *err)
{
    static const char list[] = "ssm_multipliers";
    double in, out;
    int64_t width, expand;
    if (!mt_config_int(c, "mamba_expand", 2, 1, MT_LIMIT_WIDTH / s->hidden, &expand, err) ||
        !mt_config_int(c, "mamba_d_ssm", mt_config_names(c, "mamba_d_ssm") ? expand * s->hidden : 1024, 1,
                       MT_LIMIT_WIDTH, &width, err) ||
        !factor(c, "ssm_in_multiplier", &in, err) || !factor(c, "ssm_out_multiplier", &out, err))
        return false;
    const mt_mamba_keys keys = {.heads = "mamba_n_heads",
                                .head_dim = "mamba_d_head",
                                .groups = "mamba_n_groups",
                                .state = "mamba_d_state",
                                .taps = "mamba_d_conv",
                                .conv_bias = "mamba_conv_bias",
                                .usual_heads = 128,
                                .usual_groups = 1,
                                .usual_state = 256,
                                .width = (uint32_t)width};
    if (!mt_mamba_read(s, c, &keys, err))
        return false;
    mt_mamba_spec *m = &s->mamba;
    m->norm = mt_config_bool(c, "mamba_rms_norm", false);
    m->norm_first = mt_config_bool(c, "mamba_norm_before_gate", true);
    m->in_bias = mt_config_bool(c, "mamba_proj_bias", false);
    m->out_bias = mt_config_bool(c, "projectors_bias", false);
    if (m->in_bias && in != 1)
        return mt_fail(err, MT_E_UNSUPPORTED, "%s with \"mamba_proj_bias\" and an \"ssm_in_multiplier\" is not known",
                       s->family);
    for (size_t i = 0; i < MT_COUNT(m->factor); i++)
        m->factor[i] = (float)(in * (mt_config_array(c, list) ? mt_config_array_float(c, list, i, 1) : 1));
    m->result = out == 1 ? 0 : (float)out;
    return true;
}

static bool read_falcon(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    double embedding, head;
    if (!factor(c, "embedding_multiplier", &embedding, err) || !factor(c, "lm_head_multiplier", &head, err) ||
        !read_attention(s, &layer->attn, c, err) || !read_mlp(&layer->mlp, c, err) || !read_mamba(s, c, err))
        return false;
    s->names = &names;
    s->embed_scale = (float)embedding;
    s->logit_scale = head == 1 ? 0 : (float)head;
    layer->paired = true;
    mt_layers_repeat(s, layer);
    return mt_rope_read_one(s, c, 10000, arena, err);
}

const mt_family mt_family_falcon_h1 = {.name = "falcon_h1",
                                       .defaults = {.vocab = 128000,
                                                    .hidden = 4096,
                                                    .layers = 32,
                                                    .heads = 32,
                                                    .kv_heads = 8,
                                                    .ffn = 14336,
                                                    .context = 8192,
                                                    .eps = 1e-5},
                                       .read = read_falcon};
