/* Gemma 4. Layers with a window and with full attention alternate, and differ in head size, key heads and rotary
   embedding. Values may be keys; the last layers may read the keys of earlier ones; experts may stand beside the dense
   MLP; each layer may have a small embedding of its own. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/limits.h"
#include "models/family.h"
#include "sample/limits.h"
#include "weights/limits.h"

enum { ROPE_FULL, ROPE_WINDOW };

#define FULL_HEAD_DIM 512 /* head size of layers with full attention, where the config does not say */
#define FULL_PART 0.25    /* part of a head's pairs that turn, where the config does not say */
#define PERIOD 6          /* the last of so many layers has full attention, where the config does not say which do */

/* The last layer always has full attention, whatever the list says. */
static bool read_windows(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, int64_t usual, mt_error *err)
{
    int64_t window;
    if (!mt_config_int(c, "sliding_window", usual, 1, MT_LIMIT_CONTEXT, &window, err))
        return false;
    if (!mt_layer_types_read(s, layer, c, (uint32_t)window))
        for (size_t i = 0; i < s->layers; i++)
            layer[i].attn.window = (i + 1) % PERIOD ? (uint32_t)window : 0;
    layer[s->layers - 1].attn.window = 0;
    return true;
}

/* Reads the shape of layer i where it differs from the usual: newer configs have an object for each layer, published
   ones values for all layers with full attention. */
static bool read_shape(mt_attn_spec *a, const mt_config *c, size_t i, mt_error *err)
{
    const mt_config *each = mt_config_object(c, "per_layer_config"), *own = NULL;
    const uint32_t heads = a->kv_heads;
    for (int digits = 1; each && !own && digits <= 4; digits++) { /* with ten or more layers, the first is named "00" */
        char number[16];
        snprintf(number, sizeof(number), "%0*zu", digits, i);
        own = mt_config_object(each, number);
    }
    if (own)
        return mt_size_read(own, "head_dim", a->head_dim, MT_LIMIT_HEAD_DIM, &a->head_dim, err) &&
               mt_size_read(own, "num_key_value_heads", heads, a->heads, &a->kv_heads, err);
    if (each || a->window)
        return true;
    return mt_size_read(c, "global_head_dim", FULL_HEAD_DIM, MT_LIMIT_HEAD_DIM, &a->head_dim, err) &&
           (a->keys != MT_KEYS_VALUES ||
            mt_size_read(c, "num_global_key_value_heads", heads, a->heads, &a->kv_heads, err));
}

static bool read_shapes(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    const bool same = mt_config_bool(c, "attention_k_eq_v", false);
    for (size_t i = 0; i < s->layers; i++) {
        mt_attn_spec *a = &layer[i].attn;
        a->rope = a->window ? ROPE_WINDOW : ROPE_FULL;
        a->keys = same && !a->window ? MT_KEYS_VALUES : MT_KEYS_OWN;
        if (!read_shape(a, c, i, err))
            return false;
        if (a->head_dim % 2 || a->heads % a->kv_heads)
            return mt_fail(err, MT_E_INVALID, "layer %zu has %u heads of %u elements for %u key heads", i, a->heads,
                           a->head_dim, a->kv_heads);
    }
    return true;
}

/* The last layers read the keys and values of the last layer before them with the same window, and may have a wider
   MLP. */
static bool read_shared(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    int64_t shared;
    if (!mt_config_int(c, "num_kv_shared_layers", 0, 0, s->layers - 1, &shared, err))
        return false;
    const size_t first = s->layers - (size_t)shared;
    const bool wide = mt_config_bool(c, "use_double_wide_mlp", false);
    for (size_t i = first; i < s->layers; i++) {
        size_t from = first;
        while (from > 0 && layer[from - 1].attn.rope != layer[i].attn.rope)
            from--;
        if (from == 0)
            return mt_fail(err, MT_E_INVALID,
                           "\"num_kv_shared_layers\" is %d, but no layer before sees as much as layer %zu", (int)shared,
                           i);
        layer[i].attn.keys = MT_KEYS_EARLIER;
        layer[i].attn.source = (uint16_t)(from - 1);
        layer[i].mlp.ffn *= wide ? 2 : 1;
    }
    return true;
}

/* Reads the rotary embeddings of both kinds of layers. */
static bool read_ropes(mt_model_spec *s, const mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    static const struct {
        const char *name;
        double theta;
    } kinds[] = {[ROPE_FULL] = {"full_attention", 1e6}, [ROPE_WINDOW] = {"sliding_attention", 1e4}};
    mt_rope *rope = mt_arena_alloc(arena, MT_COUNT(kinds) * sizeof(*rope));
    const mt_config *parameters = mt_config_object(c, "rope_parameters");
    if (!rope)
        return mt_fail(err, MT_E_MEMORY, "no memory for the rotary embeddings");
    s->ropes = rope;
    s->rope_count = MT_COUNT(kinds);
    for (size_t k = 0; k < MT_COUNT(kinds); k++) {
        const mt_config *own = parameters ? mt_config_object(parameters, kinds[k].name) : NULL;
        uint32_t dim = 0;
        for (size_t i = 0; i < s->layers; i++) {
            if (layer[i].attn.rope != k)
                continue;
            if (dim && dim != layer[i].attn.head_dim)
                return mt_fail(err, MT_E_UNSUPPORTED, "layers of \"%s\" have heads of %u and of %u elements",
                               kinds[k].name, dim, layer[i].attn.head_dim);
            dim = layer[i].attn.head_dim;
        }
        dim = dim ? dim : layer->attn.head_dim;
        if (!(own || k == ROPE_WINDOW ? mt_rope_read(&rope[k], c, own, kinds[k].theta, dim, s->context, arena, err)
                                      : mt_rope_read_part(&rope[k], kinds[k].theta, FULL_PART, dim, arena, err)))
            return false;
    }
    return true;
}

static bool read_experts(mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    mt_moe_spec *moe = &layer->moe;
    if (!mt_config_bool(c, "enable_moe_block", false))
        return true;
    if (!mt_size_read(c, "num_experts", 0, MT_LIMIT_EXPERTS, &moe->experts, err) ||
        !mt_size_read(c, "top_k_experts", 0, MT_LIMIT_EXPERTS_PER_TOKEN, &moe->top_k, err) ||
        !mt_size_read(c, "moe_intermediate_size", 0, MT_LIMIT_WIDTH, &moe->ffn, err))
        return false;
    if (moe->top_k > moe->experts)
        return mt_fail(err, MT_E_INVALID, "\"top_k_experts\" is %u but there are only %u experts", moe->top_k,
                       moe->experts);
    moe->routing = (mt_routing){.kind = MT_ROUTE_SOFTMAX, .renormalise = true};
    moe->router_norm = moe->scale = true;
    layer->sparse = layer->beside = true;
    return true;
}

/* Reads the size of the layers' own embeddings. */
static bool read_aside(mt_model_spec *s, const mt_config *c, int64_t usual, mt_error *err)
{
    int64_t width, vocab;
    if (!mt_config_int(c, "hidden_size_per_layer_input", usual, 0, MT_LIMIT_WIDTH, &width, err) ||
        !mt_config_int(c, "vocab_size_per_layer_input", s->vocab, 0, MT_LIMIT_VOCAB, &vocab, err))
        return false;
    if (width && vocab < (int64_t)s->vocab)
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "\"vocab_size_per_layer_input\" is %d for %u tokens; those beyond have no embedding", (int)vocab,
                       s->vocab);
    s->aside = (uint32_t)width;
    s->aside_vocab = width ? (uint32_t)vocab : 0;
    return true;
}

/* A drafter reads keys of another model, which has none yet for the query's own position. */
static bool read_borrowed(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    int64_t shared;
    if (!mt_config_int(c, "num_kv_shared_layers", 0, 0, s->layers, &shared, err))
        return false;
    if ((shared && shared != s->layers) || s->aside || layer->sparse || mt_config_bool(c, "use_double_wide_mlp", false))
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "a draft that has keys, experts, a wider MLP or embeddings of layers is not supported");
    for (size_t i = 0; i < s->layers; i++) {
        layer[i].attn.keys = MT_KEYS_EARLIER;
        if (layer[i].attn.window == 1)
            return mt_fail(err, MT_E_INVALID, "a draft with a \"sliding_window\" of 1 would see nothing");
    }
    return true;
}

/* Defaults that differ between the Gemma 4 families. */
typedef struct usual {
    int64_t window, aside;
    bool drafts;
} usual;

/* Reads any Gemma 4 config. */
static bool read_any(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, usual u, mt_arena *arena,
                     mt_error *err)
{
    const char *both_ways = mt_config_string(c, "use_bidirectional_attention", "");
    double cap;
    if (strcmp(both_ways, "all") == 0)
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "\"use_bidirectional_attention\" is \"all\": such a model sees what comes later and writes no "
                       "text, which is not supported");
    if (!mt_config_float(c, "final_logit_softcapping", 0, 0, 1e9, &cap, err))
        return false;
    s->final_softcap = (float)cap;
    s->embed_scale = (float)sqrt((double)s->hidden);
    layer->post_norms = layer->scaled = true;
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", false);
    layer->attn.qk_norm = MT_QK_NORM_HEADS;
    layer->attn.v_norm = MT_V_NORM_PLAIN;
    layer->attn.scale = 1;
    if (!read_experts(layer, c, err))
        return false;
    mt_layers_repeat(s, layer);
    if (!read_windows(s, layer, c, u.window, err) || !read_shapes(s, layer, c, err) ||
        !read_aside(s, c, u.aside, err) || !read_ropes(s, layer, c, arena, err))
        return false;
    if (u.drafts)
        return read_borrowed(s, layer, c, err);
    for (size_t i = 0; i < s->layers; i++)
        layer[i].attn.causal = !layer[i].attn.window;
    return read_shared(s, layer, c, err);
}

static bool read_gemma4(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    return read_any(s, layer, c, (usual){.window = 512, .aside = 256}, arena, err);
}

static bool read_unified(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    return read_any(s, layer, c, (usual){.window = 1024}, arena, err);
}

static bool read_assistant(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    return read_any(s, layer, c, (usual){.window = 512, .drafts = true}, arena, err);
}

static bool read_unified_assistant(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena,
                                   mt_error *err)
{
    return read_any(s, layer, c, (usual){.window = 1024, .drafts = true}, arena, err);
}

#define DEFAULTS(length)                                                                                        \
    {                                                                                                           \
        .vocab = 262144, .hidden = 2304, .layers = 30, .heads = 8, .kv_heads = 4, .head_dim = 256, .ffn = 9216, \
        .context = length, .eps = 1e-6, .tied = true, .activation_key = "hidden_activation",                    \
        .activation = "gelu_pytorch_tanh"                                                                       \
    }

#define BLANKS                                                  \
    {                                                           \
        {"image_token_id", 258880}, {"video_token_id", 258884}, \
        {                                                       \
            "audio_token_id", 258881                            \
        }                                                       \
    }

const mt_family mt_family_gemma4_text = {.name = "gemma4_text", .defaults = DEFAULTS(131072), .read = read_gemma4};
const mt_family mt_family_gemma4 = {
    .name = "gemma4", .defaults = DEFAULTS(131072), .read = read_gemma4, .vision = &mt_vision_gemma4, .blanks = BLANKS};
const mt_family mt_family_gemma4_unified_text = {
    .name = "gemma4_unified_text", .defaults = DEFAULTS(262144), .read = read_unified};
const mt_family mt_family_gemma4_unified = {.name = "gemma4_unified",
                                            .defaults = DEFAULTS(262144),
                                            .read = read_unified,
                                            .vision = &mt_vision_gemma4_unified,
                                            .blanks = BLANKS};
const mt_family mt_family_gemma4_assistant = {
    .name = "gemma4_assistant", .defaults = DEFAULTS(131072), .read = read_assistant, .drafts = true};
const mt_family mt_family_gemma4_unified_assistant = {
    .name = "gemma4_unified_assistant", .defaults = DEFAULTS(262144), .read = read_unified_assistant, .drafts = true};
