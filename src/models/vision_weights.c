/* Finds a tower's tensors by its family's names, and reads what several towers have in common (vision_family.h). */
#include <stdio.h>
#include <string.h>

#include "models/family.h"
#include "models/vision_family.h"
#include "weights/limits.h"

/* Reads a number, or a pair of two equal ones. */
static bool read_side(const mt_config *c, const char *key, int64_t fallback, int64_t max, uint32_t *out, mt_error *err)
{
    if (mt_config_array(c, key) != 2)
        return mt_size_read(c, key, fallback, max, out, err);
    const int64_t one = mt_config_array_int(c, key, 0, 0), other = mt_config_array_int(c, key, 1, 0);
    if (one != other || one < 1 || one > max)
        return mt_fail(err, MT_E_UNSUPPORTED, "\"%s\" is %lld x %lld; only squares of up to %lld are supported", key,
                       (long long)one, (long long)other, (long long)max);
    *out = (uint32_t)one;
    return true;
}

bool mt_siglip_read(mt_vision_spec *v, const mt_config *c, const mt_siglip_sizes *fallback, mt_error *err)
{
    uint32_t side;
    double eps;
    if (!mt_size_read(c, "hidden_size", fallback->hidden, MT_LIMIT_WIDTH, &v->hidden, err) ||
        !mt_size_read(c, "intermediate_size", fallback->ffn, MT_LIMIT_WIDTH, &v->ffn, err) ||
        !mt_size_read(c, "num_hidden_layers", fallback->layers, MT_LIMIT_LAYERS, &v->layers, err) ||
        !mt_size_read(c, "num_attention_heads", fallback->heads, MT_LIMIT_WIDTH, &v->heads, err) ||
        !read_side(c, "image_size", fallback->image, 1 << 14, &side, err) ||
        !read_side(c, "patch_size", fallback->patch, 256, &v->patch, err) ||
        !mt_config_float(c, "layer_norm_eps", 1e-6, 0, 1, &eps, err))
        return false;
    v->eps = (float)eps;
    v->table = side / v->patch;
    if (v->hidden % v->heads || v->table == 0)
        return mt_fail(err, MT_E_INVALID,
                       "\"vision_config\" has %u elements for %u heads and patches of %u for %u pixels", v->hidden,
                       v->heads, v->patch, side);
    v->head_dim = v->hidden / v->heads;
    return true;
}

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
    snprintf(t->path, sizeof(t->path), "%s%s%s", t->prefix, name, suffix);
    return t->path;
}

const float *mt_tower_norm(mt_tower_binder *t, const char *name, size_t n, const float **bias)
{
    const float *w = mt_bind_vector(t->b, path(t, name, ""), n);
    if (!t->spec->rms)
        *bias = mt_bind_vector(t->b, path(t, name, ".bias"), n);
    return w;
}

static const char *product_path(mt_tower_binder *t, const char *name)
{
    const char *inner = t->spec->family->names.inner;
    return path(t, name, inner ? inner : "");
}

void mt_tower_matrix(mt_tower_binder *t, const char *name, size_t n, size_t k, mt_mat *out, const float **bias)
{
    mt_bind_matrix(t->b, product_path(t, name), n, k, out);
    if (t->spec->bias && !t->plain)
        *bias = mt_bind_vector(t->b, path(t, name, ".bias"), n);
}

/* Binds queries, keys and values that are in one matrix, one above the other. */
static void bind_fused(mt_tower_binder *t, const mt_tower_names *names, mt_vision_layer_weights *w)
{
    const size_t n = t->spec->hidden;
    const bool biased = t->spec->bias || t->spec->qkv_bias;
    const float *all_bias = biased ? mt_bind_vector(t->b, path(t, names->qkv, ".bias"), 3 * n) : NULL;
    mt_mat all;
    if (!mt_bind_matrix(t->b, path(t, names->qkv, ""), 3 * n, n, &all) || (biased && !all_bias))
        return;
    if (mt_mat_cuts_scales(&all, n)) {
        mt_bind_matrix(t->b, path(t, names->q, ""), n, n, &w->q);
        return;
    }
    w->q = mt_mat_rows(&all, 0, n);
    w->k = mt_mat_rows(&all, n, n);
    w->v = mt_mat_rows(&all, 2 * n, n);
    w->q_bias = all_bias;
    w->k_bias = biased ? all_bias + n : NULL;
    w->v_bias = biased ? all_bias + 2 * n : NULL;
}

/* Where the two halves of a head turn separately (mt_vision_spec.halves), the quarters of a head are reordered so that
   elements that turn together are half a head apart, those of the row first. Queries and keys are only multiplied with
   each other, so the result does not change. */
static uint32_t turned(uint32_t i, uint32_t head_dim)
{
    static const uint32_t from[] = {2, 0, 3, 1};
    const uint32_t quarter = head_dim / 4, at = i % head_dim;
    return i - at + from[at / quarter] * quarter + at % quarter;
}

static const float *turned_norm(mt_tower_binder *t, const char *name, mt_arena *arena)
{
    const uint32_t n = t->spec->head_dim;
    const float *w = mt_bind_vector(t->b, path(t, name, ""), n);
    float *out = w && t->spec->halves ? mt_arena_alloc(arena, n * sizeof(*out)) : NULL;
    for (uint32_t i = 0; out && i < n; i++)
        out[i] = w[turned(i, n)];
    return t->spec->halves ? out : w;
}

/* Binds a projection whose heads are reordered like that. */
static void turned_matrix(mt_tower_binder *t, const char *name, uint32_t n, mt_mat *out, const float **bias,
                          mt_arena *arena)
{
    const mt_vision_spec *s = t->spec;
    uint32_t *order = s->halves ? mt_arena_alloc(arena, n * sizeof(*order)) : NULL;
    if (!order) {
        mt_tower_matrix(t, name, n, s->hidden, out, bias);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        order[i] = turned(i, s->head_dim);
    mt_bind_ordered(t->b, product_path(t, name), n, s->hidden, order, out);
}

static mt_clip bind_clip(mt_tower_binder *t, const char *name)
{
    mt_clip c;
    c.in[0] = mt_bind_number(t->b, path(t, name, ".input_min"));
    c.in[1] = mt_bind_number(t->b, path(t, name, ".input_max"));
    c.out[0] = mt_bind_number(t->b, path(t, name, ".output_min"));
    c.out[1] = mt_bind_number(t->b, path(t, name, ".output_max"));
    return c;
}

static void bind_more(mt_tower_binder *t, const mt_tower_names *names, mt_vision_layer_weights *w, mt_arena *arena)
{
    const mt_vision_spec *s = t->spec;
    const char *const products[MT_TOWER_PRODUCTS] = {names->q,    names->k,  names->v,   names->o,
                                                     names->gate, names->up, names->down};
    if (s->post_norms) {
        w->post1 = mt_bind_vector(t->b, path(t, names->post1, ""), s->hidden);
        w->post2 = mt_bind_vector(t->b, path(t, names->post2, ""), s->hidden);
    }
    if (s->scaled) {
        w->scale1 = mt_bind_vector(t->b, path(t, names->scale1, ""), s->hidden);
        w->scale2 = mt_bind_vector(t->b, path(t, names->scale2, ""), s->hidden);
    }
    if (s->row_eps > 0) {
        w->q_norm = mt_bind_vector(t->b, path(t, names->q_norm, ""), s->hidden);
        w->k_norm = mt_bind_vector(t->b, path(t, names->k_norm, ""), s->hidden);
    }
    if (s->head_norms || s->qk_norm) {
        w->q_norm = turned_norm(t, names->q_norm, arena);
        w->k_norm = turned_norm(t, names->k_norm, arena);
    }
    for (size_t i = 0; s->clipped && i < MT_TOWER_PRODUCTS; i++)
        w->clip[i] = bind_clip(t, products[i]);
}

static void bind_layer(mt_tower_binder *t, const mt_tower_names *names, mt_vision_layer_weights *w, mt_arena *arena)
{
    const mt_vision_spec *s = t->spec;
    const uint32_t n = s->hidden, ffn = s->ffn, query = s->heads * s->head_dim;
    const uint32_t key = (s->kv_heads ? s->kv_heads : s->heads) * s->head_dim;
    w->norm1 = mt_tower_norm(t, names->norm1, n, &w->norm1_bias);
    w->norm2 = mt_tower_norm(t, names->norm2, n, &w->norm2_bias);
    bind_more(t, names, w, arena);
    t->plain = s->qkv_plain;
    if (names->qkv && !mt_bind_has(t->b, path(t, names->q, ""))) {
        bind_fused(t, names, w);
    } else {
        turned_matrix(t, names->q, query, &w->q, &w->q_bias, arena);
        turned_matrix(t, names->k, key, &w->k, &w->k_bias, arena);
        mt_tower_matrix(t, names->v, key, n, &w->v, &w->v_bias);
    }
    t->plain = false;
    mt_tower_matrix(t, names->o, n, query, &w->o, &w->o_bias);
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
    memset(w, 0, sizeof(*w));
    w->layer = mt_arena_alloc(arena, s->layers * sizeof(*w->layer));
    if (!w->layer)
        return mt_fail(err, MT_E_MEMORY, "no memory for %u layers", s->layers);
    if (s->pixels_last)
        mt_bind_matrix(b, names->patch, s->hidden, (size_t)3 * s->patch * s->patch, &w->patch);
    else
        mt_bind_patches(b, names->patch, s->hidden, 3, s->frames, s->patch, &w->patch);
    if (s->patch_bias)
        w->patch_bias = mt_bind_vector(b, path(&t, names->patch, ".bias"), s->hidden);
    t.prefix = prefix;
    for (size_t l = 0; l < s->layers; l++) {
        snprintf(prefix, sizeof(prefix), "%s%zu.", names->layer, l);
        bind_layer(&t, names, &w->layer[l], arena);
    }
    if (s->places)
        mt_bind_planes(b, names->table, s->places_interleaved ? s->places : 2, s->places_interleaved ? 2 : s->places,
                       s->hidden, &w->table);
    else if (s->table && !s->summary)
        mt_bind_matrix(b, names->table, (size_t)s->table * s->table, s->hidden, &w->table);
    t.prefix = "";
    s->family->bind(&t, w);
    return true;
}
