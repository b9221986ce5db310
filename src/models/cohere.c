/* Cohere's Command: norms that subtract the mean, MLPs beside attention, logits with a factor, neighbouring elements of
   a head turn. Cohere 2 (Command R7B, A) has windows in three of four layers, and the others do not turn. */
#include "models/family.h"
#include "sample/limits.h"
#include "weights/limits.h"

static bool read_any(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    double eps, scale;
    mt_rope *rope = mt_arena_alloc(arena, sizeof(*rope));
    if (!rope)
        return mt_fail(err, MT_E_MEMORY, "no memory for the rotary embedding");
    if (!mt_config_float(c, "layer_norm_eps", 1e-5, 0, 1, &eps, err) ||
        !mt_config_float(c, "logit_scale", 0.0625, 1e-6, 1e6, &scale, err))
        return false;
    s->eps = (float)eps;
    s->centred = true;
    s->logit_scale = scale == 1 ? 0 : (float)scale;
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    layer->parallel = true;
    mt_layers_repeat(s, layer);
    if (!mt_rope_read_one(s, c, 10000, arena, err))
        return false;
    *rope = s->ropes[0];
    rope->pairs = true;
    s->ropes = rope;
    return true;
}

static bool read_cohere(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    if (mt_config_bool(c, "use_qk_norm", false))
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "\"use_qk_norm\" is true: norms of queries and keys with other weights for each head are not "
                       "supported");
    return read_any(s, layer, c, arena, err);
}

static bool read_cohere2(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    int64_t window, every;
    if (!mt_config_int(c, "sliding_window", mt_config_names(c, "sliding_window") ? 0 : 4096, 0, MT_LIMIT_CONTEXT,
                       &window, err) ||
        !mt_config_int(c, "sliding_window_pattern", 4, 1, MT_LIMIT_LAYERS, &every, err) ||
        !read_any(s, layer, c, arena, err))
        return false;
    if (!mt_layer_types_read(s, layer, c, (uint32_t)window))
        for (size_t i = 0; i < s->layers; i++)
            layer[i].attn.window = (int64_t)(i + 1) % every ? (uint32_t)window : 0;
    for (size_t i = 0; i < s->layers; i++)
        layer[i].attn.rope = layer[i].attn.window ? 0 : MT_NO_ROPE;
    return true;
}

#define DEFAULTS                                                                                                \
    {                                                                                                           \
        .vocab = 256000, .hidden = 8192, .layers = 40, .heads = 64, .ffn = 22528, .context = 8192, .eps = 1e-5, \
        .tied = true                                                                                            \
    }

const mt_family mt_family_cohere = {.name = "cohere", .defaults = DEFAULTS, .read = read_cohere};
const mt_family mt_family_cohere2 = {.name = "cohere2", .defaults = DEFAULTS, .read = read_cohere2};
