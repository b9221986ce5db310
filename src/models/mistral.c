/* Mistral, Ministral 3, Mistral 4, Pixtral, and Mistral 3, which is one of the first three with Pixtral's vision
   (vision_pixtral.c). */
#include <math.h>

#include "models/family.h"
#include "sample/limits.h"

/* Reads the window, which all layers have. Null: no window; where the key is missing: `usual`, as older classes have
   one. */
static bool read_window(mt_layer_spec *layer, const mt_config *c, int64_t usual, mt_error *err)
{
    int64_t window;
    if (!mt_config_int(c, "sliding_window", mt_config_names(c, "sliding_window") ? 0 : usual, 0, MT_LIMIT_CONTEXT,
                       &window, err))
        return false;
    layer->attn.window = (uint32_t)window;
    return true;
}

static bool read_mistral(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    if (!read_window(layer, c, 4096, err))
        return false;
    mt_layers_repeat(s, layer);
    return mt_rope_read_one(s, c, 10000, arena, err);
}

/* Reads factors on queries, which grow with the logarithm of the number of original contexts before the position. */
static bool read_stretch(mt_model_spec *s, const mt_config *rope, mt_arena *arena, mt_error *err)
{
    double beta;
    int64_t every;
    if (!mt_config_float(rope, "llama_4_scaling_beta", 0, 0, 1e3, &beta, err) ||
        !mt_config_int(rope, "original_max_position_embeddings", s->context, 1, MT_LIMIT_CONTEXT, &every, err))
        return false;
    const uint32_t count = beta > 0 ? (s->context - 1) / (uint32_t)every + 1 : 0;
    float *factor = mt_arena_alloc(arena, (count + 1) * sizeof(*factor));
    if (!factor)
        return mt_fail(err, MT_E_MEMORY, "no memory for the factors of queries");
    for (uint32_t i = 0; i < count; i++)
        factor[i] = (float)(1 + beta * log(1.0 + i));
    if (count)
        s->stretch = (mt_stretch){.factor = factor, .count = count, .every = (uint32_t)every};
    return true;
}

static bool read_ministral3(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    const mt_config *rope = mt_rope_parameters(c);
    if (!rope)
        return mt_fail(err, MT_E_INVALID, "the config has no \"rope_parameters\"");
    if (!read_window(layer, c, 0, err) || !read_stretch(s, rope, arena, err))
        return false;
    layer->attn.stretched = s->stretch.factor != NULL;
    mt_layers_repeat(s, layer);
    return mt_rope_read_one(s, c, 1e6, arena, err);
}

/* Mistral 4 is Ministral 3 with latent attention, whose scores YaRN leaves alone, and experts of a softmax. */
static bool read_mistral4(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    static const mt_latent_spec latent = {.width = 256, .queries = 1024, .plain = 64, .turned = 64, .value = 128};
    static const mt_expert_defaults experts = {
        .experts = 128, .top_k = 4, .ffn = 2048, .groups = 1, .top_groups = 1, .scaling = 1, .softmax = true};
    const mt_config *rope = mt_rope_parameters(c);
    if (!rope)
        return mt_fail(err, MT_E_INVALID, "the config has no \"rope_parameters\"");
    if (!read_stretch(s, rope, arena, err))
        return false;
    layer->attn.stretched = s->stretch.factor != NULL;
    if (!mt_latent_read(s, layer, c, &latent, arena, err) || !mt_scored_experts_read(s, layer, c, &experts, err))
        return false;
    for (size_t i = 0; i < s->layers; i++)
        layer[i].attn.scale = 1 / sqrtf((float)(layer[i].attn.latent.plain + layer[i].attn.latent.turned));
    return true;
}

const mt_family mt_family_mistral = {.name = "mistral",
                                     .defaults = {.vocab = 32000,
                                                  .hidden = 4096,
                                                  .layers = 32,
                                                  .heads = 32,
                                                  .kv_heads = 8,
                                                  .ffn = 14336,
                                                  .context = 131072,
                                                  .eps = 1e-6},
                                     .read = read_mistral};

const mt_family mt_family_ministral3 = {.name = "ministral3",
                                        .defaults = {.vocab = 131072,
                                                     .hidden = 4096,
                                                     .layers = 34,
                                                     .heads = 32,
                                                     .kv_heads = 8,
                                                     .head_dim = 128,
                                                     .ffn = 14336,
                                                     .context = 262144,
                                                     .eps = 1e-5},
                                        .read = read_ministral3};

const mt_family mt_family_mistral4 = {.name = "mistral4",
                                      .defaults = {.vocab = 131072,
                                                   .hidden = 4096,
                                                   .layers = 36,
                                                   .heads = 32,
                                                   .head_dim = 64,
                                                   .ffn = 12288,
                                                   .context = 1048576,
                                                   .eps = 1e-6},
                                      .read = read_mistral4};

/* mlx-vlm's conversions have this type; it is published as LLaVA with Pixtral's tower. */
const mt_family mt_family_pixtral = {
    .name = "pixtral", .vision = &mt_vision_pixtral_alone, .beneath = {&mt_family_mistral}};

const mt_family mt_family_mistral3 = {.name = "mistral3",
                                      .vision = &mt_vision_pixtral,
                                      .beneath = {&mt_family_mistral, &mt_family_ministral3, &mt_family_mistral4}};
