/* From a spec to the tensors of a checkpoint: every name a decoder has, in canonical form. */
#include <stdio.h>
#include <string.h>

#include "models/model.h"
#include "models/vision.h"

typedef struct layer_binder {
    mt_binder *b;
    const mt_model_spec *spec;
    const mt_layer_spec *layer;
    char prefix[32];    /* "layers.3." */
    bool channels_last; /* convolutions lie as MLX has them */
    char path[MT_LIMIT_TENSOR_NAME];
} layer_binder;

static const char *layer_path(layer_binder *lb, const char *name)
{
    snprintf(lb->path, sizeof lb->path, "%s%s", lb->prefix, name);
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
    snprintf(path, sizeof path, "%s%s.bias", lb->prefix, name);
    *bias = mt_bind_vector(lb->b, path, n);
}

static void bind_norms(layer_binder *lb, mt_layer_weights *w)
{
    const mt_model_spec *s = lb->spec;
    w->attn_norm = vector(lb, "input_layernorm", s->hidden);
    if (s->post_norms) {
        w->attn_post_norm = vector(lb, "post_attention_layernorm", s->hidden);
        w->mlp_norm = vector(lb, "pre_feedforward_layernorm", s->hidden);
        w->mlp_post_norm = vector(lb, "post_feedforward_layernorm", s->hidden);
    } else {
        w->mlp_norm = vector(lb, "post_attention_layernorm", s->hidden);
    }
    if (s->qk_norm && !lb->layer->recurrent) {
        w->q_norm = vector(lb, "self_attn.q_norm", s->head_dim);
        w->k_norm = vector(lb, "self_attn.k_norm", s->head_dim);
    }
}

static void bind_attention(layer_binder *lb, mt_layer_weights *w)
{
    const mt_model_spec *s = lb->spec;
    const size_t query = (size_t)s->heads * s->head_dim, key = (size_t)s->kv_heads * s->head_dim;
    matrix(lb, "self_attn.q_proj", s->attn_gate ? 2 * query : query, s->hidden, &w->q, s->qkv_bias, &w->q_bias);
    matrix(lb, "self_attn.k_proj", key, s->hidden, &w->k, s->qkv_bias, &w->k_bias);
    matrix(lb, "self_attn.v_proj", key, s->hidden, &w->v, s->qkv_bias, &w->v_bias);
    matrix(lb, "self_attn.o_proj", s->hidden, query, &w->o, s->o_bias, &w->o_bias);
}

static void plain(layer_binder *lb, const char *name, size_t n, size_t k, mt_mat *out)
{
    mt_bind_matrix(lb->b, layer_path(lb, name), n, k, out);
}

/* Qwen3-Next stores its projections together, Qwen3.5 one by one. */
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

static void bind_recurrent(layer_binder *lb, mt_layer_weights *w)
{
    const mt_state_shape *st = &lb->spec->state;
    const size_t keys = 2 * st->key_heads * st->key_dim, values = st->value_heads * st->value_dim;
    bind_projections(lb, w);
    plain(lb, "linear_attn.out_proj", lb->spec->hidden, values, &w->mix_out);
    w->mix_conv =
        mt_bind_conv(lb->b, layer_path(lb, "linear_attn.conv1d"), keys + values, st->taps, &lb->channels_last);
    w->mix_rate = vector(lb, "linear_attn.A_log", st->value_heads);
    w->mix_bias = vector(lb, "linear_attn.dt_bias", st->value_heads);
    w->mix_norm = vector(lb, "linear_attn.norm", st->value_dim);
}

static void bind_shared(layer_binder *lb, mt_layer_weights *w)
{
    const mt_model_spec *s = lb->spec;
    plain(lb, "mlp.shared_expert_gate", 1, s->hidden, &w->shared_router);
    plain(lb, "mlp.shared_expert.gate_proj", s->shared_ffn, s->hidden, &w->shared_gate);
    plain(lb, "mlp.shared_expert.up_proj", s->shared_ffn, s->hidden, &w->shared_up);
    plain(lb, "mlp.shared_expert.down_proj", s->hidden, s->shared_ffn, &w->shared_down);
}

static void bind_dense(layer_binder *lb, mt_layer_weights *w)
{
    const mt_model_spec *s = lb->spec;
    matrix(lb, "mlp.gate_proj", s->ffn, s->hidden, &w->gate, s->mlp_bias, &w->gate_bias);
    matrix(lb, "mlp.up_proj", s->ffn, s->hidden, &w->up, s->mlp_bias, &w->up_bias);
    matrix(lb, "mlp.down_proj", s->hidden, s->ffn, &w->down, s->mlp_bias, &w->down_bias);
}

static bool bind_sparse(layer_binder *lb, mt_layer_weights *w, mt_arena *arena, mt_error *err)
{
    const mt_model_spec *s = lb->spec;
    /* The router first: where it has another size, no memory is taken for as many experts as the config says. */
    if (!mt_bind_matrix(lb->b, layer_path(lb, "mlp.gate"), s->experts, s->hidden, &w->router))
        return true;
    mt_mat *mats = mt_arena_alloc(arena, 3 * s->experts * sizeof *mats);
    if (!mats)
        return mt_fail(err, MT_E_MEMORY, "no memory for %u experts", s->experts);
    w->expert_gate = mats;
    w->expert_up = mats + s->experts;
    w->expert_down = mats + 2 * s->experts;
    mt_bind_experts(lb->b, layer_path(lb, "mlp"), s->experts, s->hidden, s->expert_ffn, w->expert_gate, w->expert_up,
                    w->expert_down);
    return true;
}

static bool bind_layer(layer_binder *lb, mt_layer_weights *w, mt_arena *arena, mt_error *err)
{
    bind_norms(lb, w);
    if (lb->layer->recurrent)
        bind_recurrent(lb, w);
    else
        bind_attention(lb, w);
    if (lb->layer->sparse) {
        if (lb->spec->shared_ffn)
            bind_shared(lb, w);
        return bind_sparse(lb, w, arena, err);
    }
    bind_dense(lb, w);
    return true;
}

/* A head in the files is used, whatever the config says: some savers store a tied one all the same, and one that
   differs from the embedding is what transformers takes. */
static void bind_ends(mt_binder *b, mt_model_spec *spec, mt_model_weights *w)
{
    mt_bind_matrix(b, "embed_tokens", spec->vocab, spec->hidden, &w->embed);
    w->norm = mt_bind_vector(b, "norm", spec->hidden);
    spec->tied = !mt_bind_has(b, "lm_head");
    if (spec->tied)
        w->head = w->embed;
    else
        mt_bind_matrix(b, "lm_head", spec->vocab, spec->hidden, &w->head);
}

/* The experts of a layer are multiplied together, so each of their matrices must be packed alike. */
static bool same_packing(const mt_mat *a, const mt_mat *b)
{
    return a->format == b->format && a->group == b->group;
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

/* The layer of a head that guesses ahead counts as one more. */
static bool check_layers(const mt_model_spec *spec, const mt_model_weights *w, mt_error *err)
{
    for (size_t l = 0; l < spec->layers; l++)
        if (spec->layer[l].sparse && !check_experts(&w->layer[l], spec->experts, l, err))
            return false;
    return !spec->mtp || !mt_model_guess_layer(spec).sparse ||
           check_experts(&w->guess.layer, spec->experts, spec->layers, err);
}

static bool bind_vision(mt_binder *b, mt_model_spec *spec, mt_model_weights *w, mt_arena *arena, mt_error *err)
{
    if (spec->vision && !mt_bind_has_vision(b))
        spec->vision = NULL;
    if (!spec->vision)
        return true;
    w->vision = mt_arena_alloc(arena, sizeof *w->vision);
    if (!w->vision)
        return mt_fail(err, MT_E_MEMORY, "no memory for the tower");
    return mt_vision_bind(w->vision, spec->vision, b, arena, err);
}

mt_layer_spec mt_model_guess_layer(const mt_model_spec *spec)
{
    mt_layer_spec layer = {.sparse = spec->layer[spec->layers - 1].sparse, .slot = (uint16_t)spec->groups[0].layers};
    for (size_t i = 0; i < spec->layers; i++)
        if (!spec->layer[i].recurrent)
            layer.rope = spec->layer[i].rope;
    return layer;
}

/* Nothing in a config tells reliably whether there is one: the tensors do. */
static bool bind_guess(layer_binder *lb, mt_model_spec *spec, mt_model_weights *w, mt_arena *arena, mt_error *err)
{
    mt_guess_weights *g = &w->guess;
    const mt_layer_spec layer = mt_model_guess_layer(spec);
    spec->mtp = spec->state.layers && mt_bind_has(lb->b, "mtp.fc");
    if (!spec->mtp)
        return true;
    mt_bind_matrix(lb->b, "mtp.fc", spec->hidden, 2 * (size_t)spec->hidden, &g->fc);
    g->embed_norm = mt_bind_vector(lb->b, "mtp.pre_fc_norm_embedding", spec->hidden);
    g->hidden_norm = mt_bind_vector(lb->b, "mtp.pre_fc_norm_hidden", spec->hidden);
    g->norm = mt_bind_vector(lb->b, "mtp.norm", spec->hidden);
    lb->layer = &layer;
    snprintf(lb->prefix, sizeof lb->prefix, "mtp.layers.0.");
    return bind_layer(lb, &g->layer, arena, err);
}

bool mt_model_bind(mt_model_weights *weights, mt_model_spec *spec, const mt_checkpoint *checkpoint, mt_arena *arena,
                   mt_error *err)
{
    memset(weights, 0, sizeof *weights);
    weights->layer = mt_arena_alloc(arena, spec->layers * sizeof *weights->layer);
    if (!weights->layer)
        return mt_fail(err, MT_E_MEMORY, "no memory for %u layers", spec->layers);
    layer_binder lb = {.b = mt_binder_new(checkpoint, arena), .spec = spec};
    bool ok = true;
    bind_ends(lb.b, spec, weights);
    for (size_t i = 0; ok && i < spec->layers; i++) {
        lb.layer = &spec->layer[i];
        snprintf(lb.prefix, sizeof lb.prefix, "layers.%zu.", i);
        ok = bind_layer(&lb, &weights->layer[i], arena, err);
    }
    ok = ok && bind_guess(&lb, spec, weights, arena, err);
    ok = ok && bind_vision(lb.b, spec, weights, arena, err);
    /* Converters to MLX turn the convolution and add the 1 to the norms, both or neither. */
    if (lb.channels_last)
        spec->norm_offset = 0;
    mt_error missing = {0};
    const bool complete = mt_binder_finish(lb.b, &weights->cost, &missing);
    if (!ok)
        return false;
    if (!complete) {
        if (err)
            *err = missing;
        return false;
    }
    return check_layers(spec, weights, err);
}
