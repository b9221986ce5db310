/* Finds a tower's tensors by the names its family gives them, and what else towers have in common. */
#include <stdio.h>
#include <string.h>

#include "models/vision_family.h"

bool mt_tower_activation_read(const mt_config *c, const char *key, const char *fallback, mt_activation *out,
                              mt_error *err)
{
    static const struct {
        const char *name;
        mt_activation act;
    } known[] = {{"silu", MT_ACT_SILU},
                 {"gelu_pytorch_tanh", MT_ACT_GELU_TANH},
                 {"quick_gelu", MT_ACT_QUICK_GELU},
                 {"gelu", MT_ACT_GELU}};
    const char *name = mt_config_string(c, key, fallback);
    for (size_t i = 0; i < MT_COUNT(known); i++) {
        if (strcmp(known[i].name, name) == 0) {
            *out = known[i].act;
            return true;
        }
    }
    return mt_fail(err, MT_E_UNSUPPORTED,
                   "the tower's \"%s\" is \"%.64s\"; known are silu, gelu, gelu_pytorch_tanh and quick_gelu", key,
                   name);
}

static const char *path(mt_tower_binder *t, const char *name, const char *suffix)
{
    snprintf(t->path, sizeof t->path, "%s%s%s", t->prefix, name, suffix);
    return t->path;
}

const float *mt_tower_norm(mt_tower_binder *t, const char *name, size_t n, const float **bias)
{
    const float *w = mt_bind_vector(t->b, path(t, name, ""), n);
    if (!t->spec->rms)
        *bias = mt_bind_vector(t->b, path(t, name, ".bias"), n);
    return w;
}

void mt_tower_matrix(mt_tower_binder *t, const char *name, size_t n, size_t k, mt_mat *out, const float **bias)
{
    mt_bind_matrix(t->b, path(t, name, ""), n, k, out);
    if (t->spec->bias)
        *bias = mt_bind_vector(t->b, path(t, name, ".bias"), n);
}

/* Queries, keys and values in one matrix, one after the other. */
static void bind_fused(mt_tower_binder *t, const mt_tower_names *names, mt_vision_layer_weights *w)
{
    const size_t n = t->spec->hidden;
    const float *all_bias = mt_bind_vector(t->b, path(t, names->qkv, ".bias"), 3 * n);
    mt_mat all;
    if (!mt_bind_matrix(t->b, path(t, names->qkv, ""), 3 * n, n, &all) || !all_bias)
        return;
    if (all.format == MT_FORMAT_FP8 && n % all.group) { /* blocks of scales would be cut */
        mt_bind_matrix(t->b, path(t, names->q, ""), n, n, &w->q);
        return;
    }
    w->q = mt_mat_rows(&all, 0, n);
    w->k = mt_mat_rows(&all, n, n);
    w->v = mt_mat_rows(&all, 2 * n, n);
    w->q_bias = all_bias;
    w->k_bias = all_bias + n;
    w->v_bias = all_bias + 2 * n;
}

static void bind_layer(mt_tower_binder *t, const mt_tower_names *names, mt_vision_layer_weights *w)
{
    const size_t n = t->spec->hidden, ffn = t->spec->ffn;
    w->norm1 = mt_tower_norm(t, names->norm1, n, &w->norm1_bias);
    w->norm2 = mt_tower_norm(t, names->norm2, n, &w->norm2_bias);
    if (names->qkv) {
        bind_fused(t, names, w);
    } else {
        mt_tower_matrix(t, names->q, n, n, &w->q, &w->q_bias);
        mt_tower_matrix(t, names->k, n, n, &w->k, &w->k_bias);
        mt_tower_matrix(t, names->v, n, n, &w->v, &w->v_bias);
    }
    mt_tower_matrix(t, names->o, n, n, &w->o, &w->o_bias);
    if (t->spec->gated)
        mt_tower_matrix(t, names->gate, ffn, n, &w->gate, &w->gate_bias);
    mt_tower_matrix(t, names->up, ffn, n, &w->up, &w->up_bias);
    mt_tower_matrix(t, names->down, n, ffn, &w->down, &w->down_bias);
}

bool mt_vision_bind(mt_vision_weights *w, const mt_vision_spec *s, mt_binder *b, mt_arena *arena, mt_error *err)
{
    const mt_tower_names *names = &s->family->names;
    mt_tower_binder t = {.b = b, .spec = s, .prefix = ""};
    char prefix[MT_LIMIT_TENSOR_NAME / 2];
    memset(w, 0, sizeof *w);
    w->layer = mt_arena_alloc(arena, s->layers * sizeof *w->layer);
    if (!w->layer)
        return mt_fail(err, MT_E_MEMORY, "no memory for %u layers", s->layers);
    mt_bind_patches(b, names->patch, s->hidden, s->frames, s->patch, &w->patch);
    if (s->patch_bias)
        w->patch_bias = mt_bind_vector(b, path(&t, names->patch, ".bias"), s->hidden);
    t.prefix = prefix;
    for (size_t l = 0; l < s->layers; l++) {
        snprintf(prefix, sizeof prefix, "%s%zu.", names->layer, l);
        bind_layer(&t, names, &w->layer[l]);
    }
    if (s->table)
        mt_bind_matrix(b, names->table, (size_t)s->table * s->table, s->hidden, &w->table);
    t.prefix = "";
    s->family->bind(&t, w);
    return true;
}
