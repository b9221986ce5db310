/* Gemma 3: its text model. Its vision is vision_gemma3.c. */
#include "models/family.h"
#include "models/gemma.h"

enum { ROPE_GLOBAL, ROPE_LOCAL };

/* Reads two rotary embeddings: from rope_parameters with an object for each layer type, or from the older keys, whose
   scaling applies to the global layers only. */
static bool read_ropes(mt_model_spec *s, const mt_config *c, mt_arena *arena, mt_error *err)
{
    double theta, local_theta;
    mt_rope *rope = mt_arena_alloc(arena, 2 * sizeof(*rope));
    if (!rope)
        return mt_fail(err, MT_E_MEMORY, "no memory for the rotary embeddings");
    if (!mt_config_float(c, "rope_theta", 1e6, 1, 1e12, &theta, err) ||
        !mt_config_float(c, "rope_local_base_freq", 1e4, 1, 1e12, &local_theta, err))
        return false;
    const mt_config *parameters = mt_config_object(c, "rope_parameters"), *older = mt_config_object(c, "rope_scaling");
    const mt_config *global = parameters ? mt_config_object(parameters, "full_attention") : NULL;
    const mt_config *local = parameters ? mt_config_object(parameters, "sliding_attention") : NULL;
    if (global && !mt_config_float(global, "rope_theta", theta, 1, 1e12, &theta, err))
        return false;
    if (older)
        global = older;
    s->ropes = rope;
    s->rope_count = 2;
    return mt_rope_read(&rope[ROPE_GLOBAL], c, global, theta, s->layer[0].attn.head_dim, s->context, arena, err) &&
           mt_rope_read(&rope[ROPE_LOCAL], c, local, local_theta, s->layer[0].attn.head_dim, s->context, arena, err);
}

static bool read_gemma3(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    int64_t pattern;
    layer->attn.qk_norm =
        MT_QK_NORM_HEADS; /* its config may have attn_logit_softcapping, which transformers never applies */
    if (!mt_config_int(c, "sliding_window_pattern", 6, 1, INT64_MAX, &pattern, err) ||
        !mt_gemma_read(s, layer, c, pattern, err))
        return false;
    for (size_t i = 0; i < s->layers; i++)
        layer[i].attn.rope = layer[i].attn.window ? ROPE_LOCAL : ROPE_GLOBAL;
    return read_ropes(s, c, arena, err);
}

/* Only the text-only class softcaps its logits. */
static bool read_gemma3_text(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    double cap;
    if (!mt_config_float(c, "final_logit_softcapping", 0, 0, 1e9, &cap, err))
        return false;
    s->final_softcap = (float)cap;
    return read_gemma3(s, layer, c, arena, err);
}

#define GEMMA3_DEFAULTS                                                                                         \
    {                                                                                                           \
        .vocab = 262208, .hidden = 2304, .layers = 26, .heads = 8, .kv_heads = 4, .head_dim = 256, .ffn = 9216, \
        .context = 131072, .eps = 1e-6, .tied = true, .activation_key = "hidden_activation",                    \
        .activation = "gelu_pytorch_tanh"                                                                       \
    }

const mt_family mt_family_gemma3_text = {.name = "gemma3_text", .defaults = GEMMA3_DEFAULTS, .read = read_gemma3_text};

const mt_family mt_family_gemma3 = {
    .name = "gemma3", .defaults = GEMMA3_DEFAULTS, .read = read_gemma3, .vision = &mt_vision_gemma3};
