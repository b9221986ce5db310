/* Finds all tensors of a spec in a checkpoint (mt_model_bind), by canonical names (weights/bind.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/model.h"
#include "models/vision.h"
#include "weights/limits.h"

/* Finds the tensors of one layer. */
typedef struct layer_binder {
    mt_binder *b;
    const mt_model_spec *spec;
    const mt_layer_spec *layer;
    char prefix[32];    /* "layers.3." */
    bool channels_last; /* convolutions are stored as MLX does */
    char part[64], path[MT_LIMIT_TENSOR_NAME];
} layer_binder;

static const mt_tensor_names usual = {.norm = "norm",
                                      .attn_norm = "input_layernorm",
                                      .mlp_norm = "post_attention_layernorm",
                                      .q_norm = "self_attn.q_norm",
                                      .k_norm = "self_attn.k_norm",
                                      .o = "self_attn.o_proj",
                                      .gate = "mlp.gate_proj",
                                      .up = "mlp.up_proj",
                                      .down = "mlp.down_proj"};

/* Names of a layer's tensors. Where there are norms behind attention and MLP and the family has no names of its own,
   they are Gemma's. */
static mt_tensor_names names_of(const mt_model_spec *spec, const mt_layer_spec *layer)
{
    mt_tensor_names names = spec->names ? *spec->names : usual;
    if (!spec->names && layer->post_norms) {
        names.attn_post_norm = "post_attention_layernorm";
        names.mlp_norm = "pre_feedforward_layernorm";
        names.mlp_post_norm = "post_feedforward_layernorm";
    }
    return names;
}

/* The name of a part of attention, in the family's module of it. */
static const char *attention_part(layer_binder *lb, const char *part)
{
    const mt_tensor_names *names = lb->spec->names;
    snprintf(lb->part, sizeof(lb->part), "%s.%s", names && names->attention ? names->attention : "self_attn", part);
    return lb->part;
}

static const char *layer_path(layer_binder *lb, const char *name)
{
    snprintf(lb->path, sizeof(lb->path), "%s%s", lb->prefix, name);
    return lb->path;
}

static const float *vector(layer_binder *lb, const char *name, size_t n)
{
    return mt_bind_vector(lb->b, layer_path(lb, name), n);
}

static void matrix(layer_binder *lb, const char *name, size_t n, size_t k, mt_mat *out, bool has_bias,
                   const float **bias)
{
    mt_bind_matrix(lb->b, layer_path(lb, name), n, k, out);
    if (!has_bias)
        return;
    char path[MT_LIMIT_TENSOR_NAME];
    snprintf(path, sizeof(path), "%s%s.bias", lb->prefix, name);
    *bias = mt_bind_vector(lb->b, path, n);
}

static void bind_norms(layer_binder *lb, mt_layer_weights *w)
{
    const mt_model_spec *s = lb->spec;
    const mt_tensor_names names = names_of(s, lb->layer);
    if (!lb->layer->bare && lb->layer->kind != MT_LAYER_ALONE)
        w->attn_norm = vector(lb, names.attn_norm, s->hidden);
    if (!lb->layer->bare && !lb->layer->parallel && !lb->layer->no_mlp)
        w->mlp_norm = vector(lb, names.mlp_norm, s->hidden);
    if (lb->layer->post_norms) {
        w->attn_post_norm = vector(lb, names.attn_post_norm, s->hidden);
        w->mlp_post_norm = vector(lb, names.mlp_post_norm, s->hidden);
    }
    if (lb->layer->scaled)
        w->scale = vector(lb, "layer_scalar", 1);
    if (lb->layer->beside) {
        w->dense_post_norm = vector(lb, "post_feedforward_layernorm_1", s->hidden);
        w->expert_norm = vector(lb, "pre_feedforward_layernorm_2", s->hidden);
        w->expert_post_norm = vector(lb, "post_feedforward_layernorm_2", s->hidden);
    }
}

/* Queries, keys and values above one another in one matrix, as Phi 3 has them. False: they are apart. */
static bool bind_joined(layer_binder *lb, size_t query, size_t key, mt_layer_weights *w)
{
    const char *joined = attention_part(lb, "qkv_proj");
    mt_mat all;
    if (!mt_bind_has(lb->b, layer_path(lb, joined)) ||
        !mt_bind_matrix(lb->b, layer_path(lb, joined), query + 2 * key, lb->spec->hidden, &all))
        return false;
    if (mt_mat_cuts_scales(&all, query) || mt_mat_cuts_scales(&all, key))
        return false;
    w->q = mt_mat_rows(&all, 0, query);
    w->k = mt_mat_rows(&all, query, key);
    w->v = mt_mat_rows(&all, query + key, key);
    return true;
}

static void bind_projected(layer_binder *lb, mt_layer_weights *w)
{
    const mt_attn_spec *a = &lb->layer->attn;
    const size_t query = (size_t)a->heads * a->head_dim, key = (size_t)a->kv_heads * a->head_dim;
    const size_t hidden = lb->spec->hidden;
    if (!a->qkv_bias && a->keys == MT_KEYS_OWN && bind_joined(lb, query, key, w))
        return;
    matrix(lb, attention_part(lb, "q_proj"), a->gate ? 2 * query : query, hidden, &w->q, a->qkv_bias, &w->q_bias);
    if (a->keys != MT_KEYS_EARLIER)
        matrix(lb, attention_part(lb, "k_proj"), key, hidden, &w->k, a->qkv_bias, &w->k_bias);
    if (a->keys == MT_KEYS_OWN)
        matrix(lb, attention_part(lb, "v_proj"), key, hidden, &w->v, a->qkv_bias, &w->v_bias);
}

static void bind_attention(layer_binder *lb, mt_layer_weights *w)
{
    const mt_attn_spec *a = &lb->layer->attn;
    const size_t query = (size_t)a->heads * a->head_dim, key = (size_t)a->kv_heads * a->head_dim;
    const bool whole = a->qk_norm == MT_QK_NORM_WHOLE;
    const mt_tensor_names names = names_of(lb->spec, lb->layer);
    bind_projected(lb, w);
    matrix(lb, names.o, lb->spec->hidden, query, &w->o, a->o_bias, &w->o_bias);
    if (a->qk_norm && a->qk_norm != MT_QK_NORM_PLAIN)
        w->q_norm = vector(lb, names.q_norm, whole ? query : a->head_dim);
    if (a->qk_norm && a->qk_norm != MT_QK_NORM_PLAIN && a->keys != MT_KEYS_EARLIER)
        w->k_norm = vector(lb, names.k_norm, whole ? key : a->head_dim);
    if (a->v_norm == MT_V_NORM_WEIGHTS && a->keys != MT_KEYS_EARLIER)
        w->v_norm = vector(lb, "self_attn.v_norm", a->head_dim);
    if (a->sinks)
        w->sinks = vector(lb, "self_attn.sinks", a->heads);
}

static void plain(layer_binder *lb, const char *name, size_t n, size_t k, mt_mat *out)
{
    mt_bind_matrix(lb->b, layer_path(lb, name), n, k, out);
}

/* From latents to keys and values: published in one matrix, each head's values below its keys; MLX has them apart, keys
   by the transposed matrix. */
static void bind_lifts(layer_binder *lb, mt_layer_weights *w)
{
    static const char keys[] = "self_attn.embed_q", values[] = "self_attn.unembed_out", both[] = "self_attn.kv_b_proj";
    const mt_attn_spec *a = &lb->layer->attn;
    const size_t heads = a->heads, width = a->latent.width, key = a->latent.plain, value = a->latent.value;
    if (mt_bind_has(lb->b, layer_path(lb, keys))) {
        mt_bind_stack(lb->b, layer_path(lb, keys), heads, width, key, &w->key_up);
        mt_bind_stack(lb->b, layer_path(lb, values), heads, value, width, &w->value_up);
        w->key_rows = (mt_head_rows){.heads = heads, .step = width, .rows = width};
        w->value_rows = (mt_head_rows){.heads = heads, .step = value, .rows = value};
        return;
    }
    plain(lb, both, heads * (key + value), width, &w->key_up);
    w->value_up = w->key_up;
    w->key_rows = (mt_head_rows){.heads = heads, .step = key + value, .rows = key, .across = true};
    w->value_rows = (mt_head_rows){.heads = heads, .first = key, .step = key + value, .rows = value};
}

static void bind_index(layer_binder *lb, mt_layer_weights *w)
{
    const mt_attn_spec *a = &lb->layer->attn;
    const size_t hidden = lb->spec->hidden, dim = a->index.head_dim;
    plain(lb, "self_attn.indexer.wq_b", a->index.heads * dim, a->latent.queries, &w->index_q);
    plain(lb, "self_attn.indexer.wk", dim, hidden, &w->index_k);
    plain(lb, "self_attn.indexer.weights_proj", a->index.heads, hidden, &w->index_weights);
    w->index_norm = vector(lb, "self_attn.indexer.k_norm", dim);
    w->index_norm_bias = vector(lb, "self_attn.indexer.k_norm.bias", dim);
}

static void bind_latent(layer_binder *lb, mt_layer_weights *w)
{
    const mt_attn_spec *a = &lb->layer->attn;
    const mt_latent_spec *s = &a->latent;
    const size_t hidden = lb->spec->hidden, query = (size_t)a->heads * (s->plain + s->turned);
    if (s->queries) {
        matrix(lb, "self_attn.q_a_proj", s->queries, hidden, &w->q_narrow, a->qkv_bias, &w->q_narrow_bias);
        w->q_norm = vector(lb, "self_attn.q_a_layernorm", s->queries);
    }
    plain(lb, s->queries ? "self_attn.q_b_proj" : "self_attn.q_proj", query, s->queries ? s->queries : hidden, &w->q);
    matrix(lb, "self_attn.kv_a_proj_with_mqa", a->head_dim, hidden, &w->k, a->qkv_bias, &w->k_bias);
    w->k_norm = vector(lb, "self_attn.kv_a_layernorm", s->width);
    bind_lifts(lb, w);
    if (a->index.heads)
        bind_index(lb, w);
    matrix(lb, names_of(lb->spec, lb->layer).o, hidden, (size_t)a->heads * s->value, &w->o, a->o_bias, &w->o_bias);
}

/* Qwen3-Next stores its projections together, Qwen3.5 separately. */
static void bind_projections(layer_binder *lb, mt_layer_weights *w)
{
    const mt_state_shape *st = &lb->spec->state;
    const size_t keys = 2 * st->key_heads * st->key_dim, values = st->value_heads * st->value_dim;
    const size_t hidden = lb->spec->hidden;
    if (mt_bind_has(lb->b, layer_path(lb, "linear_attn.in_proj_qkvz"))) {
        plain(lb, "linear_attn.in_proj_qkvz", keys + 2 * values, hidden, &w->mix_qkv);
        plain(lb, "linear_attn.in_proj_ba", 2 * st->value_heads, hidden, &w->mix_b);
        return;
    }
    plain(lb, "linear_attn.in_proj_qkv", keys + values, hidden, &w->mix_qkv);
    plain(lb, "linear_attn.in_proj_z", values, hidden, &w->mix_z);
    plain(lb, "linear_attn.in_proj_b", st->value_heads, hidden, &w->mix_b);
    plain(lb, "linear_attn.in_proj_a", st->value_heads, hidden, &w->mix_a);
}

/* A short convolution: the input projection makes what goes through the convolution and its gates. */
static void bind_short(layer_binder *lb, mt_layer_weights *w)
{
    const size_t hidden = lb->spec->hidden;
    const bool bias = lb->spec->state_bias;
    matrix(lb, "conv.in_proj", 3 * hidden, hidden, &w->mix_qkv, bias, &w->mix_in_bias);
    matrix(lb, "conv.out_proj", hidden, hidden, &w->mix_out, bias, &w->mix_out_bias);
    w->mix_conv = mt_bind_conv(lb->b, layer_path(lb, "conv.conv"), hidden, lb->spec->state.taps, &lb->channels_last);
    if (bias)
        w->mix_conv_bias = vector(lb, "conv.conv.bias", hidden);
}

/* Mamba2's convolution with its bias as the last row, its columns in the order of `mixed` in mixer.c: published are x,
   B and C; here C comes first, then B, then x. */
static const float *mamba_conv(layer_binder *lb, const char *name, mt_arena *arena)
{
    const mt_state_shape *st = &lb->spec->state;
    const size_t keys = st->key_heads * st->key_dim, values = st->value_heads * st->value_dim;
    const size_t columns = 2 * keys + values;
    char path[96];
    snprintf(path, sizeof(path), "%s.bias", name);
    const float *conv = mt_bind_conv(lb->b, layer_path(lb, name), columns, st->taps, &lb->channels_last);
    const float *bias = lb->spec->mamba.conv_bias ? vector(lb, path, columns) : NULL;
    float *out = conv ? mt_arena_alloc(arena, (st->taps + 1) * columns * sizeof(*out)) : NULL;
    for (size_t t = 0; out && t <= st->taps; t++) {
        const float *from = t < st->taps ? conv + t * columns : bias;
        float *to = out + t * columns;
        for (size_t i = 0; i < columns; i++)
            to[i] = !from          ? 0
                    : i < keys     ? from[values + keys + i]
                    : i < 2 * keys ? from[values + i - keys]
                                   : from[i - 2 * keys];
    }
    return out;
}

/* The rows of one projection: gates, then x, B and C, then time steps. */
static void bind_mamba_in(layer_binder *lb, const char *name, mt_layer_weights *w)
{
    const mt_state_shape *st = &lb->spec->state;
    const size_t values = st->value_heads * st->value_dim, mixed = values + 2 * st->key_heads * st->key_dim;
    const float *bias = NULL;
    mt_mat all = {0};
    matrix(lb, name, values + mixed + st->value_heads, lb->spec->hidden, &all, lb->spec->mamba.in_bias, &bias);
    if (!all.n)
        return;
    /* A block of scales that would be cut; rows that all share one scale may be. */
    if (all.scale_stride > 0 && (mt_mat_cuts_scales(&all, values) || mt_mat_cuts_scales(&all, values + mixed))) {
        plain(lb, "mamba.in_proj.gates_x_b_c_and_time_steps_apart", values, lb->spec->hidden, &w->mix_z);
        return;
    }
    w->mix_z = mt_mat_rows(&all, 0, values);
    w->mix_qkv = mt_mat_rows(&all, values, mixed);
    w->mix_a = mt_mat_rows(&all, values + mixed, st->value_heads);
    w->mix_z_bias = bias;
    w->mix_in_bias = bias ? bias + values : NULL;
    w->mix_a_bias = bias ? bias + values + mixed : NULL;
}

static void bind_mamba(layer_binder *lb, mt_layer_weights *w, mt_arena *arena)
{
    const mt_state_shape *st = &lb->spec->state;
    const mt_mamba_spec *s = &lb->spec->mamba;
    const char *module = lb->spec->names && lb->spec->names->mamba ? lb->spec->names->mamba : "mamba";
    char name[64];
#define PART(part) (snprintf(name, sizeof(name), "%s.%s", module, part), name)
    bind_mamba_in(lb, PART("in_proj"), w);
    matrix(lb, PART("out_proj"), lb->spec->hidden, st->value_heads * st->value_dim, &w->mix_out, s->out_bias,
           &w->mix_out_bias);
    w->mix_conv = mamba_conv(lb, PART("conv1d"), arena);
    w->mix_rate = vector(lb, PART("A_log"), st->value_heads);
    w->mix_bias = vector(lb, PART("dt_bias"), st->value_heads);
    w->mix_skip = vector(lb, PART("D"), st->value_heads);
    if (s->norm)
        w->mix_norm = vector(lb, PART("norm"), st->value_heads * st->value_dim);
#undef PART
}

static void bind_recurrent(layer_binder *lb, mt_layer_weights *w, mt_arena *arena)
{
    const mt_state_shape *st = &lb->spec->state;
    if (st->plain) {
        bind_mamba(lb, w, arena);
        return;
    }
    if (st->key_dim == 0) {
        bind_short(lb, w);
        return;
    }
    const size_t keys = 2 * st->key_heads * st->key_dim, values = st->value_heads * st->value_dim;
    bind_projections(lb, w);
    plain(lb, "linear_attn.out_proj", lb->spec->hidden, values, &w->mix_out);
    w->mix_conv =
        mt_bind_conv(lb->b, layer_path(lb, "linear_attn.conv1d"), keys + values, st->taps, &lb->channels_last);
    w->mix_rate = vector(lb, "linear_attn.A_log", st->value_heads);
    w->mix_bias = vector(lb, "linear_attn.dt_bias", st->value_heads);
    w->mix_norm = vector(lb, "linear_attn.norm", st->value_dim);
}

/* The module of the expert that every row uses. */
static const char *shared_name(layer_binder *lb)
{
    static const char *const names[] = {"mlp.shared_experts", "mlp.shared_mlp", "mixer.shared_experts",
                                        "feed_forward.shared_expert", "mlp.shared_expert"};
    char first[64];
    size_t i = 0;
    for (; i + 1 < MT_COUNT(names); i++) {
        snprintf(first, sizeof(first), "%s.up_proj", names[i]);
        if (mt_bind_has(lb->b, layer_path(lb, first)))
            break;
    }
    return names[i];
}

/* Granite's, gate above up in one matrix. False: it is not there. */
static bool bind_shared_joined(layer_binder *lb, mt_layer_weights *w)
{
    static const char joined[] = "shared_mlp.input_linear";
    const size_t hidden = lb->spec->hidden, ffn = lb->layer->moe.shared_ffn;
    mt_mat both;
    if (!mt_bind_has(lb->b, layer_path(lb, joined)) ||
        !mt_bind_matrix(lb->b, layer_path(lb, joined), 2 * ffn, hidden, &both) ||
        (both.scale_stride > 0 && mt_mat_cuts_scales(&both, ffn)))
        return false;
    w->shared_gate = mt_mat_rows(&both, 0, ffn);
    w->shared_up = mt_mat_rows(&both, ffn, ffn);
    plain(lb, "shared_mlp.output_linear", hidden, ffn, &w->shared_down);
    return true;
}

static void bind_shared(layer_binder *lb, mt_layer_weights *w)
{
    const size_t hidden = lb->spec->hidden, ffn = lb->layer->moe.shared_ffn;
    if (bind_shared_joined(lb, w))
        return;
    const char *module = shared_name(lb);
    char gate[64], up[64], down[64];
    snprintf(gate, sizeof(gate), "%s.gate_proj", module);
    snprintf(up, sizeof(up), "%s.up_proj", module);
    snprintf(down, sizeof(down), "%s.down_proj", module);
    if (lb->layer->moe.shared_gated)
        plain(lb, "mlp.shared_expert_gate", 1, hidden, &w->shared_router);
    if (!lb->layer->mlp.single)
        plain(lb, gate, ffn, hidden, &w->shared_gate);
    plain(lb, up, ffn, hidden, &w->shared_up);
    plain(lb, down, hidden, ffn, &w->shared_down);
}

static void bind_gate_up(layer_binder *lb, const mt_tensor_names *names, mt_layer_weights *w)
{
    const size_t ffn = lb->layer->mlp.ffn, hidden = lb->spec->hidden;
    mt_mat both;
    if (!mt_bind_matrix(lb->b, layer_path(lb, names->gate_up), 2 * ffn, hidden, &both))
        return;
    if (mt_mat_cuts_scales(&both, ffn)) {
        plain(lb, names->gate, ffn, hidden, &w->gate);
        return;
    }
    w->gate = mt_mat_rows(&both, 0, ffn);
    w->up = mt_mat_rows(&both, ffn, ffn);
}

/* Some converters use the common names for the MLP's matrices, within the family's own module. */
static mt_tensor_names dense_names(layer_binder *lb)
{
    static const char renamed[] = "feed_forward.gate_proj";
    mt_tensor_names names = names_of(lb->spec, lb->layer);
    if (names.mlp && mt_bind_has(lb->b, layer_path(lb, usual.gate))) {
        names.gate = usual.gate;
        names.up = usual.up;
        names.down = usual.down;
    }
    if (names.mlp && mt_bind_has(lb->b, layer_path(lb, renamed))) {
        names.gate = renamed;
        names.up = "feed_forward.up_proj";
        names.down = "feed_forward.down_proj";
    }
    return names;
}

static void bind_dense(layer_binder *lb, mt_layer_weights *w)
{
    const mt_mlp_spec *mlp = &lb->layer->mlp;
    const size_t hidden = lb->spec->hidden;
    const mt_tensor_names names = dense_names(lb);
    if (names.gate_up && mt_bind_has(lb->b, layer_path(lb, names.gate_up))) {
        bind_gate_up(lb, &names, w);
    } else {
        if (!mlp->single)
            matrix(lb, names.gate, mlp->ffn, hidden, &w->gate, mlp->bias, &w->gate_bias);
        matrix(lb, names.up, mlp->ffn, hidden, &w->up, mlp->bias, &w->up_bias);
    }
    matrix(lb, names.down, hidden, mlp->ffn, &w->down, mlp->bias, &w->down_bias);
}

/* The weights of a router's norm: the checkpoint's scale times hidden^-0.5. */
static const float *router_norm(layer_binder *lb, mt_arena *arena)
{
    const size_t hidden = lb->spec->hidden;
    const float *scale = vector(lb, "router.scale", hidden);
    float *w = scale ? mt_arena_alloc(arena, hidden * sizeof(*w)) : NULL;
    for (size_t i = 0; w && i < hidden; i++)
        w[i] = scale[i] / sqrtf((float)hidden);
    return w;
}

static const char *router_name(layer_binder *lb)
{
    static const char *const names[] = {"router.proj",
                                        "mlp.router",
                                        "feed_forward.gate",
                                        "feed_forward.router",
                                        "block_sparse_moe.gate",
                                        "mlp.router.gate",
                                        "block_sparse_moe.router.layer",
                                        "mixer.gate",
                                        "mlp.gate"};
    size_t i = 0;
    while (i + 1 < MT_COUNT(names) && !mt_bind_has(lb->b, layer_path(lb, names[i])))
        i++;
    return names[i];
}

static const float *expert_bias(layer_binder *lb, const char *at, const char *name, size_t n)
{
    snprintf(lb->path, sizeof(lb->path), "%s.experts.%s", at, name);
    return mt_bind_vectors(lb->b, lb->path, lb->layer->moe.experts, n);
}

/* Divides the biases of gate and up, which are stored like the rows of one matrix. */
static bool split_biases(const mt_moe_spec *moe, const float *both, mt_layer_weights *w, mt_arena *arena, mt_error *err)
{
    const size_t n = moe->ffn, step = moe->interleaved ? 2 : 1, up = moe->interleaved ? 1 : n;
    if (!both)
        return true;
    float *apart = mt_arena_alloc(arena, 2 * moe->experts * n * sizeof(*apart));
    if (!apart)
        return mt_fail(err, MT_E_MEMORY, "no memory for the biases of %u experts", moe->experts);
    w->expert_gate_bias = apart;
    w->expert_up_bias = apart + moe->experts * n;
    for (size_t e = 0; e < moe->experts; e++)
        for (size_t i = 0; i < n; i++) {
            apart[e * n + i] = both[2 * e * n + i * step];
            apart[(moe->experts + e) * n + i] = both[2 * e * n + i * step + up];
        }
    return true;
}

static bool bind_expert_biases(layer_binder *lb, const char *at, mt_layer_weights *w, mt_arena *arena, mt_error *err)
{
    const mt_moe_spec *moe = &lb->layer->moe;
    snprintf(lb->path, sizeof(lb->path), "%s.experts.gate_up_proj_bias", at);
    if (mt_bind_has(lb->b, lb->path)) {
        w->expert_down_bias = expert_bias(lb, at, "down_proj_bias", lb->spec->hidden);
        return split_biases(moe, expert_bias(lb, at, "gate_up_proj_bias", 2 * (size_t)moe->ffn), w, arena, err);
    }
    w->expert_gate_bias = expert_bias(lb, at, "gate_proj.bias", moe->ffn);
    w->expert_up_bias = expert_bias(lb, at, "up_proj.bias", moe->ffn);
    w->expert_down_bias = expert_bias(lb, at, "down_proj.bias", lb->spec->hidden);
    return true;
}

/* Some families have a name of their own for it in published files, and the usual one where the class in transformers
   has written them. */
static const char *correction_name(layer_binder *lb)
{
    static const char usual_name[] = "mlp.gate.e_score_correction_bias";
    const mt_tensor_names names = names_of(lb->spec, lb->layer);
    return !names.correction || mt_bind_has(lb->b, layer_path(lb, usual_name)) ? usual_name : names.correction;
}

static void bind_router(layer_binder *lb, mt_layer_weights *w, mt_arena *arena)
{
    const mt_moe_spec *moe = &lb->layer->moe;
    char name[64];
    snprintf(name, sizeof(name), "%s.bias", router_name(lb));
    if (moe->router_bias)
        w->router_bias = vector(lb, name, moe->experts);
    if (moe->router_norm)
        w->router_norm = router_norm(lb, arena);
    if (moe->correction)
        w->correction = vector(lb, correction_name(lb), moe->experts);
    if (moe->scale)
        w->expert_scale = vector(lb, "router.per_expert_scale", moe->experts);
}

static bool bind_sparse(layer_binder *lb, mt_layer_weights *w, mt_arena *arena, mt_error *err)
{
    const mt_moe_spec *moe = &lb->layer->moe;
    const size_t experts = moe->experts, hidden = lb->spec->hidden;
    const char *mlp = names_of(lb->spec, lb->layer).mlp;
    char at[sizeof(lb->prefix) + 32]; /* beside a dense MLP, the experts are not within the MLP's module */
    snprintf(at, sizeof(at), "%s%s", lb->prefix, lb->layer->beside ? "" : mlp ? mlp : "mlp");
    if (lb->layer->beside)
        at[strlen(at) - 1] = '\0';
    /* The router comes first: where its size differs from the config, no memory is taken for the config's experts. */
    if (!mt_bind_matrix(lb->b, layer_path(lb, router_name(lb)), experts, hidden, &w->router))
        return true;
    mt_mat *mats = mt_arena_alloc(arena, 3 * experts * sizeof(*mats));
    if (!mats)
        return mt_fail(err, MT_E_MEMORY, "no memory for %zu experts", experts);
    w->expert_gate = mats;
    w->expert_up = mats + experts;
    w->expert_down = mats + 2 * experts;
    if (moe->latent) {
        snprintf(at, sizeof(at), "%s.fc1_latent_proj", mlp);
        plain(lb, at, moe->latent, hidden, &w->expert_in);
        snprintf(at, sizeof(at), "%s.fc2_latent_proj", mlp);
        plain(lb, at, hidden, moe->latent, &w->expert_out);
        snprintf(at, sizeof(at), "%s%s", lb->prefix, mlp);
    }
    mt_bind_experts(lb->b, at, experts, moe->latent ? moe->latent : hidden, moe->ffn, moe->interleaved,
                    lb->layer->mlp.single ? NULL : w->expert_gate, w->expert_up, w->expert_down);
    if (lb->layer->mlp.single) /* experts have a gate on every device: here it is up itself */
        memcpy(w->expert_gate, w->expert_up, experts * sizeof(*mats));
    bind_router(lb, w, arena);
    return !moe->bias || bind_expert_biases(lb, at, w, arena, err);
}

static void bind_aside(layer_binder *lb, mt_layer_weights *w)
{
    const size_t hidden = lb->spec->hidden, width = lb->spec->aside;
    plain(lb, "per_layer_input_gate", width, hidden, &w->aside_gate);
    plain(lb, "per_layer_projection", hidden, width, &w->aside_out);
    w->aside_norm = vector(lb, "post_per_layer_input_norm", hidden);
}

static bool bind_layer(layer_binder *lb, mt_layer_weights *w, mt_arena *arena, mt_error *err)
{
    bind_norms(lb, w);
    if (lb->layer->kind == MT_LAYER_RECURRENT)
        bind_recurrent(lb, w, arena);
    else if (lb->layer->attn.latent.width)
        bind_latent(lb, w);
    else if (lb->layer->kind == MT_LAYER_ATTENTION)
        bind_attention(lb, w);
    if (lb->layer->paired)
        bind_recurrent(lb, w, arena);
    if (lb->spec->aside)
        bind_aside(lb, w);
    if (lb->layer->no_mlp)
        return true;
    if (!lb->layer->sparse || lb->layer->beside)
        bind_dense(lb, w);
    if (!lb->layer->sparse)
        return true;
    if (lb->layer->moe.shared_ffn)
        bind_shared(lb, w);
    return bind_sparse(lb, w, arena, err);
}

/* An output head in the files is used, whatever the config says: some tools store a tied one as well, and where it
   differs from the embedding, transformers uses it. Of two that are one, others keep the head alone. */
static void bind_ends(mt_binder *b, mt_model_spec *spec, mt_model_weights *w)
{
    const char *embed = spec->names && spec->names->embed ? spec->names->embed : "embed_tokens";
    const bool lent = spec->tied && !mt_bind_has(b, embed) && mt_bind_has(b, "lm_head");
    mt_bind_matrix(b, lent ? "lm_head" : embed, spec->vocab, spec->hidden, &w->embed);
    w->norm = mt_bind_vector(b, spec->names ? spec->names->norm : usual.norm, spec->hidden);
    if (spec->aside) {
        const size_t width = (size_t)spec->layers * spec->aside;
        mt_bind_matrix(b, "embed_tokens_per_layer", spec->aside_vocab, width, &w->aside);
        mt_bind_matrix(b, "per_layer_model_projection", width, spec->hidden, &w->aside_projection);
        w->aside_norm = mt_bind_vector(b, "per_layer_projection_norm", spec->aside);
    }
    spec->tied = lent || !mt_bind_has(b, "lm_head");
    if (spec->tied)
        w->head = w->embed;
    else
        mt_bind_matrix(b, "lm_head", spec->vocab, spec->hidden, &w->head);
}

/* The experts of a layer are multiplied together, so their matrices must have the same format. */
static bool same_packing(const mt_mat *a, const mt_mat *b)
{
    return a->format == b->format && a->group == b->group && a->bits == b->bits && a->split == b->split &&
           a->scale_type == b->scale_type && a->scale_rows == b->scale_rows && !a->biases == !b->biases;
}

static bool check_experts(const mt_layer_weights *w, size_t experts, size_t layer, mt_error *err)
{
    for (size_t e = 0; e < experts; e++)
        if (!same_packing(&w->expert_gate[e], &w->expert_gate[0]) ||
            !same_packing(&w->expert_up[e], &w->expert_up[0]) || !same_packing(&w->expert_down[e], &w->expert_down[0]))
            return mt_fail(
                err, MT_E_UNSUPPORTED,
                "expert %zu of layer %zu is quantised unlike its neighbours; quantise the experts of a layer alike", e,
                layer);
    return true;
}

/* A drafting head's layer is checked as one more. */
static bool check_layers(const mt_model_spec *spec, const mt_model_weights *w, mt_error *err)
{
    for (size_t l = 0; l < spec->layers; l++)
        if (spec->layer[l].sparse && !check_experts(&w->layer[l], spec->layer[l].moe.experts, l, err))
            return false;
    const mt_layer_spec guess = mt_model_guess_layer(spec);
    return !spec->mtp || !guess.sparse || check_experts(w->guess.layer, guess.moe.experts, spec->layers, err);
}

static bool bind_vision(mt_binder *b, mt_model_spec *spec, mt_model_weights *w, mt_arena *arena, mt_error *err)
{
    if (spec->vision && !mt_bind_has_vision(b))
        spec->vision = NULL;
    if (!spec->vision)
        return true;
    w->vision = mt_arena_alloc(arena, sizeof(*w->vision));
    if (!w->vision)
        return mt_fail(err, MT_E_MEMORY, "no memory for the tower");
    return mt_vision_bind(w->vision, spec->vision, b, arena, err);
}

mt_layer_spec mt_model_guess_layer(const mt_model_spec *spec)
{
    mt_layer_spec layer = spec->layer[spec->layers - 1];
    for (size_t i = 0; i < spec->layers; i++)
        if (spec->layer[i].kind == MT_LAYER_ATTENTION && spec->layer[i].group == 0 &&
            spec->layer[i].attn.keys != MT_KEYS_EARLIER)
            layer.attn = spec->layer[i].attn;
    layer.kind = MT_LAYER_ATTENTION;
    layer.group = 0;
    layer.slot = (uint16_t)spec->groups[0].layers;
    layer.attn.window = layer.attn.chunk = 0;
    layer.attn.index = (mt_index_spec){0}; /* to guess, it attends to all it sees */
    return layer;
}

/* A drafting head's names. */
typedef struct guess_names {
    const char *fc, *embed_norm, *hidden_norm, *norm;
} guess_names;

/* Whether a head is there as DeepSeek has it: as one more layer, with what else it needs in that layer's module. */
static bool guess_is_layer(layer_binder *lb)
{
    snprintf(lb->prefix, sizeof(lb->prefix), "layers.%u.", lb->spec->layers);
    return lb->spec->layer[lb->spec->layers - 1].attn.latent.width && mt_bind_has(lb->b, layer_path(lb, "eh_proj")) &&
           mt_bind_has(lb->b, layer_path(lb, "self_attn.kv_a_proj_with_mqa"));
}

/* Configs do not tell reliably whether there is a drafting head: its tensors do. */
static bool bind_guess(layer_binder *lb, mt_model_spec *spec, mt_model_weights *w, mt_arena *arena, mt_error *err)
{
    static const guess_names apart = {"mtp.fc", "mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.norm"},
                             within = {"eh_proj", "enorm", "hnorm", "shared_head.norm"};
    mt_guess_weights *g = &w->guess;
    const mt_layer_spec layer = mt_model_guess_layer(spec);
    const size_t hidden = spec->hidden;
    const bool is_layer = guess_is_layer(lb);
    const guess_names *names = is_layer ? &within : &apart;
    spec->mtp = is_layer || (spec->state.layers && mt_bind_has(lb->b, apart.fc));
    if (!spec->mtp)
        return true;
    g->layer = mt_arena_alloc(arena, sizeof(*g->layer));
    if (!g->layer)
        return mt_fail(err, MT_E_MEMORY, "no memory for a head that guesses ahead");
    if (!is_layer)
        lb->prefix[0] = '\0';
    mt_bind_matrix(lb->b, layer_path(lb, names->fc), hidden, 2 * hidden, &g->fc);
    g->head = mt_mat_rows(&w->head, 0, mt_model_guessed(spec));
    g->embed_norm = vector(lb, names->embed_norm, hidden);
    g->hidden_norm = vector(lb, names->hidden_norm, hidden);
    g->norm = vector(lb, names->norm, hidden);
    lb->layer = &layer;
    if (!is_layer)
        snprintf(lb->prefix, sizeof(lb->prefix), "mtp.layers.0.");
    return bind_layer(lb, g->layer, arena, err);
}

/* mlx-lm multiplies matrices of Falcon H1 by some of its factors as it converts them, and not by others. */
static bool check_folded(const layer_binder *lb, const mt_model_spec *spec, mt_error *err)
{
    const bool folded = lb->channels_last && spec->state.plain && spec->layer[0].paired;
    const bool factors = spec->embed_scale != 1 || spec->logit_scale != 0 || spec->mamba.factor[0] != 1 ||
                         spec->layer[0].mlp.gate != 0 || spec->layer[0].attn.result != 0;
    return !folded || !factors ||
           mt_fail(err, MT_E_UNSUPPORTED,
                   "this is MLX's conversion of a model with factors on its matrices, some of which the conversion has "
                   "multiplied in; take the original");
}

/* Reports missing tensors, unless another error came before. */
static bool finish(mt_binder *b, bool ok, mt_bind_cost *cost, mt_error *err)
{
    mt_error missing = {0};
    const bool complete = mt_binder_finish(b, cost, &missing);
    if (ok && !complete && err)
        *err = missing;
    return ok && complete;
}

bool mt_drafter_bind(mt_guess_weights *w, const mt_drafter_spec *drafter, const mt_checkpoint *checkpoint,
                     mt_bind_cost *cost, mt_arena *arena, mt_error *err)
{
    const mt_model_spec *spec = &drafter->model;
    memset(w, 0, sizeof(*w));
    w->layer = mt_arena_alloc(arena, spec->layers * sizeof(*w->layer));
    if (!w->layer)
        return mt_fail(err, MT_E_MEMORY, "no memory for %u layers", spec->layers);
    layer_binder lb = {.b = mt_binder_new(checkpoint, arena), .spec = spec};
    bool ok = true;
    mt_bind_matrix(lb.b, mt_bind_has(lb.b, "lm_head") ? "lm_head" : "embed_tokens", spec->vocab, spec->hidden,
                   &w->head);
    w->head = mt_mat_rows(&w->head, 0, mt_model_guessed(spec));
    mt_bind_matrix(lb.b, "/pre_projection", spec->hidden, 2 * (size_t)drafter->backbone, &w->fc);
    mt_bind_matrix(lb.b, "/post_projection", drafter->backbone, spec->hidden, &w->back);
    w->norm = mt_bind_vector(lb.b, usual.norm, spec->hidden);
    if (drafter->clusters) {
        mt_bind_matrix(lb.b, "/masked_embedding.centroids", drafter->clusters, spec->hidden, &w->centroids);
        w->kept = mt_bind_numbers(lb.b, "/masked_embedding.token_ordering", spec->vocab, spec->vocab);
    }
    for (size_t i = 0; ok && i < spec->layers; i++) {
        lb.layer = &spec->layer[i];
        snprintf(lb.prefix, sizeof(lb.prefix), "layers.%zu.", i);
        ok = bind_layer(&lb, &w->layer[i], arena, err);
    }
    return finish(lb.b, ok, cost, err);
}

bool mt_model_bind(mt_model_weights *weights, mt_model_spec *spec, const mt_checkpoint *checkpoint, mt_arena *arena,
                   mt_error *err)
{
    memset(weights, 0, sizeof(*weights));
    weights->layer = mt_arena_alloc(arena, spec->layers * sizeof(*weights->layer));
    if (!weights->layer)
        return mt_fail(err, MT_E_MEMORY, "no memory for %u layers", spec->layers);
    layer_binder lb = {.b = mt_binder_new(checkpoint, arena), .spec = spec};
    bool ok = true;
    bind_ends(lb.b, spec, weights);
    for (size_t i = 0; ok && i < spec->layers; i++) {
        lb.layer = &spec->layer[i];
        snprintf(lb.prefix, sizeof(lb.prefix), "layers.%zu.", i);
        ok = bind_layer(&lb, &weights->layer[i], arena, err);
    }
    ok = ok && bind_guess(&lb, spec, weights, arena, err);
    ok = ok && bind_vision(lb.b, spec, weights, arena, err);
    /* Converters to MLX transpose the convolution and add 1 to the norms' weights, always both. */
    if (lb.channels_last)
        spec->norm_offset = 0;
    return finish(lb.b, ok && check_folded(&lb, spec, err), &weights->cost, err) && check_layers(spec, weights, err);
}
