/* Gemma 1 and 2, and what all but the first share (gemma.h). */
#include "models/gemma.h"

#include <math.h>

#include "models/family.h"
#include "sample/limits.h"

static bool read_windows(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, int64_t pattern, mt_error *err)
{
    int64_t window;
    if (!mt_config_int(c, "sliding_window", 4096, 1, MT_LIMIT_CONTEXT, &window, err))
        return false;
    if (!mt_layer_types_read(s, layer, c, (uint32_t)window))
        for (size_t i = 0; i < s->layers; i++)
            layer[i].attn.window = ((int64_t)i + 1) % pattern ? (uint32_t)window : 0;
    return true;
}

bool mt_gemma_read(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, int64_t pattern, mt_error *err)
{
    double scalar;
    if (mt_config_bool(c, "use_bidirectional_attention", false))
        return mt_fail(
            err, MT_E_UNSUPPORTED,
            "\"use_bidirectional_attention\" is true: such a model sees what comes later and writes no text, "
            "which is not supported");
    if (!mt_config_float(c, "query_pre_attn_scalar", 256, 1e-6, 1e9, &scalar, err))
        return false;
    layer->post_norms = true;
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    layer->attn.scale = (float)(1 / sqrt(scalar));
    mt_layers_repeat(s, layer);
    s->norm_offset = 1;
    s->embed_scale = (float)sqrt((double)s->hidden);
    return read_windows(s, layer, c, pattern, err);
}

/* Reads a softcap: null switches it off; where the key is missing, it is `usual`. */
static bool read_cap(const mt_config *c, const char *key, double usual, double *out, mt_error *err)
{
    return mt_config_float(c, key, mt_config_names(c, key) ? 0 : usual, 0, 1e9, out, err);
}

static bool read_gemma2(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    double attn_cap, final_cap;
    if (!read_cap(c, "attn_logit_softcapping", 50, &attn_cap, err) ||
        !read_cap(c, "final_logit_softcapping", 30, &final_cap, err))
        return false;
    layer->attn.softcap = (float)attn_cap;
    s->final_softcap = (float)final_cap;
    return mt_gemma_read(s, layer, c, 2, err) && mt_rope_read_one(s, c, 1e4, arena, err);
}

/* Gemma 1 has the usual norms, no windows and no caps. What its config says of the activation does not count. */
static bool read_gemma(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    mt_layers_repeat(s, layer);
    s->norm_offset = 1;
    s->embed_scale = (float)sqrt((double)s->hidden);
    return mt_rope_read_one(s, c, 1e4, arena, err);
}

const mt_family mt_family_gemma = {
    .name = "gemma",
    .defaults = {.vocab = 256000,
                 .hidden = 3072,
                 .layers = 28,
                 .heads = 16,
                 .kv_heads = 16,
                 .head_dim = 256,
                 .ffn = 24576,
                 .context = 8192,
                 .eps = 1e-6,
                 .tied = true,
                 .activation_key = "",
                 .activation = "gelu_pytorch_tanh"},
    .read = read_gemma,
};

const mt_family mt_family_gemma2 = {
    .name = "gemma2",
    .defaults = {.vocab = 256000,
                 .hidden = 2304,
                 .layers = 26,
                 .heads = 8,
                 .kv_heads = 4,
                 .head_dim = 256,
                 .ffn = 9216,
                 .context = 8192,
                 .eps = 1e-6,
                 .tied = true,
                 .activation_key = "hidden_activation",
                 .activation = "gelu_pytorch_tanh"},
    .read = read_gemma2,
};
