/* Families with latent attention: DeepSeek V3, Kimi K2 and the text of K2.5, which are DeepSeek V3, and GLM-4.7-Flash;
   and those of them whose layers choose the positions they attend to: DeepSeek V3.2 and GLM-5. Their experts are
   weighed by sigmoids. */
#include <math.h>
#include <string.h>

#include "device/limits.h"
#include "models/family.h"
#include "models/limits.h"
#include "weights/limits.h"

/* Whether layer i has experts. */
static bool is_sparse(const mt_config *c, size_t i, size_t dense)
{
    static const char key[] = "mlp_layer_types";
    const char *type = mt_config_array_string(c, key, i);
    return type ? strcmp(type, "sparse") == 0 : i >= dense;
}

/* Routers of other kinds, as DeepSeek V2 has, are refused. */
static bool check_router(const mt_config *c, mt_error *err)
{
    const char *score = mt_config_string(c, "scoring_func", "sigmoid");
    const char *method = mt_config_string(c, "topk_method", "noaux_tc");
    int64_t every;
    if (strcmp(score, "sigmoid") != 0)
        return mt_fail(err, MT_E_UNSUPPORTED, "\"scoring_func\" is \"%.64s\"; sigmoid is known", score);
    if (strcmp(method, "noaux_tc") != 0)
        return mt_fail(err, MT_E_UNSUPPORTED, "\"topk_method\" is \"%.64s\"; noaux_tc is known", method);
    return mt_config_int(c, "moe_layer_freq", 1, 1, 1, &every, err);
}

bool mt_scored_experts_read(const mt_model_spec *s, mt_layer_spec *layer, const mt_config *c,
                            const mt_expert_defaults *d, mt_error *err)
{
    mt_moe_spec moe = {.correction = !d->softmax,
                       .routing = {.kind = d->softmax ? MT_ROUTE_SOFTMAX : MT_ROUTE_SIGMOID,
                                   .renormalise = mt_config_bool(c, "norm_topk_prob", true)}};
    int64_t groups, top_groups, dense, shared;
    double scaling;
    const char *key = d->experts_key                          ? d->experts_key
                      : mt_config_has(c, "num_local_experts") ? "num_local_experts"
                                                              : "n_routed_experts";
    if (!mt_size_read(c, key, d->experts, MT_LIMIT_EXPERTS, &moe.experts, err) ||
        !mt_size_read(c, "num_experts_per_tok", d->top_k, MT_LIMIT_EXPERTS_PER_TOKEN, &moe.top_k, err) ||
        !mt_size_read(c, "moe_intermediate_size", d->ffn, MT_LIMIT_WIDTH, &moe.ffn, err) ||
        !mt_config_int(c, d->shared_key ? d->shared_key : "n_shared_experts", 1, 0, 64, &shared, err) ||
        !mt_config_int(c, "first_k_dense_replace", d->dense, 0, MT_LIMIT_LAYERS, &dense, err) ||
        !mt_config_int(c, "n_group", d->groups, 1, 64, &groups, err) ||
        !mt_config_int(c, "topk_group", d->top_groups < groups ? d->top_groups : groups, 1, groups, &top_groups, err) ||
        !mt_config_float(c, "routed_scaling_factor", d->scaling, 0, 1e6, &scaling, err))
        return false;
    if (moe.top_k > moe.experts || moe.experts % groups || moe.experts / groups < (groups > 1 ? 2 : 1))
        return mt_fail(err, MT_E_INVALID, "%u of %u experts in %d groups cannot be chosen", moe.top_k, moe.experts,
                       (int)groups);
    moe.routing.scaling = (float)scaling;
    moe.routing.groups = groups > 1 ? (uint32_t)groups : 0;
    moe.routing.top_groups = groups > 1 ? (uint32_t)top_groups : 0;
    moe.shared_ffn = (uint32_t)shared * moe.ffn;
    for (size_t i = 0; i < s->layers; i++) {
        layer[i].sparse = is_sparse(c, i, (size_t)dense);
        layer[i].moe = layer[i].sparse ? moe : (mt_moe_spec){0};
    }
    return true;
}

/* The factor of the scale of scores where YaRN stretches the context. */
static bool read_yarn(mt_attn_spec *a, const mt_config *c, mt_error *err)
{
    const mt_config *p = mt_rope_parameters(c);
    double factor, m;
    if (!p || strcmp(mt_config_string(p, "rope_type", mt_config_string(p, "type", "default")), "default") == 0)
        return true;
    if (!mt_config_float(p, "factor", 1, 1e-6, 1e6, &factor, err) ||
        !mt_config_float(p, "mscale_all_dim", 0, 0, 1e6, &m, err))
        return false;
    const double scale = factor > 1 && m > 0 ? 0.1 * m * log(factor) + 1 : 1;
    a->scale = (float)(scale * scale / sqrt((double)a->latent.plain + a->latent.turned));
    return true;
}

bool mt_latent_read(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, const mt_latent_spec *d,
                    mt_arena *arena, mt_error *err)
{
    mt_attn_spec *a = &layer->attn;
    mt_latent_spec *l = &a->latent;
    int64_t queries;
    const bool narrow = !mt_config_names(c, "q_lora_rank") || mt_config_has(c, "q_lora_rank"); /* null: there is none */
    *l = (mt_latent_spec){.eps = 1e-6f};
    if (!mt_size_read(c, "kv_lora_rank", d->width, MT_LIMIT_HEAD_DIM, &l->width, err) ||
        !mt_config_int(c, "q_lora_rank", narrow ? d->queries : 0, 0, MT_LIMIT_WIDTH, &queries, err) ||
        !mt_size_read(c, "qk_nope_head_dim", d->plain, MT_LIMIT_HEAD_DIM, &l->plain, err) ||
        !mt_size_read(c, "qk_rope_head_dim", d->turned, MT_LIMIT_HEAD_DIM, &l->turned, err) ||
        !mt_size_read(c, "v_head_dim", d->value, MT_LIMIT_HEAD_DIM, &l->value, err))
        return false;
    l->queries = (uint32_t)queries;
    if (l->turned % 2 || l->width + l->turned > MT_LIMIT_HEAD_DIM)
        return mt_fail(err, MT_E_INVALID,
                       "\"kv_lora_rank\" is %u and \"qk_rope_head_dim\" is %u; the second must be even, and both "
                       "together at most %d",
                       l->width, l->turned, MT_LIMIT_HEAD_DIM);
    a->qkv_bias = a->o_bias = mt_config_bool(c, "attention_bias", false);
    a->scale = 1 / sqrtf((float)(l->plain + l->turned));
    a->kv_heads = 1;
    a->head_dim = l->turned; /* as rotary embeddings see it */
    mt_layers_repeat(s, layer);
    if (!read_yarn(a, c, err) || !mt_rope_read_one(s, c, 10000, arena, err))
        return false;
    mt_rope *rope = mt_arena_alloc(arena, sizeof(*rope));
    if (!rope)
        return mt_fail(err, MT_E_MEMORY, "no memory for the rotary embedding");
    *rope = s->ropes[0];
    rope->pairs = mt_config_bool(c, "rope_interleave", true);
    s->ropes = rope;
    a->head_dim = l->width + l->turned;
    mt_layers_repeat(s, layer);
    return true;
}

static bool read_deepseek(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    static const mt_latent_spec latent = {.width = 512, .queries = 1536, .plain = 128, .turned = 64, .value = 128};
    static const mt_expert_defaults experts = {
        .experts = 256, .top_k = 8, .ffn = 2048, .groups = 8, .top_groups = 4, .dense = 3, .scaling = 2.5};
    return check_router(c, err) && mt_latent_read(s, layer, c, &latent, arena, err) &&
           mt_scored_experts_read(s, layer, c, &experts, err);
}

static bool read_glm_lite(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    static const mt_latent_spec latent = {.width = 512, .queries = 768, .plain = 192, .turned = 64, .value = 256};
    static const mt_expert_defaults experts = {
        .experts = 64, .top_k = 4, .ffn = 1536, .groups = 1, .top_groups = 1, .dense = 1, .scaling = 1.8};
    return check_router(c, err) && mt_latent_read(s, layer, c, &latent, arena, err) &&
           mt_scored_experts_read(s, layer, c, &experts, err);
}

/* ---- choices of positions ---- */

/* Whether layer i takes the choice of an earlier one: by a list, a pattern of letters, or every how many layers there
   is a choice of their own. */
static bool takes_choice(const mt_config *c, size_t i, int64_t every, int64_t offset)
{
    const char *type = mt_config_array_string(c, "indexer_types", i);
    const char *pattern = mt_config_string(c, "index_topk_pattern", "");
    if (!type)
        type = mt_config_array_string(c, "index_topk_pattern", i);
    if (type)
        return strcmp(type, "shared") == 0;
    if (i < strlen(pattern))
        return pattern[i] == 'S';
    const int64_t beyond = (int64_t)i - offset + 1;
    return beyond > 0 && beyond % every != 0;
}

/* Reads what chooses. defaults: what the config may leave out; `pairs` holds where the config does not say. shares:
   layers may take an earlier one's choice. */
static bool read_index(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, const mt_index_spec *d, bool shares,
                       mt_error *err)
{
    mt_index_spec index = {.pairs = mt_config_bool(c, "indexer_rope_interleave", d->pairs)};
    const mt_latent_spec *latent = &layer->attn.latent;
    int64_t every = 1, offset = 2;
    if (!mt_size_read(c, "index_topk", d->top, MT_LIMIT_CHOSEN, &index.top, err) ||
        !mt_size_read(c, "index_n_heads", d->heads, MT_LIMIT_WIDTH, &index.heads, err) ||
        !mt_size_read(c, "index_head_dim", d->head_dim, MT_LIMIT_HEAD_DIM, &index.head_dim, err) ||
        (shares && (!mt_config_int(c, "index_topk_freq", 1, 0, MT_LIMIT_LAYERS, &every, err) ||
                    !mt_config_int(c, "index_skip_topk_offset", 2, -MT_LIMIT_LAYERS, MT_LIMIT_LAYERS, &offset, err))))
        return false;
    if (latent->queries == 0 || index.head_dim < latent->turned)
        return mt_fail(err, MT_E_INVALID,
                       "\"index_head_dim\" is %u, \"qk_rope_head_dim\" %u and \"q_lora_rank\" %u; the first may not "
                       "be less than the second, and the third not be missing",
                       index.head_dim, latent->turned, latent->queries);
    for (size_t i = 0; i < s->layers; i++) {
        layer[i].attn.index = index;
        if (shares && takes_choice(c, i, every < 1 ? 1 : every, offset))
            layer[i].attn.index.heads = 0;
    }
    return true;
}

static bool read_deepseek_v32(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena,
                              mt_error *err)
{
    static const mt_index_spec index = {.top = 2048, .heads = 64, .head_dim = 128};
    return read_deepseek(s, layer, c, arena, err) && read_index(s, layer, c, &index, false, err);
}

static bool read_glm_dsa(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    static const mt_latent_spec latent = {.width = 512, .queries = 2048, .plain = 192, .turned = 64, .value = 256};
    static const mt_expert_defaults experts = {
        .experts = 256, .top_k = 8, .ffn = 2048, .groups = 1, .top_groups = 1, .dense = 3, .scaling = 2.5};
    static const mt_index_spec index = {.top = 2048, .heads = 32, .head_dim = 128, .pairs = true};
    return check_router(c, err) && mt_latent_read(s, layer, c, &latent, arena, err) &&
           mt_scored_experts_read(s, layer, c, &experts, err) && read_index(s, layer, c, &index, true, err);
}

#define DEEPSEEK_DEFAULTS                                                                                           \
    {                                                                                                               \
        .vocab = 129280, .hidden = 7168, .layers = 61, .heads = 128, .head_dim = 64, .ffn = 18432, .context = 4096, \
        .eps = 1e-6                                                                                                 \
    }

const mt_family mt_family_deepseek_v3 = {.name = "deepseek_v3", .defaults = DEEPSEEK_DEFAULTS, .read = read_deepseek};
const mt_family mt_family_kimi_k2 = {.name = "kimi_k2", .defaults = DEEPSEEK_DEFAULTS, .read = read_deepseek};
const mt_family mt_family_kimi_k25 = {.name = "kimi_k25", .beneath = {&mt_family_deepseek_v3, &mt_family_kimi_k2}};
const mt_family mt_family_glm4_moe_lite = {.name = "glm4_moe_lite",
                                           .defaults = {.vocab = 154880,
                                                        .hidden = 2048,
                                                        .layers = 47,
                                                        .heads = 20,
                                                        .head_dim = 64,
                                                        .ffn = 10240,
                                                        .context = 202752,
                                                        .eps = 1e-5},
                                           .read = read_glm_lite};
const mt_family mt_family_deepseek_v32 = {.name = "deepseek_v32",
                                          .defaults = {.vocab = 129280,
                                                       .hidden = 7168,
                                                       .layers = 61,
                                                       .heads = 128,
                                                       .head_dim = 64,
                                                       .ffn = 18432,
                                                       .context = 163840,
                                                       .eps = 1e-6},
                                          .read = read_deepseek_v32};
const mt_family mt_family_glm_moe_dsa = {.name = "glm_moe_dsa",
                                         .defaults = {.vocab = 154880,
                                                      .hidden = 6144,
                                                      .layers = 78,
                                                      .heads = 64,
                                                      .head_dim = 64,
                                                      .ffn = 12288,
                                                      .context = 202752,
                                                      .eps = 1e-5},
                                         .read = read_glm_dsa};
