/* gpt-oss: an attention sink for each head, windows on every other layer, biases everywhere, experts whose gate and up
   rows alternate and are clamped. */
#include "device/limits.h"
#include "models/family.h"
#include "sample/limits.h"

#include <string.h>

#define THETA 150000
#define LIMIT 7 /* gate and up are clamped to it; transformers has no other value */

static bool read_windows(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    int64_t window;
    if (!mt_config_int(c, "sliding_window", 128, 1, MT_LIMIT_CONTEXT, &window, err))
        return false;
    if (!mt_layer_types_read(s, layer, c, (uint32_t)window))
        for (size_t i = 0; i < s->layers; i++)
            layer[i].attn.window = i % 2 ? 0 : (uint32_t)window;
    return true;
}

static bool read_experts(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err)
{
    const char *key = mt_config_has(c, "num_local_experts") ? "num_local_experts" : "num_experts";
    mt_moe_spec *moe = &layer->moe;
    double limit;
    if (!mt_size_read(c, key, 128, MT_LIMIT_EXPERTS, &moe->experts, err) ||
        !mt_size_read(c, "num_experts_per_tok", 4, MT_LIMIT_EXPERTS_PER_TOKEN, &moe->top_k, err) ||
        !mt_config_float(c, "swiglu_limit", LIMIT, 0, 1e9, &limit, err))
        return false;
    if (moe->top_k > moe->experts)
        return mt_fail(err, MT_E_INVALID, "\"num_experts_per_tok\" is %u but there are only %u experts", moe->top_k,
                       moe->experts);
    if (limit != LIMIT)
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "\"swiglu_limit\" is %g; gpt-oss cuts off at %d, and a model that does not is another one",
                       limit, LIMIT);
    moe->ffn = layer->mlp.ffn;
    moe->bias = moe->interleaved = moe->router_bias = true;
    moe->routing.kind = MT_ROUTE_CHOSEN;
    layer->sparse = true;
    layer->mlp.glu = (mt_glu){.act = MT_ACT_QUICK_GELU, .limit = LIMIT, .offset = 1};
    mt_layers_repeat(s, layer);
    return true;
}

/* Where the config has no scaling of positions, that of the published models is used. */
static bool read_rope(mt_model_spec *s, const mt_config *c, mt_arena *arena, mt_error *err)
{
    static const char published[] = "{\"rope_type\":\"yarn\",\"factor\":32,\"truncate\":false,"
                                    "\"original_max_position_embeddings\":4096}";
    double theta;
    if (mt_rope_parameters(c))
        return mt_rope_read_one(s, c, THETA, arena, err);
    mt_config *own = mt_config_parse(published, strlen(published), err);
    mt_rope *rope = own ? mt_arena_alloc(arena, sizeof(*rope)) : NULL;
    bool ok = rope && mt_config_float(c, "rope_theta", THETA, 1, 1e12, &theta, err) &&
              mt_rope_read(rope, c, own, theta, s->layer[0].attn.head_dim, s->context, arena, err);
    mt_config_free(own);
    if (!rope)
        return mt_fail(err, MT_E_MEMORY, "no memory for the rotary embedding");
    rope->type = "yarn"; /* the name in the parsed text was freed with it */
    s->ropes = rope;
    s->rope_count = 1;
    return ok;
}

static bool read_gpt_oss(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    layer->attn.sinks = true;
    layer->attn.qkv_bias = layer->attn.o_bias = mt_config_bool(c, "attention_bias", true);
    return read_experts(s, layer, c, err) && read_windows(s, layer, c, err) && read_rope(s, c, arena, err);
}

const mt_family mt_family_gpt_oss = {
    .name = "gpt_oss",
    .defaults = {.vocab = 201088,
                 .hidden = 2880,
                 .layers = 36,
                 .heads = 64,
                 .kv_heads = 8,
                 .head_dim = 64,
                 .ffn = 2880,
                 .context = 131072,
                 .eps = 1e-5},
    .read = read_gpt_oss,
};
