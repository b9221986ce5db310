/* Lists the tensors of a model by name and shape (synth.h), as Hugging Face publishes them or as in MLX conversions. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "synth/synth.h"

typedef struct planner {
    mt_synth_plan *plan;
    const mt_synth_model *model;
    const mt_synth_layout *layout;
    bool plain;  /* matrices are not quantised, whatever the layout says */
    char at[96]; /* the module being listed: prefix of every name */
} planner;

static bool is_mlx(const planner *p)
{
    return p->layout->bits != 0;
}

static void enter(planner *p, const char *fmt, ...) MT_PRINTF(2, 3);
static void enter(planner *p, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(p->at, sizeof(p->at), fmt, args);
    va_end(args);
}

/* Adds a bf16 tensor "at.name" of the default kind; the caller sets the rest and its dimensions. */
static mt_synth_tensor *add(planner *p, const char *name, const char *suffix)
{
    mt_synth_plan *plan = p->plan;
    mt_synth_tensor *t;

    if (plan->count == plan->capacity) {
        size_t grown = plan->capacity ? 2 * plan->capacity : 512;
        plan->tensors = mt_realloc(plan->tensors, plan->capacity * sizeof(*t), grown * sizeof(*t));
        plan->capacity = grown;
    }
    t = &plan->tensors[plan->count++];
    snprintf(t->name, sizeof(t->name), "%s%s%s%s", p->at, *p->at ? "." : "", name, suffix);
    t->dtype = "BF16";
    t->element_size = 2;
    t->kind = MT_SYNTH_NORMAL;
    t->stream = mt_hash(t->name, strlen(t->name));
    return t;
}

static void set_dims(mt_synth_tensor *t, size_t ndim, const size_t *dims)
{
    t->ndim = ndim;
    memcpy(t->dims, dims, ndim * sizeof(*dims));
}

static void vector(planner *p, const char *name, size_t size, double mean, double spread)
{
    mt_synth_tensor *t = add(p, name, "");

    set_dims(t, 1, (size_t[]){size});
    t->mean = (float)mean;
    t->spread = (float)spread;
}

static void norm(planner *p, const char *name, size_t size)
{
    bool offset = p->model->family == MT_SYNTH_GEMMA3 || (p->model->family == MT_SYNTH_QWEN3_5 && !is_mlx(p));

    vector(p, name, size, offset ? 0.0 : 1.0, 0.1);
}

static void dense(planner *p, const char *name, size_t ndim, const size_t *dims, double spread)
{
    mt_synth_tensor *t = add(p, name, ".weight");

    set_dims(t, ndim, dims);
    t->spread = (float)spread;
}

/* MLX affine: codes, scales, biases. Codes are uniform over their range: their spread is 2^bits / sqrt(12) steps. */
static void quantised(planner *p, const char *name, size_t ndim, const size_t *dims, double spread, unsigned bits)
{
    size_t packed[3], groups[3], last = ndim - 1;
    mt_synth_tensor *t = add(p, name, ".weight");
    uint64_t stream;

    memcpy(packed, dims, ndim * sizeof(*dims));
    memcpy(groups, dims, ndim * sizeof(*dims));
    packed[last] = dims[last] * bits / 32;
    groups[last] = dims[last] / p->layout->group;
    set_dims(t, ndim, packed);
    t->dtype = "U32";
    t->element_size = 4;
    t->kind = MT_SYNTH_CODES;

    t = add(p, name, ".scales");
    set_dims(t, ndim, groups);
    t->kind = MT_SYNTH_SCALES;
    t->spread = (float)(spread * sqrt(12) / (1u << bits));
    stream = t->stream;

    t = add(p, name, ".biases");
    set_dims(t, ndim, groups);
    t->kind = MT_SYNTH_BIASES;
    t->mean = (float)((1u << bits) - 1) / 2;
    t->spread = t[-1].spread;
    t->stream = stream;
}

/* Bytes and, for each block of them, a scale of about the same size. */
static void fp8(planner *p, const char *name, const size_t dims[2], double spread)
{
    const size_t block = MT_SYNTH_FP8_BLOCK;
    mt_synth_tensor *t = add(p, name, ".weight");

    set_dims(t, 2, dims);
    t->dtype = "F8_E4M3";
    t->element_size = 1;
    t->kind = MT_SYNTH_E4M3;

    t = add(p, name, ".weight_scale_inv");
    set_dims(t, 2, (size_t[]){(dims[0] + block - 1) / block, (dims[1] + block - 1) / block});
    t->dtype = "F32";
    t->element_size = 4;
    t->mean = (float)(spread / MT_SYNTH_E4M3_SPREAD);
    t->spread = t->mean / 10;
}

/* Embeddings, the head and towers stay bf16 in FP8 checkpoints. */
static bool is_fp8(const planner *p)
{
    return p->layout->fp8 && !p->plain && strstr(p->at, "layers.");
}

/* A matrix that MLX conversions quantise where its rows can be divided into groups. */
static void matrix(planner *p, const char *name, size_t ndim, const size_t *dims, double spread, unsigned bits)
{
    if (bits && !p->plain && dims[ndim - 1] % p->layout->group == 0)
        quantised(p, name, ndim, dims, spread, bits);
    else
        dense(p, name, ndim, dims, spread);
}

/* gain: spread of the output for inputs of spread 1. */
static void linear(planner *p, const char *name, size_t out, size_t in, double gain)
{
    const size_t dims[2] = {out, in};

    if (is_fp8(p))
        fp8(p, name, dims, gain / sqrt((double)in));
    else
        matrix(p, name, 2, dims, gain / sqrt((double)in), p->layout->bits);
}

/* The gain of what is added to the residual stream. */
static double residual_gain(const planner *p)
{
    return p->model->echo ? 0 : 0.5;
}

/* Names of "mlp.gate_proj" and so on by family; part: 0 gate, 1 up, 2 down. */
typedef struct part_name {
    char text[64];
} part_name;

static part_name name_part(const planner *p, const char *in, size_t part)
{
    static const char *const usual[] = {"gate_proj", "up_proj", "down_proj"}, *const numbered[] = {"w1", "w3", "w2"};
    const bool lfm2 = mt_synth_is_lfm2(p->model);
    const bool by_number = lfm2 && (p->model->family == MT_SYNTH_LFM2 || !is_mlx(p));
    part_name name;

    snprintf(name.text, sizeof(name.text), "%s%s.%s", lfm2 ? "feed_forward" : "mlp", in,
             (by_number ? numbered : usual)[part]);
    return name;
}

static bool has_gate_in_up(const planner *p)
{
    return p->model->family == MT_SYNTH_GLM || p->model->family == MT_SYNTH_GLM_OCR;
}

static void mlp_in(planner *p, const char *in, size_t inter)
{
    const size_t hidden = p->model->hidden;

    linear(p, name_part(p, in, 0).text, inter, hidden, 1);
    linear(p, name_part(p, in, 1).text, inter, hidden, 1);
    linear(p, name_part(p, in, 2).text, hidden, inter, residual_gain(p));
}

static void mlp(planner *p, size_t inter)
{
    if (!has_gate_in_up(p)) {
        mlp_in(p, "", inter);
        return;
    }
    linear(p, "mlp.gate_up_proj", 2 * inter, p->model->hidden, 1);
    linear(p, "mlp.down_proj", p->model->hidden, inter, residual_gain(p));
}

/* All experts' matrices as one tensor each; in: prefix of their names. */
static void stacked_experts(planner *p, const char *in)
{
    static const char *const parts[] = {"gate_proj", "up_proj", "down_proj"};
    const mt_synth_model *m = p->model;
    const size_t up[3] = {m->experts, m->moe_inter, m->hidden}, down[3] = {m->experts, m->hidden, m->moe_inter};

    for (size_t i = 0; i < MT_COUNT(parts); i++) {
        const double spread = i < 2 ? 1 / sqrt((double)m->hidden) : residual_gain(p) / sqrt((double)m->moe_inter);
        char name[64];
        snprintf(name, sizeof(name), "%s.%s", in, parts[i]);
        matrix(p, name, 3, i < 2 ? up : down, spread, p->layout->bits);
    }
}

static void separate_experts(planner *p)
{
    for (size_t i = 0; i < p->model->experts; i++) {
        char in[32];
        snprintf(in, sizeof(in), ".experts.%zu", i);
        mlp_in(p, in, p->model->moe_inter);
    }
}

static void experts(planner *p)
{
    if (is_mlx(p))
        stacked_experts(p, mt_synth_is_lfm2(p->model) ? "feed_forward.switch_mlp" : "mlp.switch_mlp");
    else
        separate_experts(p);
}

/* All experts' matrices [n, k] as E2M1 codes with an exponent for every 32. */
static void microscaled(planner *p, const char *name, size_t n, size_t k, double spread)
{
    const size_t experts = p->model->experts;
    mt_synth_tensor *t = add(p, name, is_mlx(p) ? ".weight" : "_blocks");

    t->kind = MT_SYNTH_CODES;
    t->dtype = is_mlx(p) ? "U32" : "U8";
    t->element_size = is_mlx(p) ? 4 : 1;
    if (is_mlx(p))
        set_dims(t, 3, (size_t[]){experts, n, k / 8});
    else
        set_dims(t, 4, (size_t[]){experts, n, k / 32, 16});
    t = add(p, name, is_mlx(p) ? ".scales" : "_scales");
    set_dims(t, 3, (size_t[]){experts, n, k / 32});
    t->kind = MT_SYNTH_EXPONENTS;
    t->dtype = "U8";
    t->element_size = 1;
    t->spread = (float)spread;
}

static void expert_bias(planner *p, const char *name, size_t n)
{
    mt_synth_tensor *t = add(p, name, "");

    set_dims(t, 2, (size_t[]){p->model->experts, n});
    t->spread = 0.02f;
}

/* gpt-oss: rows of gate and up alternate as published, and are separate in conversions. */
static void gpt_oss_mixture(planner *p)
{
    const mt_synth_model *m = p->model;
    const double in = 1 / sqrt((double)m->hidden), out = 0.1 / sqrt((double)m->moe_inter);

    matrix(p, "mlp.router", 2, (size_t[]){m->experts, m->hidden}, 1.5 * in, is_mlx(p) ? MT_SYNTH_ROUTER_BITS : 0);
    vector(p, "mlp.router.bias", m->experts, 0, 0.1);
    if (is_mlx(p)) {
        microscaled(p, "mlp.experts.gate_proj", m->moe_inter, m->hidden, in);
        microscaled(p, "mlp.experts.up_proj", m->moe_inter, m->hidden, in);
        expert_bias(p, "mlp.experts.gate_proj.bias", m->moe_inter);
        expert_bias(p, "mlp.experts.up_proj.bias", m->moe_inter);
    } else {
        microscaled(p, "mlp.experts.gate_up_proj", 2 * m->moe_inter, m->hidden, in);
        expert_bias(p, "mlp.experts.gate_up_proj_bias", 2 * m->moe_inter);
    }
    microscaled(p, "mlp.experts.down_proj", m->hidden, m->moe_inter, out);
    expert_bias(p, is_mlx(p) ? "mlp.experts.down_proj.bias" : "mlp.experts.down_proj_bias", m->hidden);
}

static void mixture(planner *p)
{
    const mt_synth_model *m = p->model;
    size_t router[2] = {m->experts, m->hidden};

    matrix(p, mt_synth_is_lfm2(m) ? "feed_forward.gate" : "mlp.gate", 2, router, 1.5 / sqrt((double)m->hidden),
           is_mlx(p) ? MT_SYNTH_ROUTER_BITS : 0);
    if (mt_synth_is_lfm2(m))
        vector(p, "feed_forward.expert_bias", m->experts, 0, 0.05);
    experts(p);
}

/* GLM: conversions do not quantise the router; there is a shared expert. */
static void glm_mixture(planner *p)
{
    const mt_synth_model *m = p->model;
    mt_synth_tensor *t;

    dense(p, "mlp.gate", 2, (size_t[]){m->experts, m->hidden}, 1.5 / sqrt((double)m->hidden));
    t = add(p, "mlp.gate.e_score_correction_bias", "");
    set_dims(t, 1, (size_t[]){m->experts});
    t->dtype = "F32";
    t->element_size = 4;
    t->spread = 0.05f;
    experts(p);
    mlp_in(p, ".shared_experts", m->moe_inter);
}

static void attention(planner *p)
{
    const mt_synth_model *m = p->model;
    size_t q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;

    linear(p, "self_attn.q_proj", m->family == MT_SYNTH_QWEN3_5 ? 2 * q : q, m->hidden, 1); /* twice: q and its gate */
    linear(p, "self_attn.k_proj", kv, m->hidden, 1);
    linear(p, "self_attn.v_proj", kv, m->hidden, 1);
    linear(p, mt_synth_is_lfm2(m) ? "self_attn.out_proj" : "self_attn.o_proj", m->hidden, q, residual_gain(p));
    if (mt_synth_has_head_norms(m)) {
        norm(p, mt_synth_is_lfm2(m) ? "self_attn.q_layernorm.weight" : "self_attn.q_norm.weight", m->head_dim);
        norm(p, mt_synth_is_lfm2(m) ? "self_attn.k_layernorm.weight" : "self_attn.k_norm.weight", m->head_dim);
    }
    if (m->family == MT_SYNTH_GPT_OSS || m->family == MT_SYNTH_GLM || m->family == MT_SYNTH_GLM_MOE) {
        vector(p, "self_attn.q_proj.bias", q, 0, 0.1);
        vector(p, "self_attn.k_proj.bias", kv, 0, 0.1);
        vector(p, "self_attn.v_proj.bias", kv, 0, 0.1);
    }
    if (m->family == MT_SYNTH_GPT_OSS) {
        vector(p, "self_attn.o_proj.bias", m->hidden, 0, 0.02);
        vector(p, "self_attn.sinks", m->heads, 1, 1);
    }
}

/* Conversions have the matrix from latents to keys and values apart, by heads, that to keys transposed. */
static void latent_attention(planner *p)
{
    const mt_synth_model *m = p->model;
    const mt_synth_latent *l = &m->latent;
    const size_t keys[3] = {m->heads, l->width, l->plain}, values[3] = {m->heads, l->value, l->width};

    linear(p, "self_attn.q_a_proj", l->queries, m->hidden, 1);
    norm(p, "self_attn.q_a_layernorm.weight", l->queries);
    linear(p, "self_attn.q_b_proj", m->heads * (l->plain + l->turned), l->queries, 1);
    linear(p, "self_attn.kv_a_proj_with_mqa", l->width + l->turned, m->hidden, 1);
    norm(p, "self_attn.kv_a_layernorm.weight", l->width);
    if (is_mlx(p)) {
        matrix(p, "self_attn.embed_q", 3, keys, 1 / sqrt((double)l->width), p->layout->bits);
        matrix(p, "self_attn.unembed_out", 3, values, 1 / sqrt((double)l->width), p->layout->bits);
    } else {
        linear(p, "self_attn.kv_b_proj", m->heads * (l->plain + l->value), l->width, 1);
    }
    linear(p, "self_attn.o_proj", m->hidden, m->heads * l->value, residual_gain(p));
}

/* GatedDeltaNet, Qwen3.5's recurrent layer */
static void recurrent(planner *p)
{
    size_t heads = mt_synth_value_heads(p->model), values = heads * MT_SYNTH_LINEAR_DIM, hidden = p->model->hidden;
    size_t all = 2 * (size_t)MT_SYNTH_LINEAR_HEADS * MT_SYNTH_LINEAR_DIM + values, taps = MT_SYNTH_LINEAR_CONV;
    mt_synth_tensor *t;

    linear(p, "linear_attn.in_proj_qkv", all, hidden, 1);
    linear(p, "linear_attn.in_proj_z", values, hidden, 1);
    linear(p, "linear_attn.in_proj_b", heads, hidden, 1);
    linear(p, "linear_attn.in_proj_a", heads, hidden, 1);
    linear(p, "linear_attn.out_proj", hidden, values, residual_gain(p));
    dense(p, "linear_attn.conv1d", 3, is_mlx(p) ? (size_t[]){all, taps, 1} : (size_t[]){all, 1, taps}, 0.5);
    vector(p, "linear_attn.dt_bias", heads, -2, 1);
    vector(p, "linear_attn.norm.weight", MT_SYNTH_LINEAR_DIM, 1, 0.1); /* never an offset */
    t = add(p, "linear_attn.A_log", "");
    set_dims(t, 1, (size_t[]){heads});
    t->dtype = "F32";
    t->element_size = 4;
    t->mean = 0;
    t->spread = 1;
}

/* LFM2's short convolution: its input, the input's gate and the result's gate are one matrix. */
static void short_convolution(planner *p)
{
    const size_t hidden = p->model->hidden, taps = MT_SYNTH_SHORT_TAPS;

    linear(p, "conv.in_proj", 3 * hidden, hidden, 1);
    linear(p, "conv.out_proj", hidden, hidden, residual_gain(p));
    dense(p, "conv.conv", 3, is_mlx(p) ? (size_t[]){hidden, taps, 1} : (size_t[]){hidden, 1, taps}, 0.5);
}

static void lfm2_layer(planner *p, size_t i)
{
    const mt_synth_model *m = p->model;

    norm(p, "operator_norm.weight", m->hidden);
    norm(p, "ffn_norm.weight", m->hidden);
    if (mt_synth_is_short(m, i))
        short_convolution(p);
    else
        attention(p);
    if (mt_synth_is_sparse(m, i))
        mixture(p);
    else
        mlp(p, m->inter);
}

/* Lists the tensors of one layer. */
static void layer(planner *p, bool is_recurrent, bool is_sparse)
{
    const mt_synth_model *m = p->model;

    norm(p, "input_layernorm.weight", m->hidden);
    norm(p, "post_attention_layernorm.weight", m->hidden);
    if (m->family == MT_SYNTH_GEMMA3) {
        norm(p, "pre_feedforward_layernorm.weight", m->hidden);
        norm(p, "post_feedforward_layernorm.weight", m->hidden);
    }
    if (has_gate_in_up(p)) {
        norm(p, "post_self_attn_layernorm.weight", m->hidden);
        norm(p, "post_mlp_layernorm.weight", m->hidden);
    }
    if (is_recurrent)
        recurrent(p);
    else if (m->latent.width)
        latent_attention(p);
    else
        attention(p);
    if (!is_sparse)
        mlp(p, m->inter);
    else if (m->family == MT_SYNTH_GPT_OSS)
        gpt_oss_mixture(p);
    else if (m->family == MT_SYNTH_GLM_MOE || m->family == MT_SYNTH_GLM_LITE)
        glm_mixture(p);
    else
        mixture(p);
}

static void gemma4_norms(planner *p)
{
    static const char *const before[] = {"input_layernorm.weight", "pre_feedforward_layernorm.weight",
                                         "pre_feedforward_layernorm_2.weight"},
                             *const behind[] = {"post_attention_layernorm.weight", "post_feedforward_layernorm.weight",
                                                "post_feedforward_layernorm_1.weight",
                                                "post_feedforward_layernorm_2.weight"};
    const mt_synth_model *m = p->model;

    for (size_t i = 0; i < (m->experts ? MT_COUNT(before) : 2); i++)
        vector(p, before[i], m->hidden, 1, 0.1);
    for (size_t i = 0; i < (m->experts ? MT_COUNT(behind) : 2); i++)
        vector(p, behind[i], m->hidden, 0.3, 0.1);
}

/* Where layers share keys, only the first of them have tensors for these. */
static void gemma4_attention(planner *p, size_t i)
{
    const mt_synth_model *m = p->model;
    const bool full = mt_synth_is_full(m, i), keys_are_values = full && m->wide_kv_heads;
    const size_t dim = full ? m->wide_dim : m->head_dim, q = m->heads * dim;
    const size_t kv = (keys_are_values ? m->wide_kv_heads : m->kv_heads) * dim;

    linear(p, "self_attn.q_proj", q, m->hidden, 1);
    linear(p, "self_attn.o_proj", m->hidden, q, 1);
    vector(p, "self_attn.q_norm.weight", dim, 0.3, 0.03);
    if (i >= m->layers - mt_synth_shared(m))
        return;
    linear(p, "self_attn.k_proj", kv, m->hidden, 1);
    if (!keys_are_values)
        linear(p, "self_attn.v_proj", kv, m->hidden, 1);
    vector(p, "self_attn.k_norm.weight", dim, 0.3, 0.03);
}

/* Gate and up are one tensor as published, separate in conversions. */
static void gemma4_mixture(planner *p)
{
    const mt_synth_model *m = p->model;
    const double in = 1 / sqrt((double)m->hidden);
    mt_synth_tensor *t;

    matrix(p, "router.proj", 2, (size_t[]){m->experts, m->hidden}, 1.5 * in, is_mlx(p) ? MT_SYNTH_ROUTER_BITS : 0);
    vector(p, "router.scale", m->hidden, 1, 0.1);
    vector(p, "router.per_expert_scale", m->experts, 1, 0.1);
    if (is_mlx(p)) {
        stacked_experts(p, "experts.switch_glu");
        return;
    }
    t = add(p, "experts.gate_up_proj", "");
    set_dims(t, 3, (size_t[]){m->experts, 2 * m->moe_inter, m->hidden});
    t->spread = (float)in;
    t = add(p, "experts.down_proj", "");
    set_dims(t, 3, (size_t[]){m->experts, m->hidden, m->moe_inter});
    t->spread = (float)(1 / sqrt((double)m->moe_inter));
}

static void gemma4_layer(planner *p, size_t i)
{
    const mt_synth_model *m = p->model;
    const bool shared = i >= m->layers - mt_synth_shared(m);

    gemma4_norms(p);
    vector(p, "layer_scalar", 1, 1, 0.05);
    gemma4_attention(p, i);
    mlp(p, shared && m->wide_mlp ? 2 * m->inter : m->inter);
    if (m->experts)
        gemma4_mixture(p);
    if (m->aside) {
        linear(p, "per_layer_input_gate", m->aside, m->hidden, 1);
        linear(p, "per_layer_projection", m->hidden, m->aside, 1);
        vector(p, "post_per_layer_input_norm.weight", m->hidden, 0.3, 0.1);
    }
}

static void gemma4_ends(planner *p)
{
    const mt_synth_model *m = p->model;

    linear(p, "embed_tokens_per_layer", m->vocab, m->layers * m->aside, 1);
    linear(p, "per_layer_model_projection", m->layers * m->aside, m->hidden, 1);
    vector(p, "per_layer_projection_norm.weight", m->aside, 1, 0.1);
}

static void biased(planner *p, const char *name, size_t out, size_t in)
{
    char bias[64];

    snprintf(bias, sizeof(bias), "%s.bias", name);
    dense(p, name, 2, (size_t[]){out, in}, 1 / sqrt((double)in)); /* towers are never quantised */
    vector(p, bias, out, 0, 0.02);
}

static void layer_norm(planner *p, const char *name, size_t size)
{
    char part[64];

    snprintf(part, sizeof(part), "%s.weight", name);
    vector(p, part, size, 1, 0.1);
    snprintf(part, sizeof(part), "%s.bias", name);
    vector(p, part, size, 0, 0.02);
}

/* Four patches of the tower become one text embedding. norm_size: of one patch, or of all four. */
static void merger(planner *p, size_t norm_size)
{
    size_t four = 4 * p->model->vision.hidden;

    layer_norm(p, "norm", norm_size);
    biased(p, "linear_fc1", four, four);
    biased(p, "linear_fc2", p->model->hidden, four);
}

static void tower_block(planner *p)
{
    size_t hidden = p->model->vision.hidden, inter = p->model->vision.inter;

    layer_norm(p, "norm1", hidden);
    layer_norm(p, "norm2", hidden);
    biased(p, "attn.qkv", 3 * hidden, hidden);
    biased(p, "attn.proj", hidden, hidden);
    biased(p, "mlp.linear_fc1", inter, hidden);
    biased(p, "mlp.linear_fc2", hidden, inter);
}

static void tower(planner *p)
{
    const mt_synth_vision *v = &p->model->vision;
    const char *at = is_mlx(p) ? "vision_tower" : "model.visual";
    size_t edge = MT_SYNTH_PATCH;
    size_t ours[5] = {v->hidden, 3, 2, edge, edge}, theirs[5] = {v->hidden, 2, edge, edge, 3};

    enter(p, "%s", at);
    dense(p, "patch_embed.proj", 5, is_mlx(p) ? theirs : ours, 1 / sqrt((double)(6 * edge * edge)));
    vector(p, "patch_embed.proj.bias", v->hidden, 0, 0.02);
    dense(p, "pos_embed", 2, (size_t[]){MT_SYNTH_POSITIONS, v->hidden}, 0.05);
    for (size_t i = 0; i < v->depth; i++) {
        enter(p, "%s.blocks.%zu", at, i);
        tower_block(p);
    }
    enter(p, "%s.merger", at);
    merger(p, v->hidden);
    for (size_t i = 0; i < MT_COUNT(v->deepstack) && v->deepstack[i]; i++) {
        enter(p, "%s.deepstack_merger_list.%zu", at, i);
        merger(p, 4 * v->hidden);
    }
}

static void plain(planner *p, const char *name, size_t out, size_t in)
{
    dense(p, name, 2, (size_t[]){out, in}, 1 / sqrt((double)in));
}

static void pixtral(planner *p)
{
    const mt_synth_vision *v = &p->model->vision;
    const char *at = is_mlx(p) ? "vision_tower.vision_model" : "model.vision_tower";
    const size_t edge = MT_SYNTH_PIXTRAL_PATCH, wide = v->hidden, text = p->model->hidden;
    const size_t ours[4] = {wide, 3, edge, edge}, theirs[4] = {wide, edge, edge, 3};

    enter(p, "%s", at);
    dense(p, "patch_conv", 4, is_mlx(p) ? theirs : ours, 1 / sqrt((double)(3 * edge * edge)));
    vector(p, "ln_pre.weight", wide, 1, 0.1);
    for (size_t i = 0; i < v->depth; i++) {
        enter(p, "%s.transformer.layers.%zu", at, i);
        vector(p, "attention_norm.weight", wide, 1, 0.1);
        vector(p, "ffn_norm.weight", wide, 1, 0.1);
        plain(p, "attention.q_proj", wide, wide);
        plain(p, "attention.k_proj", wide, wide);
        plain(p, "attention.v_proj", wide, wide);
        plain(p, "attention.o_proj", wide, wide);
        plain(p, "feed_forward.gate_proj", v->inter, wide);
        plain(p, "feed_forward.up_proj", v->inter, wide);
        plain(p, "feed_forward.down_proj", wide, v->inter);
    }
    enter(p, "%smulti_modal_projector", is_mlx(p) ? "" : "model.");
    vector(p, "norm.weight", wide, 1, 0.1);
    linear(p, "patch_merger.merging_layer", wide, 4 * wide, 1);
    linear(p, "linear_1", text, wide, 1);
    linear(p, "linear_2", text, text, 1);
}

/* The drafting head, as published; MLX conversions leave it out. */
static void draft_head(planner *p)
{
    size_t hidden = p->model->hidden, fc = p->plan->count;

    p->plain = true;
    enter(p, "mtp");
    dense(p, "fc", 2, (size_t[]){hidden, 2 * hidden}, 1 / sqrt(2.0 * (double)hidden));
    norm(p, "pre_fc_norm_embedding.weight", hidden);
    norm(p, "pre_fc_norm_hidden.weight", hidden);
    norm(p, "norm.weight", hidden);
    if (p->model->echo)
        p->plan->tensors[fc].kind = MT_SYNTH_ONES;
    enter(p, "mtp.layers.0");
    layer(p, false, p->model->experts > 0);
    p->plain = false;
}

static const char *text_prefix(const planner *p)
{
    if (!p->model->vision.depth)
        return "model";
    return is_mlx(p) ? "language_model.model" : "model.language_model";
}

void mt_synth_plan_init(mt_synth_plan *plan, const mt_synth_model *model, const mt_synth_layout *layout)
{
    planner p = {.plan = plan, .model = model, .layout = layout};
    const char *text = text_prefix(&p);

    *plan = (mt_synth_plan){0};
    enter(&p, "%s", text);
    linear(&p, "embed_tokens", model->vocab, model->hidden, 1.6);
    for (size_t i = 0; i < model->layers; i++) {
        enter(&p, "%s.layers.%zu", text, i);
        if (model->family == MT_SYNTH_GEMMA4)
            gemma4_layer(&p, i);
        else if (mt_synth_is_lfm2(model))
            lfm2_layer(&p, i);
        else
            layer(&p, mt_synth_is_recurrent(model, i), mt_synth_is_sparse(model, i));
    }
    enter(&p, "%s", text);
    norm(&p, mt_synth_is_lfm2(model) ? "embedding_norm.weight" : "norm.weight", model->hidden);
    if (model->aside)
        gemma4_ends(&p);
    enter(&p, "%s", model->vision.depth && is_mlx(&p) ? "language_model" : "");
    if (!model->tied)
        linear(&p, "lm_head", model->vocab, model->hidden, 1.6);
    if (model->family == MT_SYNTH_MINISTRAL3)
        pixtral(&p);
    else if (model->vision.depth)
        tower(&p);
    if (model->family == MT_SYNTH_QWEN3_5 && (!is_mlx(&p) || model->echo))
        draft_head(&p);
}

void mt_synth_plan_free(mt_synth_plan *plan)
{
    mt_free(plan->tensors);
    *plan = (mt_synth_plan){0};
}

uint64_t mt_synth_tensor_bytes(const mt_synth_tensor *tensor)
{
    uint64_t bytes = tensor->element_size;

    for (size_t i = 0; i < tensor->ndim; i++)
        bytes *= tensor->dims[i];
    return bytes;
}
