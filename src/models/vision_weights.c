/* The names of towers' tensors, in canonical form: "vision." and "projector." stand for the prefixes that the binder
   finds. */
#include <stdio.h>
#include <string.h>

#include "models/vision.h"

typedef struct tower_binder {
    mt_binder *b;
    const mt_vision_spec *spec;
    char prefix[MT_LIMIT_TENSOR_NAME / 2];
    char path[MT_LIMIT_TENSOR_NAME];
} tower_binder;

static const char *path(tower_binder *t, const char *name, const char *suffix)
{
    snprintf(t->path, sizeof t->path, "%s%s%s", t->prefix, name, suffix);
    return t->path;
}

static const float *bias(tower_binder *t, const char *name, size_t n)
{
    return mt_bind_vector(t->b, path(t, name, ".bias"), n);
}

/* Its bias is left out where the tower has RMS norms. */
static const float *norm(tower_binder *t, const char *name, size_t n, const float **out_bias, bool rms)
{
    const float *w = mt_bind_vector(t->b, path(t, name, ""), n);
    if (!rms)
        *out_bias = bias(t, name, n);
    return w;
}

static void matrix(tower_binder *t, const char *name, size_t n, size_t k, mt_mat *out, const float **out_bias)
{
    mt_bind_matrix(t->b, path(t, name, ""), n, k, out);
    *out_bias = bias(t, name, n);
}

/* Queries, keys and values in one matrix, one after the other. */
static void bind_fused(tower_binder *t, mt_vision_layer_weights *w)
{
    const size_t n = t->spec->hidden;
    const float *all_bias = bias(t, "attn.qkv", 3 * n);
    mt_mat all;
    if (!mt_bind_matrix(t->b, path(t, "attn.qkv", ""), 3 * n, n, &all) || !all_bias)
        return;
    if (all.format == MT_FORMAT_FP8 && n % all.group) { /* blocks of scales would be cut */
        mt_bind_matrix(t->b, path(t, "attn.q", ""), n, n, &w->q);
        return;
    }
    w->q = mt_mat_rows(&all, 0, n);
    w->k = mt_mat_rows(&all, n, n);
    w->v = mt_mat_rows(&all, 2 * n, n);
    w->q_bias = all_bias;
    w->k_bias = all_bias + n;
    w->v_bias = all_bias + 2 * n;
}

static void bind_qwen_layer(tower_binder *t, mt_vision_layer_weights *w)
{
    const mt_vision_spec *s = t->spec;
    const bool third = s->names == MT_VISION_QWEN3;
    w->norm1 = norm(t, "norm1", s->hidden, &w->norm1_bias, s->rms);
    w->norm2 = norm(t, "norm2", s->hidden, &w->norm2_bias, s->rms);
    bind_fused(t, w);
    matrix(t, "attn.proj", s->hidden, s->hidden, &w->o, &w->o_bias);
    if (s->gated) {
        matrix(t, "mlp.gate_proj", s->ffn, s->hidden, &w->gate, &w->gate_bias);
        matrix(t, "mlp.up_proj", s->ffn, s->hidden, &w->up, &w->up_bias);
        matrix(t, "mlp.down_proj", s->hidden, s->ffn, &w->down, &w->down_bias);
    } else {
        matrix(t, third ? "mlp.linear_fc1" : "mlp.fc1", s->ffn, s->hidden, &w->up, &w->up_bias);
        matrix(t, third ? "mlp.linear_fc2" : "mlp.fc2", s->hidden, s->ffn, &w->down, &w->down_bias);
    }
}

static void bind_siglip_layer(tower_binder *t, mt_vision_layer_weights *w)
{
    const mt_vision_spec *s = t->spec;
    w->norm1 = norm(t, "layer_norm1", s->hidden, &w->norm1_bias, false);
    w->norm2 = norm(t, "layer_norm2", s->hidden, &w->norm2_bias, false);
    matrix(t, "self_attn.q_proj", s->hidden, s->hidden, &w->q, &w->q_bias);
    matrix(t, "self_attn.k_proj", s->hidden, s->hidden, &w->k, &w->k_bias);
    matrix(t, "self_attn.v_proj", s->hidden, s->hidden, &w->v, &w->v_bias);
    matrix(t, "self_attn.out_proj", s->hidden, s->hidden, &w->o, &w->o_bias);
    matrix(t, "mlp.fc1", s->ffn, s->hidden, &w->up, &w->up_bias);
    matrix(t, "mlp.fc2", s->hidden, s->ffn, &w->down, &w->down_bias);
}

static void bind_merger(tower_binder *t, const char *prefix, bool joined_norm, mt_merger_weights *w)
{
    const mt_vision_spec *s = t->spec;
    const bool third = s->names == MT_VISION_QWEN3;
    const size_t wide = (size_t)s->merge * s->merge * s->hidden;
    snprintf(t->prefix, sizeof t->prefix, "%s", prefix);
    w->norm = norm(t, third ? "norm" : "ln_q", joined_norm ? wide : s->hidden, &w->norm_bias, s->rms);
    matrix(t, third ? "linear_fc1" : "mlp.0", wide, wide, &w->up, &w->up_bias);
    matrix(t, third ? "linear_fc2" : "mlp.2", s->out, wide, &w->down, &w->down_bias);
}

static void bind_siglip_ends(tower_binder *t, mt_vision_weights *w)
{
    const mt_vision_spec *s = t->spec;
    snprintf(t->prefix, sizeof t->prefix, "vision.");
    mt_bind_matrix(t->b, path(t, "embeddings.position_embedding", ""), (size_t)s->table * s->table, s->hidden,
                   &w->table);
    w->norm = norm(t, "post_layernorm", s->hidden, &w->norm_bias, false);
    mt_bind_transposed(t->b, "projector.mm_input_projection_weight", s->out, s->hidden, &w->merger.down);
    w->merger.norm = mt_bind_vector(t->b, "projector.mm_soft_emb_norm", s->hidden);
}

static void bind_qwen_ends(tower_binder *t, mt_vision_weights *w)
{
    const mt_vision_spec *s = t->spec;
    if (s->table)
        mt_bind_matrix(t->b, "vision.pos_embed", (size_t)s->table * s->table, s->hidden, &w->table);
    bind_merger(t, "vision.merger.", false, &w->merger);
    for (size_t i = 0; i < s->tap_count; i++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "vision.deepstack_merger_list.%zu.", i);
        bind_merger(t, prefix, true, &w->tap[i]);
    }
}

bool mt_vision_bind(mt_vision_weights *w, const mt_vision_spec *s, mt_binder *b, mt_arena *arena, mt_error *err)
{
    const bool siglip = s->names == MT_VISION_SIGLIP;
    const char *patch = siglip ? "vision.embeddings.patch_embedding" : "vision.patch_embed.proj";
    tower_binder t = {.b = b, .spec = s};
    memset(w, 0, sizeof *w);
    w->layer = mt_arena_alloc(arena, s->layers * sizeof *w->layer);
    if (!w->layer)
        return mt_fail(err, MT_E_MEMORY, "no memory for %u layers", s->layers);
    mt_bind_patches(b, patch, s->hidden, s->frames, s->patch, &w->patch);
    if (s->patch_bias)
        w->patch_bias = bias(&t, patch, s->hidden);
    for (size_t l = 0; l < s->layers; l++) {
        snprintf(t.prefix, sizeof t.prefix, siglip ? "vision.encoder.layers.%zu." : "vision.blocks.%zu.", l);
        if (siglip)
            bind_siglip_layer(&t, &w->layer[l]);
        else
            bind_qwen_layer(&t, &w->layer[l]);
    }
    if (siglip)
        bind_siglip_ends(&t, w);
    else
        bind_qwen_ends(&t, w);
    return true;
}
