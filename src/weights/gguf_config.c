/* config.json of a GGUF file (gguf_arch.h), made of its keys and, where keys do not tell, of the tensors that it has. A
   key of config.json that a family does not read does no harm, so most are written for every architecture. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/limits.h"
#include "weights/gguf_arch.h"

typedef struct maker {
    const mt_gguf *g;
    const mt_gguf_arch *arch;
    int64_t layers, heads, head_dim, hidden;
    mt_buf *out;
} maker;

/* Keys that are copied. */
static const struct {
    const char *to, *from;
    bool needed;
} numbers[] = {
    {"hidden_size", "embedding_length", true},
    {"max_position_embeddings", "context_length", true},
    {"num_attention_heads", "attention.head_count", true},
    {"num_key_value_heads", "attention.head_count_kv", false},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", false},
    {"norm_eps", "attention.layer_norm_rms_epsilon", false},
    {"layer_norm_eps", "attention.layer_norm_epsilon", false},
    {"rope_local_base_freq", "rope.freq_base_swa", false},
    {"attn_logit_softcapping", "attn_logit_softcapping", false},
    {"final_logit_softcapping", "final_logit_softcapping", false},
    {"embedding_multiplier", "embedding_scale", false},
    {"attention_multiplier", "attention.scale", false},
    {"residual_multiplier", "residual_scale", false},
    {"logits_scaling", "logit_scale", false},
    {"logit_scale", "logit_scale", false},
    {"num_experts", "expert_count", false},
    {"num_local_experts", "expert_count", false},
    {"moe_num_experts", "expert_count", false},
    {"moe_k", "expert_used_count", false},
    {"moe_num_shared_experts", "expert_shared_count", false},
    {"moe_layer_start_index", "leading_dense_block_count", false},
    {"moe_layer_interval", "interleave_moe_layer_step", false},
    {"n_routed_experts", "expert_count", false},
    {"num_experts_per_tok", "expert_used_count", false},
    {"top_k_experts", "expert_used_count", false},
    {"moe_intermediate_size", "expert_feed_forward_length", false},
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length", false},
    {"n_shared_experts", "expert_shared_count", false},
    {"first_k_dense_replace", "leading_dense_block_count", false},
    {"num_dense_layers", "leading_dense_block_count", false},
    {"n_group", "expert_group_count", false},
    {"topk_group", "expert_group_used_count", false},
    {"routed_scaling_factor", "expert_weights_scale", false},
    {"linear_conv_kernel_dim", "ssm.conv_kernel", false},
    {"linear_key_head_dim", "ssm.state_size", false},
    {"linear_num_key_heads", "ssm.group_count", false},
    {"linear_num_value_heads", "ssm.time_step_rank", false},
    {"conv_L_cache", "shortconv.l_cache", false},
    {"num_kv_shared_layers", "attention.shared_kv_layers", false},
    {"hidden_size_per_layer_input", "embedding_length_per_layer_input", false},
};

static int64_t own(const maker *m, const char *key, int64_t fallback)
{
    return mt_gguf_own_int(m->g, m->arch, key, fallback);
}

static void put_int(maker *m, const char *key, int64_t value)
{
    mt_buf_printf(m->out, "\"%s\":%lld,\n", key, (long long)value);
}

/* A number that JSON does not have is left out, as if the file did not have it. */
static void put_float(maker *m, const char *key, double value)
{
    if (isfinite(value))
        mt_buf_printf(m->out, "\"%s\":%.17g,\n", key, value);
}

static void put_bool(maker *m, const char *key, bool value)
{
    mt_buf_printf(m->out, "\"%s\":%s,\n", key, value ? "true" : "false");
}

static bool put_numbers(maker *m, mt_error *err)
{
    double eps;
    for (size_t i = 0; i < MT_COUNT(numbers); i++) {
        double value;
        const bool listed = mt_gguf_own_array(m->g, m->arch, numbers[i].from) != NULL;
        if (listed)
            put_int(m, numbers[i].to, own(m, numbers[i].from, 0));
        else if (mt_gguf_own_float(m->g, m->arch, numbers[i].from, &value))
            put_float(m, numbers[i].to, value);
        else if (numbers[i].needed)
            return mt_fail(err, MT_E_INVALID, "the file has no number \"%s.%s\"; download it again", m->arch->name,
                           numbers[i].from);
    }
    return mt_gguf_own_float(m->g, m->arch, "attention.layer_norm_rms_epsilon", &eps) ||
           mt_gguf_own_float(m->g, m->arch, "attention.layer_norm_epsilon", &eps) ||
           mt_fail(err, MT_E_INVALID,
                   "the file has no number \"%s.attention.layer_norm_rms_epsilon\"; download it again", m->arch->name);
}

/* Whether the weights of chosen experts are divided by their sum where the file does not say. */
static bool renormalises(const maker *m)
{
    return strcmp(m->arch->type, "olmoe") != 0 && strcmp(m->arch->type, "qwen2_moe") != 0;
}

/* Whether any layer has the tensor. */
static bool any_has(const maker *m, const char *name)
{
    for (int64_t i = 0; i < m->layers; i++)
        if (mt_gguf_of_layer(m->g, i, name))
            return true;
    return false;
}

static uint64_t rows_of(const maker *m, const char *name)
{
    const mt_tensor_info *t = mt_gguf_find(m->g, name);
    return t && t->dims == 2 ? t->shape[0] : 0;
}

/* Facts that only the tensors tell, not the keys. */
static void put_found(maker *m)
{
    const bool bias = any_has(m, "attn_q.bias"), mlp_bias = any_has(m, "ffn_gate.bias");
    put_int(m, "vocab_size", (int64_t)rows_of(m, "token_embd.weight"));
    if (rows_of(m, "per_layer_token_embd.weight"))
        put_int(m, "vocab_size_per_layer_input", (int64_t)rows_of(m, "per_layer_token_embd.weight"));
    put_bool(m, "tie_word_embeddings", !mt_gguf_find(m->g, "output.weight"));
    put_bool(m, "attention_bias", bias);
    put_bool(m, "attention_out_bias", any_has(m, "attn_output.bias"));
    put_bool(m, "use_qk_norm", any_has(m, "attn_q_norm.weight"));
    put_bool(m, "mlp_bias", mlp_bias);
    put_bool(m, "use_bias", bias);
    put_bool(m, "conv_bias", any_has(m, "shortconv.conv.bias"));
    put_bool(m, "use_expert_bias", any_has(m, "exp_probs_b.bias"));
    if (own(m, "expert_count", 0) > 0) {
        const char *comma = "";
        put_bool(m, "enable_moe_block", true);
        put_bool(m, "norm_topk_prob", own(m, "expert_weights_norm", renormalises(m)) != 0);
        mt_buf_puts(m->out, "\"mlp_only_layers\":[");
        for (int64_t i = 0; i < m->layers; i++)
            if (!mt_gguf_of_layer(m->g, i, "ffn_gate_inp.weight")) {
                mt_buf_printf(m->out, "%s%lld", comma, (long long)i);
                comma = ",";
            }
        mt_buf_puts(m->out, "],\n");
    }
}

/* A number of one layer: an element of an array, or the number that all layers share. */
static int64_t of_layer(const maker *m, const char *key, int64_t layer, int64_t fallback)
{
    const mt_gguf_array *a = mt_gguf_own_array(m->g, m->arch, key);
    int64_t value = fallback;
    if (!a)
        return own(m, key, fallback);
    mt_gguf_array_int(a, (size_t)layer, &value);
    return value;
}

/* The MLP's width. LFM2's config would shrink it; of Gemma 4's last layers it may be twice that of the first. */
static void put_width(maker *m)
{
    static const char key[] = "feed_forward_length";
    const int64_t first = of_layer(m, key, 0, 0);
    put_int(m, "intermediate_size", first ? first : own(m, "expert_feed_forward_length", 0));
    put_bool(m, "block_auto_adjust_ff_dim", false);
    put_bool(m, "use_double_wide_mlp", of_layer(m, key, m->layers - 1, first) > first);
}

/* Whether a layer's queries see only a window: the key has a flag for each layer, or the number of layers of which the
   last sees everything. */
static bool has_window(const maker *m, int64_t layer)
{
    static const char key[] = "attention.sliding_window_pattern";
    if (mt_gguf_own_array(m->g, m->arch, key))
        return of_layer(m, key, layer, 0) != 0;
    const int64_t period = own(m, key, 0);
    return period > 0 && layer % period < period - 1;
}

static const char *kind_of(const maker *m, int64_t layer)
{
    if (mt_gguf_of_layer(m->g, layer, "ssm_a"))
        return "linear_attention";
    if (mt_gguf_of_layer(m->g, layer, "shortconv.conv.weight"))
        return "conv";
    return has_window(m, layer) ? "sliding_attention" : "full_attention";
}

/* Kinds of layers. Where the file does not tell, the family knows them; Gemma 3 without a window has none. */
static void put_layers(maker *m)
{
    const int64_t window = own(m, "attention.sliding_window", 0);
    char key[128];
    snprintf(key, sizeof(key), "%s.attention.sliding_window_pattern", m->arch->name);
    const bool told = mt_gguf_has(m->g, key) || any_has(m, "ssm_a") || any_has(m, "shortconv.conv.weight");
    put_int(m, "num_hidden_layers", m->layers);
    if (window > 0)
        put_int(m, "sliding_window", window);
    else
        mt_buf_puts(m->out, "\"sliding_window\":null,\n");
    if (!told && window > 0)
        return;
    mt_buf_puts(m->out, "\"layer_types\":[");
    for (int64_t i = 0; i < m->layers; i++)
        mt_buf_printf(m->out, "%s\"%s\"", i ? "," : "", kind_of(m, i));
    mt_buf_puts(m->out, "],\n");
}

/* Gemma 4's layers with full attention have heads of another size and number. */
static void put_shapes(maker *m)
{
    const int64_t full = m->head_dim, narrow = own(m, "attention.key_length_swa", full);
    bool same = false;
    const char *comma = "";
    put_int(m, "head_dim", narrow);
    if (strcmp(m->arch->type, "gemma4_text") != 0)
        return;
    put_int(m, "global_head_dim", full);
    mt_buf_puts(m->out, "\"per_layer_config\":{");
    for (int64_t i = 0; i < m->layers; i++) {
        mt_buf_printf(m->out, "%s\"%lld\":{\"head_dim\":%lld,\"num_key_value_heads\":%lld}", comma, (long long)i,
                      (long long)(has_window(m, i) ? narrow : full),
                      (long long)of_layer(m, "attention.head_count_kv", i, m->heads));
        comma = ",";
        same |= mt_gguf_of_layer(m->g, i, "attn_k.weight") && !mt_gguf_of_layer(m->g, i, "attn_v.weight");
    }
    mt_buf_puts(m->out, "},\n");
    put_bool(m, "attention_k_eq_v", same);
}

/* 0, which is refused later, where it is no number. */
static float factor_at(const mt_tensor_info *t, size_t i)
{
    float value;
    memcpy(&value, t->data + i * sizeof(value), sizeof(value));
    return isfinite(value) ? value : 0;
}

/* A number, or the fallback where the file has none. */
static double number_or(const maker *m, const char *key, double fallback)
{
    double value;
    return mt_gguf_own_float(m->g, m->arch, key, &value) && isfinite(value) ? value : fallback;
}

/* The factors that frequencies are divided by; NULL: none. */
static const mt_tensor_info *factors_of(const maker *m)
{
    const mt_tensor_info *t = mt_gguf_find(m->g, "rope_freqs.weight");
    return t && t->dims == 1 && t->dtype == MT_DTYPE_F32 && t->shape[0] <= MT_LIMIT_HEAD_DIM ? t : NULL;
}

/* Gemma 4: with full attention only the first pairs of a head turn; the others' frequencies are divided by infinity,
   or nearly. */
static void put_both_ropes(maker *m, double theta)
{
    const mt_tensor_info *t = factors_of(m);
    const size_t pairs = t ? (size_t)t->shape[0] : 0;
    size_t turning = 0;
    const double local = number_or(m, "rope.freq_base_swa", 10000);
    while (turning < pairs && factor_at(t, turning) == 1)
        turning++;
    mt_buf_printf(m->out,
                  "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"proportional\",\"rope_theta\":%.17g,"
                  "\"partial_rotary_factor\":%.17g},\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":"
                  "%.17g}},\n",
                  theta, turning < pairs ? ((double)turning + 0.5) / (double)pairs : 1.0, local);
}

/* LongRoPE's factors for texts within the original context. */
static const mt_tensor_info *short_factors(const maker *m)
{
    const mt_tensor_info *t = mt_gguf_find(m->g, "rope_factors_short.weight");
    return t && t->dims == 1 && t->dtype == MT_DTYPE_F32 && t->shape[0] <= MT_LIMIT_HEAD_DIM ? t : NULL;
}

static void put_factors(maker *m, const char *key, const mt_tensor_info *t)
{
    if (!t || t->shape[0] == 0)
        return;
    mt_buf_printf(m->out, "\"%s\":[", key);
    for (size_t i = 0; i < t->shape[0]; i++)
        mt_buf_printf(m->out, "%s%.17g", i ? "," : "", (double)factor_at(t, i));
    mt_buf_puts(m->out, "],\n");
}

/* Members of the object that describes a rotary embedding. */
static void put_scaling(maker *m, const char *type)
{
    static const struct {
        const char *to, *from;
    } keys[] = {{"factor", "rope.scaling.factor"},
                {"original_max_position_embeddings", "rope.scaling.original_context_length"},
                {"attention_factor", "rope.scaling.yarn_attn_factor"},
                {"attention_factor", "rope.scaling.attn_factor"},
                {"beta_fast", "rope.scaling.yarn_beta_fast"},
                {"beta_slow", "rope.scaling.yarn_beta_slow"},
                {"mscale", "rope.scaling.yarn_log_multiplier"},
                {"mscale_all_dim", "rope.scaling.yarn_log_multiplier"},
                {"llama_4_scaling_beta", "attention.temperature_scale"}};
    const mt_gguf_array *sections = mt_gguf_own_array(m->g, m->arch, "rope.dimension_sections");
    const bool alone = strncmp(m->arch->name, "glm", 3) == 0; /* GLM without pictures has one axis */
    double value;
    for (size_t i = 0; i < MT_COUNT(keys); i++)
        if (mt_gguf_own_float(m->g, m->arch, keys[i].from, &value))
            put_float(m, keys[i].to, value);
    /* The published gpt-oss has an exact range, which its file cannot say. */
    put_bool(m, "truncate", strcmp(m->arch->type, "gpt_oss") != 0);
    for (size_t i = 0; (sections || alone) && i < 3; i++) {
        int64_t number = i ? 0 : own(m, "rope.dimension_count", m->head_dim) / 2;
        if (sections)
            mt_gguf_array_int(sections, i, &number);
        mt_buf_printf(m->out, "%s%lld%s", i ? "," : "\"mrope_section\":[", (long long)number, i == 2 ? "],\n" : "");
    }
    put_factors(m, "factors", factors_of(m));
    put_factors(m, "short_factor", short_factors(m));
    mt_buf_printf(m->out, "\"rope_type\":\"%s\"},\n", type);
}

static void put_rope(maker *m)
{
    const double theta = number_or(m, "rope.freq_base", 10000);
    mt_gguf_text scaling = {0};
    char key[128], type[16] = "default";
    const int64_t turned = own(m, "rope.dimension_count", m->head_dim);
    put_float(m, "rope_theta", theta);
    /* half an element more, so that the product with head_dim is never rounded below */
    put_float(m, "partial_rotary_factor", turned < m->head_dim ? ((double)turned + 0.5) / (double)m->head_dim : 1.0);
    if (strcmp(m->arch->type, "gemma4_text") == 0) {
        put_both_ropes(m, theta);
        return;
    }
    snprintf(key, sizeof(key), "%s.rope.scaling.type", m->arch->name);
    if (mt_gguf_string(m->g, key, &scaling) && !mt_gguf_text_is(scaling, "none") && scaling.len < sizeof(type))
        for (size_t i = 0; i <= scaling.len; i++)
            type[i] = i < scaling.len && scaling.at[i] >= 'a' && scaling.at[i] <= 'z' ? scaling.at[i] : '\0';
    if (factors_of(m))
        snprintf(type, sizeof(type), "factors");
    if (short_factors(m))
        snprintf(type, sizeof(type), "longrope");
    mt_buf_puts(m->out, "\"rope_scaling\":{");
    put_scaling(m, type);
}

/* The scale of queries, as Gemma's configs have it. */
static void put_scale(maker *m)
{
    double scale = 0, scalar = (double)m->head_dim;
    if (mt_gguf_own_float(m->g, m->arch, "attention.scale", &scale) && scale > 0)
        scalar = 1 / (scale * scale);
    else if (m->arch->wide && m->layers == m->arch->wide)
        scalar = (double)(m->hidden / m->heads);
    put_float(m, "query_pre_attn_scalar", scalar);
}

/* Families that share an architecture. */
static const char *type_of(const maker *m)
{
    double scale;
    if (strcmp(m->arch->name, "mistral3") == 0 &&
        mt_gguf_own_float(m->g, m->arch, "attention.temperature_scale", &scale))
        return "ministral3";
    if (strcmp(m->arch->name, "glm4") == 0 && !any_has(m, "attn_q.bias"))
        return "glm_ocr";
    if (strcmp(m->arch->name, "glm4moe") == 0 && any_has(m, "attn_q_norm.weight"))
        return "glm4_moe";
    if (strcmp(m->arch->name, "llama") == 0 && own(m, "expert_count", 0) > 0)
        return "mixtral";
    if (strcmp(m->arch->name, "olmo2") == 0 && own(m, "attention.sliding_window", 0) > 0)
        return "olmo3";
    return m->arch->type;
}

/* Checks what other numbers are computed from. */
static bool check_sizes(const maker *m, mt_error *err)
{
    const struct {
        const char *key;
        int64_t value;
    } sizes[] = {{"block_count", m->layers}, {"embedding_length", m->hidden}, {"attention.head_count", m->heads}};
    for (size_t i = 0; i < MT_COUNT(sizes); i++)
        if (sizes[i].value < 1)
            return mt_fail(err, MT_E_INVALID, "the file's \"%s.%s\" is %lld, or is not there; download it again",
                           m->arch->name, sizes[i].key, (long long)own(m, sizes[i].key, 0));
    if (mt_gguf_tensors(m->g) == 0)
        return mt_fail(err, MT_E_INVALID,
                       "the file has keys and a vocabulary, but no weights; take another file of the model");
    return rows_of(m, "token_embd.weight") > 0 ||
           mt_fail(err, MT_E_INVALID, "the file has no matrix \"token_embd.weight\"; download it again");
}

bool mt_gguf_config(const mt_gguf *g, mt_buf *out, mt_error *err)
{
    maker m = {.g = g, .arch = mt_gguf_arch_of(g, err), .out = out};
    if (!m.arch)
        return false;
    if (m.arch->flags & MT_GGUF_ENCODER)
        return mt_gguf_encoder_config(g, m.arch, out, err);
    m.layers = mt_gguf_layers(g, m.arch);
    m.hidden = own(&m, "embedding_length", 0);
    m.heads = own(&m, "attention.head_count", 0);
    if (!check_sizes(&m, err))
        return false;
    m.head_dim = own(&m, "attention.key_length", m.hidden / m.heads);
    mt_buf_puts(out, "{\n");
    if (!put_numbers(&m, err))
        return false;
    put_found(&m);
    put_width(&m);
    put_layers(&m);
    put_shapes(&m);
    put_rope(&m);
    put_scale(&m);
    const int64_t values = own(&m, "ssm.time_step_rank", 0);
    if (values > 0)
        put_int(&m, "linear_value_head_dim", own(&m, "ssm.inner_size", 0) / values);
    mt_buf_printf(out, "\"model_type\":\"%s\"\n}\n", type_of(&m));
    return !out->full || mt_fail(err, MT_E_TOO_LARGE, "the file's config would have more than %zu bytes", out->limit);
}
