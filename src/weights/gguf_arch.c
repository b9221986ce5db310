/* The architectures that motet runs (gguf_arch.h). */
#include "weights/gguf_arch.h"

#include <stdio.h>
#include <string.h>

#include "weights/elsewhere.h"
#include "weights/limits.h"

static const mt_gguf_rename gemma[] = {
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
    {"post_ffw_norm_1", "post_feedforward_layernorm_1"},
    {"post_ffw_norm_2", "post_feedforward_layernorm_2"},
    {"pre_ffw_norm_2", "pre_feedforward_layernorm_2"},
    {"ffn_gate_inp.scale", "router.scale"},
    {"ffn_down_exps.scale", "router.per_expert_scale"},
    {"ffn_gate_inp", "router.proj"},
    {"ffn_gate_exps", "experts.gate_proj"},
    {"ffn_up_exps", "experts.up_proj"},
    {"ffn_down_exps", "experts.down_proj"},
    {"ffn_gate_up_exps", "experts.gate_up_proj"},
    {"layer_output_scale.weight", "layer_scalar"},
    {"inp_gate", "per_layer_input_gate"},
    {"proj", "per_layer_projection"},
    {"post_norm", "post_per_layer_input_norm"},
    {NULL, NULL},
};

static const mt_gguf_rename glm[] = {
    {"post_attention_norm", "post_self_attn_layernorm"},
    {"post_ffw_norm", "post_mlp_layernorm"},
    {"ffn_up", "mlp.gate_up_proj"}, /* gate and up are one matrix */
    {NULL, NULL},
};

static const mt_gguf_rename behind[] = {
    {"post_ffw_norm", "post_feedforward_layernorm"},
    {NULL, NULL},
};

static const mt_gguf_rename phi3[] = {
    {"attn_qkv", "self_attn.qkv_proj"},
    {"ffn_up", "mlp.gate_up_proj"}, /* gate and up are one matrix */
    {NULL, NULL},
};

static const mt_gguf_rename ernie_moe[] = {
    {"exp_probs_b.bias", "mlp.moe_statics.e_score_correction_bias"},
    {NULL, NULL},
};

/* Of Mixtral, whose files have the architecture of Llama, and MiniMax. */
static const mt_gguf_rename mixtral[] = {
    {"exp_probs_b.bias", "block_sparse_moe.e_score_correction_bias"},
    {"ffn_gate_inp", "block_sparse_moe.gate"},
    {"ffn_gate_exps", "block_sparse_moe.experts.gate_proj"},
    {"ffn_up_exps", "block_sparse_moe.experts.up_proj"},
    {"ffn_down_exps", "block_sparse_moe.experts.down_proj"},
    {NULL, NULL},
};

static const mt_gguf_rename lfm2[] = {
    {"attn_norm", "operator_norm"},
    {"ffn_norm", "ffn_norm"},
    {"attn_q_norm", "self_attn.q_layernorm"},
    {"attn_k_norm", "self_attn.k_layernorm"},
    {"attn_output", "self_attn.out_proj"},
    {"ffn_gate", "feed_forward.w1"},
    {"ffn_up", "feed_forward.w3"},
    {"ffn_down", "feed_forward.w2"},
    {"ffn_gate_inp", "feed_forward.gate"},
    {"ffn_gate_exps", "feed_forward.experts.gate_proj"},
    {"ffn_up_exps", "feed_forward.experts.up_proj"},
    {"ffn_down_exps", "feed_forward.experts.down_proj"},
    {"exp_probs_b.bias", "feed_forward.expert_bias"},
    {NULL, NULL},
};

static const mt_gguf_rename bert[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"position_embd", "embeddings.position_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"token_embd_norm", "embeddings.LayerNorm"},
    {"cls", "classifier.dense"},
    {"cls.output", "classifier.out_proj"},
    {"attn_q", "attention.self.query"},
    {"attn_k", "attention.self.key"},
    {"attn_v", "attention.self.value"},
    {"attn_output", "attention.output.dense"},
    {"attn_output_norm", "attention.output.LayerNorm"},
    {"ffn_up", "intermediate.dense"},
    {"ffn_down", "output.dense"},
    {"layer_output_norm", "output.LayerNorm"},
    {NULL, NULL},
};

#define QWEN_NEXT (MT_GGUF_PLUS_ONE | MT_GGUF_RECURRENT | MT_GGUF_DRAFTS)

static const mt_gguf_arch archs[] = {
    {.name = "llama", .type = "llama", .flags = MT_GGUF_TURNED, .renames = mixtral},
    {.name = "mistral3", .type = "mistral", .flags = MT_GGUF_TURNED | MT_GGUF_DENSE},
    {.name = "qwen2", .type = "qwen2"},
    {.name = "qwen2vl", .type = "qwen2_vl"},
    {.name = "qwen3", .type = "qwen3"},
    {.name = "qwen3moe", .type = "qwen3_moe"},
    {.name = "qwen3vl", .type = "qwen3_vl"},
    {.name = "qwen3vlmoe", .type = "qwen3_vl_moe"},
    {.name = "qwen3next", .type = "qwen3_next", .flags = QWEN_NEXT},
    {.name = "qwen35", .type = "qwen3_5_text", .flags = QWEN_NEXT | MT_GGUF_TILED},
    {.name = "qwen35moe", .type = "qwen3_5_moe_text", .flags = QWEN_NEXT | MT_GGUF_TILED},
    {.name = "gemma2", .type = "gemma2", .flags = MT_GGUF_PLUS_ONE, .renames = gemma, .wide = 46},
    {.name = "gemma3", .type = "gemma3_text", .flags = MT_GGUF_PLUS_ONE, .renames = gemma, .wide = 62},
    {.name = "gemma4", .type = "gemma4_text", .renames = gemma},
    {.name = "gpt-oss", .type = "gpt_oss"},
    {.name = "lfm2", .type = "lfm2", .renames = lfm2},
    {.name = "lfm2moe", .type = "lfm2_moe", .renames = lfm2},
    {.name = "glm4", .type = "glm4v", .flags = MT_GGUF_HALVED, .renames = glm},
    {.name = "glm4moe", .type = "glm4v_moe"},
    {.name = "paddleocr", .type = "paddleocr_vl"},
    {.name = "seed_oss", .type = "seed_oss"},
    {.name = "smollm3", .type = "smollm3", .flags = MT_GGUF_TURNED},
    {.name = "granite", .type = "granite", .flags = MT_GGUF_TURNED},
    {.name = "phi3", .type = "phi3", .renames = phi3},
    {.name = "gemma", .type = "gemma", .flags = MT_GGUF_PLUS_ONE},
    {.name = "olmo2", .type = "olmo2", .renames = behind},
    {.name = "olmoe", .type = "olmoe"},
    {.name = "exaone4", .type = "exaone4", .renames = behind},
    {.name = "ernie4_5", .type = "ernie4_5"},
    {.name = "ernie4_5-moe", .type = "ernie4_5_moe", .renames = ernie_moe},
    {.name = "minimax-m2", .type = "minimax_m2", .renames = mixtral},
    {.name = "qwen2moe", .type = "qwen2_moe"},
    {.name = "command-r", .type = "cohere"},
    {.name = "cohere2", .type = "cohere2"},
    {.name = "bert", .type = "bert", .flags = MT_GGUF_ENCODER, .renames = bert},
};

static bool fail_unknown(mt_gguf_text name, mt_error *err)
{
    char type[65];

    snprintf(type, sizeof(type), "%.*s", (int)(name.len < 64 ? name.len : 64), name.at);
    return mt_fail_elsewhere("architecture", type, MT_ELSEWHERE_ADVICE, err);
}

/* Refuses models whose architecture has the name of another family's. */
static bool check(const mt_gguf *g, const mt_gguf_arch *arch, mt_error *err)
{
    if ((arch->flags & MT_GGUF_DENSE) && mt_gguf_own_int(g, arch, "expert_count", 0) > 0)
        return mt_fail(err, MT_E_UNSUPPORTED, "a GGUF file of architecture \"%s\" with experts is none that motet runs",
                       arch->name);
    return true;
}

static const mt_gguf_arch *find(const char *name)
{
    for (size_t i = 0; i < MT_COUNT(archs); i++)
        if (strcmp(archs[i].name, name) == 0)
            return &archs[i];
    return NULL;
}

bool mt_gguf_arch_known(const char *name)
{
    return find(name) != NULL;
}

bool mt_gguf_arch_encodes(const char *name)
{
    const mt_gguf_arch *arch = find(name);
    return arch && (arch->flags & MT_GGUF_ENCODER);
}

/* Refuses files that go with a model and are none. */
static bool check_type(const mt_gguf *g, mt_error *err)
{
    mt_gguf_text type;
    if (!mt_gguf_string(g, "general.type", &type))
        return true;
    if (mt_gguf_text_is(type, "adapter"))
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "the file is an adapter (LoRA) and no model; merge it into the model that it was made for");
    if (mt_gguf_text_is(type, "imatrix"))
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "the file is an importance matrix, from which quantisations are made, and no model; take one of "
                       "these");
    return true;
}

const mt_gguf_arch *mt_gguf_arch_of(const mt_gguf *g, mt_error *err)
{
    static const char key[] = "general.architecture";
    mt_gguf_text name;
    if (!check_type(g, err))
        return NULL;
    if (!mt_gguf_string(g, key, &name)) {
        mt_fail(err, MT_E_INVALID, "the file has no \"%s\"; download it again", key);
        return NULL;
    }
    for (size_t i = 0; i < MT_COUNT(archs); i++)
        if (mt_gguf_text_is(name, archs[i].name))
            return check(g, &archs[i], err) ? &archs[i] : NULL;
    fail_unknown(name, err);
    return NULL;
}

static void full_key(char out[128], const mt_gguf_arch *arch, const char *key)
{
    snprintf(out, 128, "%s.%s", arch->name, key);
}

const mt_gguf_array *mt_gguf_own_array(const mt_gguf *g, const mt_gguf_arch *arch, const char *key)
{
    char full[128];
    full_key(full, arch, key);
    return mt_gguf_array_of(g, full);
}

int64_t mt_gguf_own_int(const mt_gguf *g, const mt_gguf_arch *arch, const char *key, int64_t fallback)
{
    const mt_gguf_array *a = mt_gguf_own_array(g, arch, key);
    char full[128];
    int64_t value = fallback, one = 0;
    full_key(full, arch, key);
    if (mt_gguf_int(g, full, &value) || !a)
        return value;
    for (size_t i = 0; i < mt_gguf_count(a); i++)
        if (mt_gguf_array_int(a, i, &one) && (i == 0 || one > value))
            value = one;
    return value;
}

bool mt_gguf_own_float(const mt_gguf *g, const mt_gguf_arch *arch, const char *key, double *out)
{
    char full[128];
    full_key(full, arch, key);
    return mt_gguf_float(g, full, out);
}

int64_t mt_gguf_layers(const mt_gguf *g, const mt_gguf_arch *arch)
{
    const int64_t all = mt_gguf_own_int(g, arch, "block_count", 0);
    const int64_t drafts = mt_gguf_own_int(g, arch, "nextn_predict_layers", 0);
    return all > 0 && all <= MT_LIMIT_LAYERS && drafts >= 0 && drafts < all ? all - drafts : 0;
}

const mt_tensor_info *mt_gguf_of_layer(const mt_gguf *g, int64_t layer, const char *name)
{
    char full[128];
    snprintf(full, sizeof(full), "blk.%lld.%s", (long long)layer, name);
    return mt_gguf_find(g, full);
}
